"""Writing NIfTI: a map as a volume with its affine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from dask_uncert.io.geometry import Geometry
from dask_uncert.io.owned_folder import EXPORTED

SPATIAL = 3


def write_nifti(path: str, values: NDArray[Any], dims: Sequence[str], geometry: Geometry | None) -> None:
    """Write a volume of up to three dimensions; without a geometry it has no position (both codes are 0).

    Numbers are not scaled. Axes that a map lacks are added, with a single index.
    """
    affine = np.eye(4)
    if geometry is not None:
        for axis, dim in enumerate(dims):
            affine[:SPATIAL, axis] = geometry.steps[geometry.dims.index(dim)]
        for axis in range(len(dims), SPATIAL):  # perpendicular to the others
            affine[:SPATIAL, axis] = np.linalg.svd(affine[:SPATIAL, :axis].T)[2][-1]
        affine[:SPATIAL, SPATIAL] = geometry.origin
    volume = values.reshape(values.shape + (1,) * (SPATIAL - values.ndim))
    image: Any = nibabel.Nifti1Image(volume, affine)  # type: ignore[no-untyped-call]
    image.set_sform(affine, code=0 if geometry is None else 1)
    image.set_qform(affine if geometry is None else None, code=0)
    image.header.set_xyzt_units("mm")
    image.header.set_slope_inter(1, 0)
    image.header["descrip"] = EXPORTED
    nibabel.save(image, path)
