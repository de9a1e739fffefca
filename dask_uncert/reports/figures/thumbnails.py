"""Small pictures of maps without axes, for cards of cases, and the legend of their colours."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.image import imsave
from numpy.typing import NDArray

from dask_uncert.reports.figures.maps import CELL_NAMES, UNDEFINED, Levels, levels_of, value_norm
from dask_uncert.reports.figures.regression import regression_norm
from dask_uncert.reports.names import pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.registry import AnyEvaluation
from dask_uncert.summaries.regression import RegressionEvaluation
from dask_uncert.summaries.soft_confusion import COLOURS

RAMP = 6  # colours of a ramp, between which the style sheet blends


class Legend(NamedTuple):
    """The legend of a map: label and colour of each level, or the colours of a ramp and the labels of its ends."""

    title: str
    levels: list[tuple[str, str]]
    ramp: list[str]
    ends: tuple[str, str]


def thumbnail(evaluation: AnyEvaluation, name: str, values: NDArray[Any]) -> bytes:
    """Return a map as PNG without scaling, in the colours of its figure; light grey where undefined."""
    image = values
    if values.ndim == 2:
        numbers = np.asarray(values, np.float64)
        levels, norm = None, Normalize()
        if isinstance(evaluation, RegressionEvaluation):
            norm = regression_norm(name, numbers)
        else:
            levels, measure = _levels(evaluation, name), evaluation.measures.get(name)
            norm = norm if measure is None else value_norm(measure)
        if levels is None:
            image = colormaps["viridis"](norm(np.ma.masked_invalid(numbers)))[..., :3]
        else:
            image = np.empty((*numbers.shape, 3))
            for code, _, colour in levels:
                image[numbers == code] = to_rgb(colour)
        image[np.isnan(numbers)] = to_rgb(UNDEFINED)
    target = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None}  # the version of matplotlib would change the bytes
    imsave(target, image, format="png", metadata=metadata)
    return target.getvalue()


def legend(evaluation: Evaluation, name: str, values: NDArray[Any]) -> Legend:
    """Return the legend of a map."""
    title, levels = pretty(name), _levels(evaluation, name)
    if values.ndim == 3:
        levels = [(0, label, np.array(COLOURS[cell]) / 255) for cell, label in CELL_NAMES.items()]
    if levels is not None:
        return Legend(title, [(label, to_hex(colour)) for _, label, colour in levels], [], ("", ""))
    ramp = [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0, 1, RAMP))]
    measure = evaluation.measures.get(name)
    ends = ("lowest", "highest") if measure is None or measure.wide else ("0", f"{measure.reach:.4g}")
    return Legend(title, [], ramp, ends)


def _levels(evaluation: Evaluation, name: str) -> Levels | None:
    """Return the possible levels of a map, which are the same for every case."""
    return levels_of(evaluation, name, np.array([[len(evaluation.classes)]]))
