"""The area of the pixels of a grid of latitude and longitude."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.typing import Floats

AXIS = 6378137.0
"""m, the semi-major axis of WGS 84."""
FLATTENING = 1 / 298.257223563


def latitude_areas(edges: ArrayLike, step: float) -> Floats:
    """Return the areas in m² of cells between parallels, `step` degrees of longitude wide, on WGS 84.

    edges: latitudes in degrees (n + 1,), rising or falling; those beyond a pole count as the pole. Returns
    (n,), 0 or above. Source: Snyder, Map Projections: A Working Manual, USGS Professional Paper 1395, 1987,
    (3-12).

    >>> float(latitude_areas([-90, 90], 360)[0].round(-6))
    510065622000000.0
    """
    ecc = math.sqrt(FLATTENING * (2 - FLATTENING))
    sine = np.sin(np.radians(np.clip(np.asarray(edges, np.float64), -90, 90)))
    q = (1 - ecc**2) * (sine / (1 - (ecc * sine) ** 2) + np.arctanh(ecc * sine) / ecc)
    return np.asarray(np.abs(np.diff(q)) * AXIS**2 / 2 * math.radians(abs(step)))
