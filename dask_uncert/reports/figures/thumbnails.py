"""Small pictures of maps without axes, for cards of cases; and what their colours mean."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.image import imsave
from numpy.typing import NDArray

from dask_uncert.reports.figures.maps import MEANINGS, UNDEFINED, Levels, levels_of, value_norm
from dask_uncert.reports.names import pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import COLOURS

RAMP = 6  # colours of a ramp that a style sheet blends between


class Legend(NamedTuple):
    """Of a map: levels and their colours, or the colours of a ramp from its lower to its upper end."""

    title: str
    levels: list[tuple[str, str]]
    ramp: list[str]
    ends: tuple[str, str]


def thumbnail(evaluation: Evaluation, name: str, values: NDArray[Any]) -> bytes:
    """A map as PNG, a pixel a pixel, in the colours of its figure; light grey where undefined."""
    if values.ndim == 3:
        picture = values
    else:
        numbers = np.asarray(values, np.float64)
        levels, one = _levels(evaluation, name), evaluation.measures.get(name)
        if levels is None:
            norm = Normalize() if one is None else value_norm(one)
            picture = colormaps["viridis"](norm(np.ma.masked_invalid(numbers)))[..., :3]
        else:
            picture = np.empty((*numbers.shape, 3))
            for code, _, colour in levels:
                picture[numbers == code] = to_rgb(colour)
        picture[np.isnan(numbers)] = to_rgb(UNDEFINED)
    target = io.BytesIO()
    nothing: dict[str, Any] = {"Software": None}  # the version of matplotlib, which would change the bytes
    imsave(target, picture, format="png", metadata=nothing)
    return target.getvalue()


def legend(evaluation: Evaluation, name: str, values: NDArray[Any]) -> Legend:
    """What the colours of a map mean."""
    title = pretty(name)
    if values.ndim == 3:
        levels = [(word, to_hex([part / 255 for part in COLOURS[cell]])) for cell, word in MEANINGS.items()]
        return Legend(title, levels, [], ("", ""))
    few = _levels(evaluation, name)
    if few is not None:
        return Legend(title, [(label, to_hex(colour)) for _, label, colour in few], [], ("", ""))
    ramp = [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0, 1, RAMP))]
    one = evaluation.measures.get(name)
    ends = ("lowest", "highest") if one is None or one.wide else ("0", f"{one.reach:.4g}")
    return Legend(title, [], ramp, ends)


def _levels(evaluation: Evaluation, name: str) -> Levels | None:
    """The levels that a map may have: the same for every case."""
    return levels_of(evaluation, name, np.array([[len(evaluation.classes)]]))
