"""The full set for 16 classes without dask_uncert: in good plain NumPy, as the papers print it, and on dask arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

BINS, THRESHOLDS = 15, np.arange(1, 10) / 10


def distances(classes: int) -> NDArray[np.float64]:
    """Return a table of class distances."""
    table = np.random.default_rng(0).random((classes, classes))
    table += table.T
    np.fill_diagonal(table, 0)
    return table


def numpy_block(p: NDArray[np.float32], y: NDArray[np.uint8], h: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return the counts of a block of (n, C) probabilities: every step is one call over the whole block."""
    n, classes = p.shape
    order = np.argpartition(p, -2, axis=1)[:, -2:]
    rows = np.arange(n)
    swap = p[rows, order[:, 0]] > p[rows, order[:, 1]]
    best, second = np.where(swap, order[:, 0], order[:, 1]), np.where(swap, order[:, 1], order[:, 0])
    confidence, right = p[rows, best], best == y
    one_hot = np.eye(classes, dtype="f4")[y]
    roots = np.clip(np.sqrt(p / classes).sum(axis=1), 0, 1)
    measures = {
        "gini": (1 - np.einsum("ij,ij->i", p, p)) * classes / (classes - 1),
        "entropy": -np.einsum("ij,ij->i", p, np.log(np.maximum(p, 1e-38))) / np.log(classes),
        "fisher_rao": 1 - (np.arccos(roots) / np.arccos(np.sqrt(1 / classes))) ** 2,
        "homophily": np.einsum("ij,ij->i", p @ (h * h), p),
    }
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    places = np.minimum((p * BINS).astype(int), BINS - 1) + BINS * np.arange(classes)
    counts = {
        "confusion": np.bincount((y.astype(int) * classes + best) * classes + second, minlength=classes**3),
        "winning": np.bincount(bins, minlength=BINS),
        "winning_right": np.bincount(bins, right, BINS),
        "winning_confidence": np.bincount(bins, confidence, BINS),
        "classwise": np.bincount(places.ravel(), minlength=BINS * classes),
        "classwise_p": np.bincount(places.ravel(), p.ravel(), BINS * classes),
        "classwise_hits": np.bincount(places.ravel(), one_hot.ravel(), BINS * classes),
        "brier": np.square(p - one_hot).sum(axis=1, dtype="f8").sum(keepdims=True),
    }
    for name, u in measures.items():
        cells = np.clip(u * 1000, 0, 999).astype(int) + 1000 * (y.astype(int) * 2 + right)
        counts[name] = np.bincount(cells, minlength=2000 * classes)
        counts[f"{name}_moments"] = np.array(
            [u.sum(dtype="f8"), np.square(u, dtype="f8").sum(), (u**3).sum(dtype="f8")]
        )
        certain = np.searchsorted(THRESHOLDS, u)
        counts[f"{name}_confusion"] = np.bincount(certain * 2 + right, minlength=2 * (THRESHOLDS.size + 1))
    return counts


def numpy_full(p: NDArray[np.float32], y: NDArray[np.uint8], step: int = 1 << 15) -> dict[str, NDArray[Any]]:
    """Return the counts of all pixels, block by block: with this size arrays stay in the processor's caches."""
    flat, codes, h = p.reshape(-1, p.shape[-1]), y.reshape(-1), distances(p.shape[-1]).astype("f4")
    total: dict[str, NDArray[Any]] = {}
    for start in range(0, codes.size, step):
        part = numpy_block(flat[start : start + step], codes[start : start + step], h)
        total = {name: value + total[name] if total else value for name, value in part.items()}
    return total


def published_full(p: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
    """Return the full set written as the papers print it: sums over classes, class pairs, bins and thresholds."""
    p, classes = p.reshape(-1, p.shape[-1]).astype("f8"), p.shape[-1]
    y, h = y.reshape(-1), distances(classes)
    best = p.argmax(axis=1)
    right, confidence = best == y, p.max(axis=1)
    measures = {
        "gini": 1 - sum(p[:, i] ** 2 for i in range(classes)),
        "entropy": -sum(p[:, i] * np.log(np.maximum(p[:, i], 1e-300)) for i in range(classes)),
        "fisher_rao": np.arccos(np.clip(sum(np.sqrt(p[:, i] / classes) for i in range(classes)), 0, 1)),
        "homophily": sum(h[i, j] ** 2 * p[:, i] * p[:, j] for i in range(classes) for j in range(classes)),
    }
    found: dict[str, Any] = {
        "confusion": [[np.sum((y == i) & (best == j)) for j in range(classes)] for i in range(classes)]
    }
    edges = np.linspace(0, 1, BINS + 1)
    found["winning"] = [
        (np.sum(inside), right[inside].sum(), confidence[inside].sum())
        for inside in ((confidence > a) & (confidence <= b) for a, b in itertools.pairwise(edges))
    ]
    found["classwise"] = [
        (np.sum(inside), (y[inside] == c).sum(), p[inside, c].sum())
        for c in range(classes)
        for inside in ((p[:, c] > a) & (p[:, c] <= b) for a, b in itertools.pairwise(edges))
    ]
    found["brier"] = sum(np.sum((p[:, c] - (y == c)) ** 2) for c in range(classes))
    for name, u in measures.items():
        u = u / u.max()
        found[name] = [np.sort(u[y == c]) for c in range(classes)]
        found[f"{name}_confusion"] = [(np.sum(right & (u <= t)), np.sum(~right & (u > t))) for t in THRESHOLDS]
        risk = np.cumsum(~right[np.argsort(u, kind="stable")]) / np.arange(1, u.size + 1)
        found[f"{name}_aurc"] = risk.mean()
    return found


def published_soft(p: Any, c: Any, u: Any, t: float, sigma: float, d: float) -> list[float]:
    """Return TP, TN, FP, FN of a soft confusion the way [S22] prints them."""
    weight = erf(np.abs(p - t) / (sigma * np.sqrt(2))) * np.exp(-u * d)
    weight = weight * np.where(c, erf((1 - t) / (sigma * np.sqrt(2))), erf(t / (sigma * np.sqrt(2))))
    return [float((weight * cell).sum()) for cell in (c & (p >= t), ~c & (p <= t), ~c & (p > t), c & (p < t))]


def dask_full(p: Any, y: Any) -> dict[str, Any]:
    """Return the full set as a user of dask arrays would write it: expressions, computed together."""
    import dask
    import dask.array as da

    classes = p.shape[-1]
    h = distances(classes)
    best = p.argmax(axis=-1)
    confidence, right = p.max(axis=-1), best == y
    measures = {
        "gini": (1 - (p**2).sum(axis=-1)) * classes / (classes - 1),
        "entropy": -(p * da.log(da.maximum(p, 1e-38))).sum(axis=-1) / np.log(classes),
        "fisher_rao": 1 - (da.arccos(da.clip(da.sqrt(p / classes).sum(axis=-1), 0, 1)) / np.arccos(classes**-0.5)) ** 2,
        "homophily": ((p @ (h**2)) * p).sum(axis=-1),
    }
    wanted: dict[str, Any] = {"confusion": da.bincount((y.astype("i8") * classes + best).ravel(), minlength=classes**2)}
    edges = np.linspace(0, 1, BINS + 1)
    for name, weights in (("n", None), ("hits", right.astype("f4")), ("sum", confidence)):
        wanted[f"winning_{name}"] = da.histogram(confidence, edges, weights=weights)[0]
    for c in range(classes):
        for name, weights in (("n", None), ("hits", (y == c).astype("f4")), ("sum", p[..., c])):
            wanted[f"class_{c}_{name}"] = da.histogram(p[..., c], edges, weights=weights)[0]
    wanted["brier"] = ((p - (y[..., None] == np.arange(classes))) ** 2).sum()
    for name, u in measures.items():
        wanted[name] = da.histogram(u, np.linspace(0, 1, 1001))[0]
        wanted[f"{name}_right"] = da.histogram(u, np.linspace(0, 1, 1001), weights=right.astype("f4"))[0]
        wanted[f"{name}_moments"] = [(u**k).sum() for k in (1, 2, 3)]
    (result,) = dask.compute(wanted)
    return result
