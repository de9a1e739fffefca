"""Local ascent of q'Sq over the simplex, to full precision, and the bound that concavity gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Floats


def ascend(s: Floats, start: Floats) -> Floats:
    """Return a point at least as high as `start` that no class and no direction inside its face can improve.

    S (C, C) symmetric with zero diagonal and entries up to about 1. Each step maximises along a line exactly:
    towards the stationary point of the face, along a convex direction to the face's edge, or towards a better
    class.
    """
    q = start.copy()
    settled = 0
    for _ in range(30 * len(q)):
        support = np.flatnonzero(q > 0)
        direction = _inside(s[np.ix_(support, support)], q[support]) if settled < 2 else None
        if direction is not None:
            q = _walk(q, support, direction)
            # after two full steps to a face's stationary point only rounding is left
            settled = settled + 1 if np.count_nonzero(q) == len(support) else 0
            continue
        settled = 0
        height = s @ q
        value = float(q @ height)
        best = int(np.argmax(height))
        rise = height[best] - value
        if rise <= 4e-16 * max(value, 1e-300) or q[best] > 0:
            break
        step = rise / (2 * height[best] - value)
        q *= 1 - step
        q[best] += step
    return np.asarray(q / q.sum())


def concave_bound(s: Floats, q: Floats) -> float:
    """Return an upper bound of x'Sx on the simplex: the tangent plane at q plus the convexity of S."""
    height = s @ q
    return float(2 * height.max() - q @ height + 2 * max(0.0, convexity(s) - 1e-15 * len(s)))


def convexity(s: Floats) -> float:
    """Return the largest eigenvalue of S along directions of sum 0."""
    centred = s - s.mean(axis=0) - s.mean(axis=1)[:, None] + s.mean()
    # the centre's own direction has eigenvalue 0; it is moved below all others
    return float(np.linalg.eigvalsh(centred - np.full_like(s, np.abs(s).max()))[-1])


def _inside(face: Floats, q: Floats) -> Floats | None:
    """Return a direction of ascent within the face (1 is the best step or far too long); None at the top."""
    k = len(q)
    if k == 1:
        return None
    values, vectors = np.linalg.eigh(face - face.mean(axis=0) - face.mean(axis=1)[:, None] + face.mean())
    slope = face @ q
    slope = slope - slope.mean()
    along = vectors.T @ slope
    strict = values < -1e-14 * k
    # uphill along a convex direction, or a flat one that has a slope, as far as the face goes
    endless = (values > 1e-14 * k) | (~strict & (np.abs(along) > 1e-13))
    if endless.any():
        steepest = np.flatnonzero(endless)[-1]
        direction = vectors[:, steepest] - vectors[:, steepest].mean()
        return np.asarray(1e8 * (direction if along[steepest] >= 0 else -direction))
    newton = vectors[:, strict] @ (along[strict] / -values[strict])
    newton = newton - newton.mean()
    gain = float(slope @ newton)
    if gain <= 1e-30 or np.abs(newton).max() <= 2e-16:
        return None
    return np.asarray(newton)


def _walk(q: Floats, support: NDArray[np.intp], direction: Floats) -> Floats:
    """Return the point along the direction, at its full length or at the edge of the face."""
    falling = direction < 0
    reach = q[support][falling] / -direction[falling]
    length = min(1.0, float(reach.min()))
    moved = q.copy()
    moved[support] = np.clip(q[support] + length * direction, 0.0, None)
    if length < 1.0:
        moved[support[falling][int(np.argmin(reach))]] = 0.0
    return np.asarray(moved / moved.sum())
