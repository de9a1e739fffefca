"""The counts in the page, from which its script computes: joint histograms, histograms, calibration bins.

Arrays are base64 of little-endian numbers in the smallest dtype that keeps them exact. Empty groups of a joint histogram
are left out.
"""

from __future__ import annotations

import base64
import json
import math
import shlex
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas import confusion
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.sweep import UNDAMPED
from dask_uncert.reports.names import pretty, unit
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.distribution import OCTAVES, Distribution, edges_with
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram, row_ends

SIGMA, DAMPING = 0.1, 1.0  # initial values of the controls
THRESHOLD_BYTES = 1_000_000  # of the classes' counts for decision thresholds; the page leaves out the smaller classes
BY_CLASS_BYTES = 2_000_000  # if histograms by reference class are larger, the page has only those of all classes


class Payload(NamedTuple):
    """The payload, and class and command of each joint histogram that did not fit into the page."""

    text: str
    left_out: list[dict[str, str]]


def payload(evaluation: Evaluation, most_bytes: int) -> Payload:
    """Return the payload with the joint histograms that fit into the bytes, in order."""
    joint: list[dict[str, Any]] = []
    left_out = []
    data = {
        "classes": evaluation.class_names,
        "measures": _measures(evaluation),
        "calibration": _calibration(evaluation),
        **_thresholds(evaluation),
        "start": {"sigma": SIGMA, "damping": DAMPING},
        "joint": joint,
    }
    used = len(json_text(data).encode())
    for histogram in evaluation.joint:
        encoded = joint_data(evaluation, histogram)
        size = len(json_text(encoded).encode()) + 1
        if used + size <= most_bytes:
            used += size
            joint.append(encoded)
        else:
            left_out.append({"class": encoded["class"], "command": command(evaluation, histogram)})
    return Payload(json_text(data), left_out)


def json_text(value: Any) -> str:
    """Return JSON for a script element: `<` is escaped.

    >>> json_text({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    plain = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c")


def encode(values: ArrayLike) -> dict[str, Any]:
    """Return an array as base64 in C order, with its `dtype`: u1, u2, u4, i4 or f8.

    >>> encode([1, 2, 300])
    {'dtype': 'u2', 'data': 'AQACACwB'}
    """
    array = np.asarray(values)
    dtype = "f8"
    if array.dtype.kind in "iu":
        least, most = int(array.min(initial=0)), int(array.max(initial=0))
        kinds = ("u1", "u2", "u4", "i4")
        dtype = next((kind for kind in kinds if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max), "f8")
    data = np.ascontiguousarray(array, dtype=f"<{dtype}").tobytes()
    return {"dtype": dtype, "data": base64.b64encode(data).decode("ascii")}


def joint_data(evaluation: Evaluation, histogram: JointHistogram) -> dict[str, Any]:
    """Return a joint histogram; a group is the pixels of one level of the reference in one row, a cell those in one bin.

    `starts` is the first group of each level, `cells` the first cell of each group, `row` and `bin` say where they are;
    `moments` are their sums of `powers`, see `summaries.joint_histogram`.
    """
    settings, ends = histogram.settings, row_ends(histogram.settings)
    level, row, bin_of = np.nonzero(histogram.moments[..., 0])
    kept = histogram.moments[level, row, bin_of]
    groups, first = np.unique(level * len(ends) + row, return_index=True)
    rows, of_group = np.unique(groups % len(ends), return_inverse=True)
    return {
        "class": evaluation.classes[settings.class_index].name,
        "class_index": settings.class_index,
        "uncertainty": settings.uncertainty,
        "label": None if settings.uncertainty is None else pretty(settings.uncertainty),
        "dtype": settings.dtype,
        "thresholds": list(settings.thresholds),
        "reference_dtype": settings.reference_dtype,
        "reference_threshold": settings.reference_threshold,
        "counted": float(kept[:, 0].sum()),
        "low": encode(ends[rows, 0]),
        "high": encode(ends[rows, 1]),
        "level_low": [low for low, _ in settings.levels],
        "level_high": [high for _, high in settings.levels],
        "upper": settings.upper if math.isfinite(settings.upper) else None,
        "bins": settings.bins,
        "powers": settings.powers,
        "starts": np.searchsorted(groups // len(ends), np.arange(len(settings.levels) + 1)).tolist(),
        "row": encode(of_group),
        "cells": encode([*first.tolist(), len(kept)]),
        "bin": encode(bin_of),
        "moments": [encode(sums) for sums in kept.T],
    }


def command(evaluation: Evaluation, histogram: JointHistogram) -> str:
    """Return the command that computes the numbers of a joint histogram, for the folder of the page."""
    s = histogram.settings
    arguments = ["dask-uncert", "sweep", ".", "--class", evaluation.classes[s.class_index].name]
    if sum(other.settings.class_index == s.class_index for other in evaluation.joint) > 1:
        arguments += ["--uncertainty", s.uncertainty or UNDAMPED]
    threshold, damping = (s.thresholds or (0.5,))[0], 0.0 if s.uncertainty is None else DAMPING
    for option, value in (("--threshold", threshold), ("--sigma", SIGMA), ("--damping", damping)):
        arguments += [option, f"{value:g}"]
    return shlex.join(arguments)


def page_edges(measure: Distribution) -> Floats:
    """Return the bin edges that the page has: of a slider's steps, and a few below them down to the lowest value.

    These are the even steps and the thresholds, and one an octave below; without a range, 32 an octave.
    """
    edges, filled = np.asarray(measure.edges), np.flatnonzero(measure.histogram.sum(axis=(0, 1)))
    if measure.wide:
        steps, octaves = (0.0, *measure.thresholds, measure.upper), edges[np.frexp(edges)[0] * 64 % 1 == 0]
    else:
        steps = edges_with(measure.thresholds, measure.upper)
        octaves = measure.upper * 2.0 ** np.arange(min(OCTAVES), -9)
    octaves = octaves[octaves >= edges[filled[0]]] if filled.size else octaves[:0]
    return edges[np.isin(edges, steps) | np.isin(edges, octaves)]


def _measures(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the page's bins of every measure, and the wrong and correct predictions in them."""
    edges = {name: page_edges(measure) for name, measure in evaluation.measures.items()}
    starts = {name: np.searchsorted(measure.edges, edges[name][:-1]) for name, measure in evaluation.measures.items()}
    bins = {name: np.add.reduceat(m.histogram, starts[name], axis=-1) for name, m in evaluation.measures.items()}
    by_class = {name: encode(histogram) for name, histogram in bins.items()}
    fits = sum(len(encoded["data"]) for encoded in by_class.values()) <= BY_CLASS_BYTES
    return [
        {
            "name": name,
            "label": pretty(name),
            "unit": "" if unit(measure.measure) == "1" else unit(measure.measure),
            "reach": measure.reach,
            "edges": encode(edges[name]),
            "thresholds": [t for t in measure.thresholds if t in measure.edges],  # others exceed all values
            "all": encode(bins[name].sum(axis=0)),
            "by_class": by_class[name] if fits else None,
        }
        for name, measure in evaluation.measures.items()
    ]


def _thresholds(evaluation: Evaluation) -> dict[str, Any]:
    """Return the fine edges of the probability, and each class's pixels and hits between them, the largest that fit.

    `decided` has TP, FP, FN and TN where the most probable class is the decision.
    """
    calibration, used = evaluation.calibration, 0
    if calibration is None:
        return {"edges": encode([]), "thresholds": []}
    tp, tn, fp, fn = confusion.cells(evaluation.decisions.confusion)
    cells = np.stack([tp, fp, fn, tn], axis=-1)
    support, kept = evaluation.decisions.confusion.sum(axis=1), {}
    for i in np.argsort(-support, kind="stable").tolist():
        n, hits = (encode(part[i]) for part in calibration.fine_by_class[:2])
        used += len(n["data"]) + len(hits["data"])
        if used > THRESHOLD_BYTES:
            break
        kept[i] = {"class": evaluation.class_names[i], "n": n, "hits": hits, "decided": cells[i].tolist()}
    return {"edges": encode(calibration.edges), "thresholds": [kept[i] for i in sorted(kept)]}


def _calibration(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the calibration bins of the predicted class, then of every class against the rest; none of class codes."""
    calibration = evaluation.calibration
    if calibration is None:
        return []
    by_class = zip(*calibration.binned(calibration.fine_by_class), strict=True)
    return [
        {"n": encode(bins.number), "hits": encode(bins.positives), "stated": encode(decode(bins.sums))}
        for bins in (calibration.binned(calibration.fine), *(Bins(*parts) for parts in by_class))
    ]
