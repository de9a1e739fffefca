"""The counts that the page's script works with, as plain data: joint histograms, histograms, calibration bins.

Arrays travel as base64 of little-endian numbers of the narrowest dtype that holds them all: every number arrives
as it was. Empty groups of a joint histogram stay behind.
"""

from __future__ import annotations

import base64
import json
import math
import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.fixed_point import decode
from dask_uncert.metrics.sweep import UNDAMPED
from dask_uncert.reports.names import pretty, unit
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram

SIGMA = 0.1  # where the page starts
DAMPING = 1.0
BY_CLASS_BYTES = 2_000_000
"""Of all histograms by reference class; where they are larger, the page has only those of all classes."""


class Chosen(NamedTuple):
    """The text of the payload, and the joint histograms that did not fit into the page."""

    text: str
    left_out: list[dict[str, str]]


def chosen(evaluation: Evaluation, room: int) -> Chosen:
    """The payload with as many joint histograms, in their order, as `room` bytes hold.

    Each one that is left out is named, with the command that answers the same questions.
    """
    found = {
        "classes": [one.name for one in evaluation.classes],
        "measures": _measures(evaluation),
        "calibration": _calibration(evaluation),
        "start": {"sigma": SIGMA, "damping": DAMPING},
        "records": [],
    }
    used = len(text(found).encode())
    records, left_out = [], []
    for one in evaluation.joint:
        made = record(evaluation, one)
        size = len(text(made).encode()) + 1
        if used + size <= room:
            used += size
            records.append(made)
        else:
            left_out.append({"class": made["class"], "command": command(evaluation, one)})
    return Chosen(text({**found, "records": records}), left_out)


def text(value: Any) -> str:
    """JSON that may stand inside a script element: no `<` is left in it.

    >>> text({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    plain = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c")


def encoded(values: ArrayLike) -> dict[str, Any]:
    """An array as base64 of little-endian numbers, flattened in C order; `dtype` u1, u2, u4 or f8.

    >>> encoded([1, 2, 300])
    {'dtype': 'u2', 'data': 'AQACACwB'}
    """
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        most = int(array.max(initial=0))
        narrow = next(
            (kind for kind, end in (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32)) if most < end), "f8"
        )
    else:
        narrow = "f8"
    data = np.ascontiguousarray(array, dtype=f"<{narrow}").tobytes()
    return {"dtype": narrow, "data": base64.b64encode(data).decode("ascii")}


def record(evaluation: Evaluation, one: JointHistogram) -> dict[str, Any]:
    """A joint histogram: groups are the pixels of one level of the reference in one row, level after level.

    `starts` says where each level's groups begin, `row` which row a group is of; `zeroth` and `first` are the
    sums of its moments, see `formulas.soft_sweep`.
    """
    settings, sums = one.settings, one.decoded()
    at = np.cumsum([0, *(interval.zeroth for interval in sums.intervals)])[:-1]
    numbers = sums.zeroth[..., at].sum(axis=-1)
    level, row = np.nonzero(numbers)
    return {
        "class": evaluation.classes[settings.class_index].name,
        "class_index": settings.class_index,
        "uncertainty": settings.uncertainty,
        "label": None if settings.uncertainty is None else pretty(settings.uncertainty),
        "dtype": settings.dtype,
        "thresholds": list(settings.thresholds),
        "reference_dtype": settings.reference_dtype,
        "reference_threshold": settings.reference_threshold,
        "counted": float(numbers.sum()),
        "low": encoded(sums.rows[:, 0]),
        "high": encoded(sums.rows[:, 1]),
        "level_low": sums.levels[:, 0].tolist(),
        "level_high": sums.levels[:, 1].tolist(),
        "pieces": [
            {**interval._asdict(), "high": interval.high if math.isfinite(interval.high) else None}
            for interval in sums.intervals
        ],
        "starts": np.searchsorted(level, np.arange(len(sums.levels) + 1)).tolist(),
        "row": encoded(row),
        "zeroth": encoded(sums.zeroth[level, row]),
        "first": encoded(sums.first[level, row]),
    }


def command(evaluation: Evaluation, one: JointHistogram) -> str:
    """What to type for the numbers of a joint histogram, in the folder of the page."""
    s = one.settings
    words = ["dask-uncert", "sweep", ".", "--class", evaluation.classes[s.class_index].name]
    alike = [other for other in evaluation.joint if other.settings.class_index == s.class_index]
    if len(alike) > 1:
        words += ["--uncertainty", s.uncertainty or UNDAMPED]
    threshold, damping = (s.thresholds or (0.5,))[0], 0.0 if s.uncertainty is None else DAMPING
    for option, value in (("--threshold", threshold), ("--sigma", SIGMA), ("--damping", damping)):
        words += [option, f"{value:g}"]
    return shlex.join(words)


def _measures(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Of every measure its bins, and the counts of right and of wrong decisions in them."""
    by_class = {name: encoded(one.histogram) for name, one in evaluation.measures.items()}
    fits = sum(len(one["data"]) for one in by_class.values()) <= BY_CLASS_BYTES
    return [
        {
            "name": name,
            "label": pretty(name),
            "unit": "" if unit(one.measure) == "1" else unit(one.measure),
            "reach": one.reach,
            "edges": encoded(np.asarray(one.edges)),
            "thresholds": _inner(one),
            "all": encoded(one.histogram.sum(axis=0)),
            "by_class": by_class[name] if fits else None,
        }
        for name, one in evaluation.measures.items()
    ]


def _inner(one: Distribution) -> list[float]:
    """The named thresholds that are edges: what lies beyond the values is none."""
    return [t for t in one.thresholds if t in one.edges]


def _calibration(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Bins of the winning class's confidence, then of every class against the rest."""
    one = evaluation.calibration
    return [_bins(one.binned(one.fine)), *_each(one.binned(one.fine_by_class))]


def _each(bins: Bins) -> Iterable[dict[str, Any]]:
    return (_bins(Bins(*parts)) for parts in zip(*bins, strict=True))


def _bins(bins: Bins) -> dict[str, Any]:
    return {
        "n": encoded(bins.number),
        "hits": encoded(bins.positives),
        "stated": encoded(decode(bins.sums)),
    }
