"""The global maximum of q'Sq over the simplex, with a proof of how large it can be.

S holds squared distances: symmetric, non-negative, zero diagonal. Three ways, tried in this order:

1. **Ascent** (`simplex_ascent.ascend`) finds a good point. Where q'Sq is concave along the simplex (S is the
   squared distances of points in a Euclidean space) its gradient there bounds the maximum.
2. **Bound**, beyond 20 classes: a doubly non-negative relaxation (`simplex_bound`). It often meets the point.
3. **Supports.** A maximum is attained at a point q whose face is strictly concave: on a flat or convex
   direction one can walk to a smaller face without loss. Subfaces inherit strict concavity, so all such faces
   grow from single classes, one class at a time. On a strictly concave face the only stationary point solves
   a linear system, kept up to date by pivoting: another class costs one rank-one update of the rest. Beyond
   20 classes it stops at a budget of work, and the bound remains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.simplex_ascent import ascend, concave_bound
from dask_uncert.formulas.simplex_bound import relaxed_bound
from dask_uncert.formulas.typing import Floats

ALWAYS_EXACT = 20
"""Largest number of classes for which the supports are always enumerated: 2**20 faces, under 2 s."""
ROUNDING = 1e-12
"""Allowance, relative, for rounding in an exact maximum; flat directions below it count as flat."""
EXACT = 1e-11
"""A bound this close to the value, relative, makes it exact."""
SMALL_GAP = 1e-6
"""Beyond `ALWAYS_EXACT` classes a smaller gap is not worth an enumeration."""
FLAT = 1e-13
BUDGET = 12_000_000
"""Numbers the enumeration may hold at once, and twice in total, beyond `ALWAYS_EXACT` classes: some 3 s."""


@dataclass(frozen=True)
class Certificate:
    """Proof that no point exceeds `upper_bound`; `gap`: its relative excess over the value; `reached`: how."""

    kind: Literal["exact", "bound"]
    upper_bound: float
    gap: float
    reached: str


class SimplexMaximum(NamedTuple):
    """The largest q'Sq found, the q where it is attained, and the certificate."""

    value: float
    argument: Floats
    certificate: Certificate


def simplex_maximum(squared_distances: ArrayLike) -> SimplexMaximum:
    """Return the global maximum of q'Sq over the simplex, with a certificate of how large it can be.

    ``value <= max q'Sq <= certificate.upper_bound``, and the same bits on every run.

    Parameters
    ----------
    squared_distances : array_like
        S (C, C): symmetric, non-negative, zero diagonal.

    Returns
    -------
    SimplexMaximum
        The value, the argument q (C,) and a `Certificate`. Range of the value [0, max S), in the unit of S.

    Raises
    ------
    ValueError
        Unless S is square, finite, symmetric and non-negative with zero diagonal.

    Notes
    -----
    The standard quadratic program ``max q'Sq`` over ``q >= 0, sum q = 1``. Up to 20 classes the certificate
    is ``"exact"``: the bound exceeds the value by the allowance for rounding only (1e-12, relative). Beyond,
    it is exact where the form is concave or its strictly concave faces are few; otherwise ``"bound"`` with
    its gap.

    References
    ----------
    [C23] (7)-(8).

    Examples
    --------
    >>> result = simplex_maximum([[0, 1, 1], [1, 0, 4], [1, 4, 0]])
    >>> result.value, result.argument.tolist(), result.certificate.kind
    (2.0, [0.0, 0.5, 0.5], 'exact')
    """
    table = np.array(squared_distances, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise ValueError(f"a square table expected, found shape {table.shape}")
    allowed = np.isfinite(table) & (table >= 0) & (table == table.T)
    if not allowed.all() or table.diagonal().any():
        raise ValueError("squared distances must be finite, non-negative, symmetric and zero on the diagonal")
    largest = float(table.max())
    if largest == 0:
        certificate = Certificate("exact", 0.0, 0.0, "every class is at distance 0")
        return SimplexMaximum(0.0, np.eye(len(table))[0], certificate)
    unit = 2.0 ** int(np.frexp(largest)[1])  # a power of two: scaling costs no digit
    s = table / unit
    q, upper, reached = _solved(s.tobytes(), len(s))
    value = float(q @ s @ q)
    kind: Literal["exact", "bound"] = "exact" if upper <= value * (1 + EXACT) else "bound"
    upper = max(upper, value * (1 + ROUNDING))
    return SimplexMaximum(value * unit, q.copy(), Certificate(kind, upper * unit, upper / value - 1, reached))


@lru_cache(maxsize=64)  # a pass, its report and the cases of a cohort ask for the same, which may take seconds
def _solved(table: bytes, classes: int) -> tuple[Floats, float, str]:
    """Return what `_solve` finds for S (classes, classes), given by its bytes; callers must not write to the point."""
    return _solve(np.frombuffer(table).reshape(classes, classes))


def _solve(s: Floats) -> tuple[Floats, float, str]:
    """Return a point, an upper bound and how it was reached; S scaled to a maximum of about 1."""
    classes = len(s)
    q = ascend(s, np.full(classes, 1 / classes))
    upper = concave_bound(s, q)
    if upper <= float(q @ s @ q) * (1 + EXACT):
        return q, upper, "concave along the simplex"
    relaxed = np.inf
    if classes > ALWAYS_EXACT:
        q = max((q, *(ascend(s, vertex) for vertex in np.eye(classes))), key=lambda q: float(q @ s @ q))
        upper = concave_bound(s, q)
        if upper <= float(q @ s @ q) * (1 + EXACT):
            return q, upper, "concave along the simplex"
        relaxed, hint = relaxed_bound(s, enough=float(q @ s @ q) * (1 + EXACT / 2))
        q = max((q, ascend(s, hint)), key=lambda q: float(q @ s @ q))
        if relaxed <= float(q @ s @ q) * (1 + SMALL_GAP):
            return q, relaxed, "doubly non-negative relaxation"
    q, faces, complete = search_supports(s, q, None if classes <= ALWAYS_EXACT else BUDGET)
    if complete:
        return q, float(q @ s @ q) * (1 + ROUNDING), f"all {faces} strictly concave faces"
    return q, relaxed, "doubly non-negative relaxation"


class _Faces(NamedTuple):
    """Faces whose last class is the same; m faces, classes after the last are candidates (r of them).

    Coordinates are relative to the first class 0': q = e_0' + sum y_a (e_a - e_0').
    """

    curvature: Floats  # (m, r, r) the Gram matrix after the members are eliminated
    pull: Floats  # (m, r) its diagonal likewise
    solved: Floats  # (m, C, r) response of the members to a candidate
    y: Floats  # (m, C) the stationary point
    value: Floats  # (m,) q'Sq there


def search_supports(s: Floats, q: Floats, budget: int | None = None) -> tuple[Floats, int, bool]:
    """Return the best stationary point of all strictly concave faces, their number, whether all were seen.

    S scaled to a maximum of about 1; q a good point to start from; `budget` limits memory and work.
    """
    classes = len(s)
    flat, faces, work = FLAT * float(s.max()), classes, 0
    for first in range(classes - 1):
        rest = np.arange(first + 1, classes)
        gram = (s[first, rest, None] + s[first, rest] - s[np.ix_(rest, rest)]) / 2
        solved, y = np.zeros((1, classes, len(rest))), np.zeros((1, classes))
        root = _Faces(gram[None], s[None, first, rest], solved, y, np.zeros(1))
        waiting: list[list[_Faces]] = [[] for _ in range(classes)]
        waiting[first].append(root)
        held = 0
        for last in range(first, classes - 1):
            if not waiting[last]:
                continue
            parents = _Faces(*(np.concatenate(parts) for parts in zip(*waiting[last], strict=True)))
            waiting[last] = []
            held -= 0 if last == first else _size(parents)
            for candidate in range(last + 1, classes):
                children = _extend(parents, candidate - last - 1, candidate, flat)
                if not len(children.value):
                    continue
                faces += len(children.value)
                q = _improve(s, q, children, first)
                if candidate < classes - 1:
                    waiting[candidate].append(children)
                    held += _size(children)
                    work += _size(children)
                if budget is not None and (held > budget or work > 2 * budget):
                    return q, faces, False
    return q, faces, True


def _size(faces: _Faces) -> int:
    return faces.curvature.size + faces.solved.size


def _extend(parents: _Faces, at: int, candidate: int, flat: float) -> _Faces:
    """Return the parents with one class more, where they stay strictly concave."""
    keep = np.flatnonzero(parents.curvature[:, at, at] > flat)
    after = slice(at + 1, None)
    row = parents.curvature[keep, at, after]
    pivot = parents.curvature[keep, at, at]
    pull = parents.pull[keep, at]
    answer = row / pivot[:, None]
    mine = parents.solved[keep, :, at]
    step = pull / (2 * pivot)
    y = parents.y[keep] - mine * step[:, None]
    y[:, candidate] = step
    solved = parents.solved[keep, :, after] - mine[:, :, None] * answer[:, None, :]
    solved[:, candidate] = answer
    return _Faces(
        parents.curvature[keep, after, after] - row[:, :, None] * answer[:, None, :],
        parents.pull[keep, after] - answer * pull[:, None],
        solved,
        y,
        parents.value[keep] + pull * step,
    )


def _improve(s: Floats, q: Floats, faces: _Faces, first: int) -> Floats:
    """Return q, or a higher stationary point of the faces that lies inside its face."""
    best = float(q @ s @ q)
    y = faces.y
    inside = (faces.value > best * (1 + 1e-15)) & (y.min(axis=1) >= -1e-9) & (y.sum(axis=1) <= 1 + 1e-9)
    rows = np.flatnonzero(inside)
    for row in rows[np.argsort(-faces.value[rows], kind="stable")]:
        if faces.value[row] <= best * (1 + 1e-15):
            break
        point = np.clip(y[row], 0, None)
        point[first] = max(1 - float(y[row].sum()), 0.0)
        point = ascend(s, point / point.sum())  # ascent removes the rounding of the updates
        height = float(point @ s @ point)
        if height > best:
            q, best = point, height
    return q
