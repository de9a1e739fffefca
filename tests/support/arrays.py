"""Arrays to test formulas with."""

import numpy as np


def by_slice(formula, *arrays):
    """A formula applied to each slice over the first two dimensions, one at a time."""
    rows, columns = arrays[0].shape[:2]
    return np.array([[formula(*(a[i, j] for a in arrays)) for j in range(columns)] for i in range(rows)])


def distance_table(rng, classes):
    """A drawn table of class distances: symmetric, zero on the diagonal."""
    table = np.triu(rng.random((classes, classes)), 1)
    return table + table.T


def probability_vectors(rng, shape, classes):
    """Vectors from nearly uniform to certain, with vertices, ties, zeros and the centre among them, float64."""
    p = rng.dirichlet(np.full(classes, rng.choice([0.05, 0.5, 5.0])), shape)
    kind = rng.integers(0, 6, shape)
    p[kind == 0] = np.eye(classes)[rng.integers(0, classes, (kind == 0).sum())]
    p[kind == 1] = 1 / classes
    p[kind == 2] = np.round(p[kind == 2] * 4) / 4
    total = p.sum(axis=-1, keepdims=True)
    return np.divide(p, total, out=np.full_like(p, 1 / classes), where=total > 0)
