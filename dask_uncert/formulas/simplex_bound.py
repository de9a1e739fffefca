"""An upper bound of q'Sq over the simplex for many classes: the doubly non-negative relaxation.

If ``t E - S = P + N`` with E all ones, P positive semidefinite and N non-negative, then ``q'Sq <= t`` on the
simplex. Alternating projections look for the smallest such t; the bound is then taken from N alone, with the
smallest eigenvalue of the rest added, so that it holds after any number of iterations.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.simplex_ascent import concave_bound
from dask_uncert.formulas.typing import Floats

ITERATIONS = 1000
"""64 classes: at most 3 s on one core; random tables meet their maximum to 1e-11 after some 500."""


def relaxed_bound(s: Floats, enough: float = 0.0, iterations: int = ITERATIONS) -> tuple[float, Floats]:
    """Return an upper bound, lowered until `enough`, and a point close to the maximum; S up to about 1."""
    classes = len(s)
    z = np.full_like(s, 1 / classes**2)
    u = np.zeros_like(s)
    penalty = classes / 4.0
    bound, hint = float(s.max()) * (1 - 1 / classes), np.full(classes, 1 / classes)
    for iteration in range(1, iterations + 1):
        x = _semidefinite(z - u + s / penalty)
        mixed = 1.6 * x - 0.6 * z  # over-relaxed
        before = z
        z = _onto_simplex(mixed + u)
        u = u + mixed - z
        if iteration % 25 == 0:
            hint = np.clip(z.sum(axis=0), 0, None)
            hint /= hint.sum()
            bound = min(bound, _bound(s, penalty * u, hint))
            if bound <= enough:
                break
            # keep the two residuals alike; the scaled dual changes with the penalty
            primal = np.linalg.norm(x - z)
            dual = np.linalg.norm(z - before)
            if iteration <= iterations // 2 and primal > 5 * dual:
                penalty, u = penalty * 2, u / 2
            elif iteration <= iterations // 2 and dual > 5 * primal:
                penalty, u = penalty / 2, u * 2
    return bound, hint


def _bound(s: Floats, dual: Floats, q: Floats) -> float:
    """Return the bound of the multipliers: non-negative N = t - dual, and the eigenvalues of the rest."""
    dual = (dual + dual.T) / 2
    t = float(dual.max())
    # t E - S - N = dual - S, up to the eigenvalues that are still below 0 (q'q <= 1)
    lowest = float(np.linalg.eigvalsh(dual - s)[0])
    return min(t + max(0.0, -lowest) + 1e-14 * len(s), concave_bound(s + (t - dual), q) + 1e-14 * len(s))


def _semidefinite(a: Floats) -> Floats:
    values, vectors = np.linalg.eigh((a + a.T) / 2)
    kept = values > 0
    return np.asarray((vectors[:, kept] * values[kept]) @ vectors[:, kept].T)


def _onto_simplex(a: Floats) -> Floats:
    """Return the nearest table with non-negative entries of sum 1."""
    ordered = np.sort(a, axis=None)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
    level = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(a - level, 0.0))
