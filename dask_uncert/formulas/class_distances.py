"""Distances between classes in the data: the table H of class distances, from labelled samples.

Computed band by band, so that bands can run in parallel. Samples and bands may come in any order: values are
sorted before they are used, and the remaining sums are exact (`math.fsum`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import suggestion
from dask_uncert.formulas.array_dispatch import is_lazy
from dask_uncert.formulas.typing import Floats, Indices

Metric = Literal["energy", "wasserstein", "mean", "infinity"]
METRICS: tuple[Metric, ...] = get_args(Metric)
SEGMENT = 1 << 14
"""Different values processed at once: memory grows with the samples, not with samples times classes."""


def class_distances(features: Any, labels: Any, classes: Sequence[int], metric: Metric = "energy") -> Floats:
    """Return the distances between classes in the data: the table H, from labelled samples.

    Symmetric with zero diagonal; the same bits for every order of samples and of bands.

    Parameters
    ----------
    features : array_like
        Features (..., band) of any real dtype.
    labels : array_like
        Integer codes (...). Samples whose code is not among the classes take no part.
    classes : sequence of int
        The C class codes.
    metric : {"energy", "wasserstein", "mean", "infinity"}
        See Notes.

    Returns
    -------
    numpy.ndarray
        (C, C) float64 in the order of `classes`. Range [0, inf); larger is further apart. Unit: sqrt(unit of
        the features) for energy, that unit for the others.

    Raises
    ------
    ValueError
        For shapes that do not fit, classes without samples or named twice, labels that are not whole numbers,
        and features that are not finite at labelled samples, with their number.
    TypeError
        For lazy arrays.

    Notes
    -----
    Per band b with CDFs Q of the class samples and class means m:

    - ``"energy"``: ``sqrt(integral (Q_i - Q_j)**2 dx)`` (SciPy's `energy_distance` is this times sqrt 2),
      then the mean over bands plus the population standard deviation over bands.
    - ``"wasserstein"``: ``integral |Q_i - Q_j| dx``, then likewise.
    - ``"mean"``: ``sqrt(sum_b (m_i - m_j)**2)``; ``"infinity"``: ``max_b |m_i - m_j|``.

    References
    ----------
    [C23] III-C.

    Examples
    --------
    >>> class_distances([[0.0], [1.0], [1.0], [9.0]], [1, 1, 2, 0], classes=[1, 2]).round(6).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    if is_lazy(features) or is_lazy(labels):
        raise TypeError("arrays in memory expected; compute them first, or let a scene's evaluation read them")
    values, codes = np.asarray(features), np.asarray(labels)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"features must be numbers, found dtype {values.dtype}")
    if values.ndim != codes.ndim + 1 or values.shape[:-1] != codes.shape or not values.shape[-1]:
        raise ValueError(f"features (..., band) expected with labels {codes.shape}, found {values.shape}")
    index = class_index(codes.reshape(-1), classes)
    labelled = index >= 0
    samples = values.reshape(-1, values.shape[-1])[labelled]
    index = index[labelled]
    check_counts(np.bincount(index, minlength=len(classes)), classes)
    _check(metric)
    bands = [band_distances(samples[:, band], index, len(classes), metric) for band in range(samples.shape[1])]
    return combine_bands(np.stack(bands), metric)


def class_index(labels: NDArray[Any], classes: Sequence[int]) -> Indices:
    """Return the index of each label's code among the classes, -1 for codes that are not among them.

    >>> class_index(np.array([5, 0, 2]), [2, 5]).tolist()
    [1, -1, 0]
    """
    if len(classes) < 2 or len(set(classes)) != len(classes):
        raise ValueError(f"at least 2 different class codes expected, found {list(classes)}")
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"labels must be whole numbers, found dtype {labels.dtype}")
    if labels.dtype.kind == "f":
        broken = np.isfinite(labels) & (labels != np.rint(labels))
        if broken.any():
            raise ValueError(
                f"labels must be whole numbers, found {int(broken.sum())} others, such as {labels[broken][0]}"
            )
    index = np.full(labels.shape, -1, dtype=np.int64)
    for number, code in enumerate(classes):
        index[labels == code] = number
    return index


def check_counts(counts: Indices, classes: Sequence[int]) -> None:
    """Raise ValueError, naming them, where classes have no sample."""
    missing = [code for code, count in zip(classes, counts, strict=True) if not count]
    if missing:
        raise ValueError(f"no labelled sample of class {', '.join(map(str, missing))}; leave it out of the classes")


def band_distances(values: NDArray[Any], index: Indices, n_classes: int, metric: Metric = "energy") -> Floats:
    """Return the table of one band, (C, C) float64, for `combine_bands`; the same bits in any sample order.

    Shapes: values (samples,) of any real dtype, index (samples,) in 0..n_classes-1, each class at least once.
    For ``"mean"`` and ``"infinity"`` the entries are ``|m_i - m_j|``.

    >>> band_distances(np.array([0, 1, 3], dtype="uint16"), np.array([0, 0, 1]), 2, "mean").tolist()
    [[0.0, 2.5], [2.5, 0.0]]
    """
    _check(metric)
    x = np.asarray(values, dtype=np.float64)  # before any difference: unsigned features would wrap
    broken = int(np.count_nonzero(~np.isfinite(x)))
    if broken:
        raise ValueError(f"{broken} of {x.size} features of labelled samples are not finite")
    counts = np.bincount(index, minlength=n_classes)
    check_counts(counts, range(n_classes))
    if metric in ("mean", "infinity"):
        means = np.array([math.fsum(x[index == k].tolist()) / int(counts[k]) for k in range(n_classes)])
        return np.asarray(np.abs(means[:, None] - means))
    order = np.argsort(values, kind="stable")  # as they are: short integers are sorted faster
    x, index = x[order], index[order]
    rises = x[1:] != x[:-1]
    ends = np.flatnonzero(rises)  # last of each run of equal values but the final one
    run = np.concatenate([[0], np.cumsum(rises)])
    table = np.zeros((n_classes, n_classes))
    below = np.zeros((n_classes, 1), np.int64)
    for start in range(0, ends.size, SEGMENT):
        here = ends[start : start + SEGMENT]
        begin = int(ends[start - 1]) + 1 if start else 0
        stop = int(here[-1]) + 1
        cell = index[begin:stop] * here.size + run[begin:stop] - start
        number = np.bincount(cell, minlength=n_classes * here.size).reshape(n_classes, here.size)
        number = below + np.cumsum(number, axis=1)
        below = number[:, -1:]
        cdf = number / counts[:, None]
        width = x[here + 1] - x[here]
        for i in range(n_classes - 1):
            gap = cdf[i + 1 :] - cdf[i]
            np.multiply(gap, gap, out=gap) if metric == "energy" else np.abs(gap, out=gap)
            gap *= width
            table[i, i + 1 :] += gap.sum(axis=1)
    table = table + table.T
    return np.sqrt(table) if metric == "energy" else table


def combine_bands(per_band: Floats, metric: Metric = "energy") -> Floats:
    """Return one table from (bands, C, C) tables, in any order of bands; see `class_distances`.

    >>> combine_bands(np.array([[[0.0, 1], [1, 0]], [[0.0, 3], [3, 0]]])).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    _check(metric)
    tables = np.asarray(per_band, dtype=np.float64)
    bands, classes = tables.shape[:2]
    if metric == "infinity":
        return np.asarray(tables.max(axis=0))
    table = np.zeros((classes, classes))
    for i in range(classes):
        for j in range(i + 1, classes):
            column = tables[:, i, j].tolist()
            if metric == "mean":
                distance = math.sqrt(math.fsum(value * value for value in column))
            else:
                mean = math.fsum(column) / bands
                distance = mean + math.sqrt(math.fsum((value - mean) ** 2 for value in column) / bands)
            table[i, j] = table[j, i] = distance
    return table


def _check(metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}. {suggestion(metric, METRICS, 'Known metrics')}")
