"""Residuals measured in stated uncertainty, value by value.

Outputs come first, (D, ...), and every step is one elementwise operation in a fixed order: a value never
depends on its neighbours or on how a scene was cut, which batched linear algebra does not guarantee. No
epsilon is added anywhere; an invalid variance or covariance shows.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.typing import Bools, Floats


def nssr_of_variances(residuals: Floats, variances: Floats) -> Floats:
    """Normalised sum of squared residuals ``sum_i r_i**2 / v_i``, two of (D, ...) to (...). [J22] (50)

    Range [0, inf] for positive variances; meaningless for others, NaN for 0/0 and inf/inf.

    >>> import numpy as np
    >>> nssr_of_variances(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]])).tolist()
    [2.0]
    """
    total = np.zeros(residuals.shape[1:])
    with np.errstate(all="ignore"):
        for residual, variance in zip(residuals, variances, strict=True):
            total = total + residual * residual / variance
    return total


def nssr_of_covariances(residuals: Floats, covariances: Floats) -> tuple[Floats, Floats]:
    """``r' S^-1 r`` and the least pivot of S, (D, ...) and (D, D, ...) to two of (...). [J22] (50)

    By a Cholesky factor of S's symmetric part ``(S + S') / 2``. S is positive definite where every pivot is
    positive; elsewhere the pivot given is the first that is not, and NSSR is NaN.

    >>> import numpy as np
    >>> s = np.array([[2.0, 1.0], [1.0, 2.0]])[:, :, np.newaxis]
    >>> [part.round(12).tolist() for part in nssr_of_covariances(np.array([[3.0], [0.0]]), s)]
    [[6.0], [1.5]]
    """
    shape = residuals.shape[1:]
    total, least = np.zeros(shape), np.full(shape, np.inf)
    rows: list[list[Floats]] = []
    whitened: list[Floats] = []
    with np.errstate(all="ignore"):
        for i, residual in enumerate(residuals):
            row: list[Floats] = []
            for j in range(i):
                value = 0.5 * covariances[i, j] + 0.5 * covariances[j, i]
                for mine, theirs in zip(row, rows[j], strict=False):
                    value = value - mine * theirs
                row.append(value / rows[j][j])
            pivot, white = covariances[i, i], residual
            for mine, other in zip(row, whitened, strict=True):
                pivot, white = pivot - mine * mine, white - mine * other
            least = np.where(least > 0, np.minimum(least, pivot), least)
            rows.append([*row, np.sqrt(pivot)])
            whitened.append(white / rows[i][i])
            total = total + whitened[i] * whitened[i]
    return np.where(least > 0, total, np.nan), least


def is_symmetric(covariances: Floats, rounding: float) -> Bools:
    """Return where S equals its transpose within rounding, (D, D, ...) to (...).

    ``|S_ij - S_ji| <= 8 rounding sqrt(S_ii S_jj)``, with the relative rounding of what S was stored in.

    >>> import numpy as np
    >>> is_symmetric(np.array([[[1.0, 1.0]], [[0.5, 0.5]], [[0.5, 0.6]], [[1.0, 1.0]]]).reshape(2, 2, 2), 1e-7)
    array([ True, False])
    """
    same = np.ones(covariances.shape[2:], bool)
    with np.errstate(all="ignore"):
        roots = [np.sqrt(np.abs(row[i])) for i, row in enumerate(covariances)]
        for i in range(len(roots)):
            for j in range(i):
                above, below = covariances[j, i], covariances[i, j]
                near = np.abs(above - below) <= 8 * rounding * (roots[i] * roots[j])
                same &= near | (above == below)
    return same
