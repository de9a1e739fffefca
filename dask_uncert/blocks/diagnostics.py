"""What exactly is wrong with an input, over the whole of it: read only once a pass was refused.

A pass stops at the first block it cannot use; these Counters then say how much is wrong in all, so that the
message does not depend on how the scene was cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.classification import (
    REFERENCE_GAPS,
    counted_pixels,
    largest_uncertainty,
    off_range,
    off_weights,
)
from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.blocks.ensemble import members_of
from dask_uncert.formulas.array_dispatch import tolerance as tolerance_of
from dask_uncert.formulas.labels import UNKNOWN, class_indices
from dask_uncert.spec.request import Request
from dask_uncert.summaries.weighted_decisions import LARGEST

SHOWN = 10


def unknown_codes(
    request: Request, codes: NDArray[Any], gaps: NDArray[np.uint8] | None = None
) -> Counter[Any]:
    """How often each code occurs that is neither in the class table nor to be ignored nor missing."""
    flat = codes.ravel()
    unknown = class_indices(codes, request.codes, request.ignore) == UNKNOWN
    if gaps is not None:
        unknown &= ~np.isin(gaps.ravel(), REFERENCE_GAPS)
    values, numbers = np.unique(flat[unknown], return_counts=True)
    return Counter(dict(zip(values.tolist(), numbers.tolist(), strict=True)))


def say_codes(found: Counter[Any], request: Request, where: str) -> str:
    """One paragraph about unknown codes."""
    listed = ", ".join(f"{code} ({number} pixels)" for code, number in sorted(found.items())[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    known = ", ".join(str(one.code) for one in request.classes)
    ignored = ", ".join(map(str, request.ignore)) or "none"
    odd = any(isinstance(code, float) and not code.is_integer() for code in found)
    what = "codes that are not in the class table" + (" or are no whole numbers" if odd else "")
    return (
        f"reference: {where} holds {what}: {listed}{more}. The class table has {known}; ignored: {ignored}. "
        f"Add the codes to `classes` or to `ignore`."
    )


class OutOfRange:
    """Counted pixels whose values are out of range: how many, how far, and the first of them."""

    def __init__(
        self, number: int, low: float, high: float, sums: tuple[float, float], first: tuple[int, ...]
    ):
        self.number, self.low, self.high, self.sums, self.first = number, low, high, sums, first

    def __add__(self, other: OutOfRange) -> OutOfRange:
        if not (self.number and other.number):
            return self if self.number else other
        return OutOfRange(
            self.number + other.number,
            min(self.low, other.low),
            max(self.high, other.high),
            (min(self.sums[0], other.sums[0]), max(self.sums[1], other.sums[1])),
            min(self.first, other.first),
        )


NONE_OFF = OutOfRange(0, 0.0, 0.0, (0.0, 0.0), ())


def off_probabilities(
    request: Request, arrays: Mapping[str, NDArray[Any]], class_axis: int | None, offset: tuple[int, ...]
) -> OutOfRange:
    """The counted pixels of a block that are off the simplex by more than the tolerance."""
    off, low, high, sums = _simplex(
        request, arrays["probabilities"], class_axis, request.scale, request.tolerance
    )
    off &= counted_pixels(request, arrays) >= 0
    if not off.any():
        return NONE_OFF
    return OutOfRange(
        int(np.count_nonzero(off)),
        float(low[off].min()),
        float(high[off].max()),
        (float(sums[off].min()), float(sums[off].max())),
        _place(request, arrays, off, offset),
    )


def off_samples(
    request: Request, arrays: Mapping[str, NDArray[Any]], class_axis: int | None, offset: tuple[int, ...]
) -> OutOfRange:
    """The counted pixels of a block one of whose samples is off the simplex; `first` ends in that sample's number.

    Pixels that lack a sample do not count.
    """
    members = members_of(arrays)
    counted = counted_pixels(request, arrays) >= 0
    scale, tolerance = request.sample_scale, request.sample_tolerance
    for member in members:
        counted &= ~np.isnan(_simplex(request, member, class_axis, scale, tolerance)[3])
    total, anywhere = NONE_OFF, np.zeros(counted.size, np.bool_)
    for number, member in enumerate(members):
        off, low, high, sums = _simplex(request, member, class_axis, scale, tolerance)
        off &= counted
        if off.any():
            total += OutOfRange(
                1,
                float(low[off].min()),
                float(high[off].max()),
                (float(sums[off].min()), float(sums[off].max())),
                (*_place(request, arrays, off, offset), number),
            )
        anywhere |= off
    return OutOfRange(int(np.count_nonzero(anywhere)), total.low, total.high, total.sums, total.first)


def _simplex(
    request: Request, values: NDArray[Any], class_axis: int | None, scale: float | None, given: float | None
) -> tuple[NDArray[np.bool_], NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Which vectors are off the simplex, their least and largest value and their sum once clipped, all (n,)."""
    stored, dtype = three_axes(values, class_axis, scale)
    tolerance = rounding_of(dtype, len(request.classes), scale, given).tolerance
    low, high = stored.min(axis=1).ravel(), stored.max(axis=1).ravel()
    sums = np.clip(stored, 0.0, 1.0).sum(axis=1, dtype=np.float64).ravel()
    off = (low < -tolerance) | (high > 1 + tolerance) | (np.abs(sums - 1) > tolerance)
    return off, low, high, sums


def _place(
    request: Request, arrays: Mapping[str, NDArray[Any]], off: NDArray[np.bool_], offset: tuple[int, ...]
) -> tuple[int, ...]:
    """Where in the scene the first of these pixels lies."""
    place = np.unravel_index(int(np.flatnonzero(off)[0]), arrays["reference"].shape[: len(offset)])
    return tuple(int(i) + o for i, o in zip(place, offset, strict=True))


def say_probabilities(
    found: OutOfRange, name: str, dims: tuple[str, ...], dtype: np.dtype[Any], tolerance: float, where: str
) -> str:
    """One paragraph about probabilities out of tolerance."""
    first = ", ".join(f"{d} = {i}" for d, i in zip(dims, found.first, strict=True))
    return (
        f"{name}: {where} holds {found.number} counted pixels that are no probabilities within "
        f"{tolerance:g} (for {dtype}): values from {found.low:.7g} to {found.high:.7g}, sums (clipped) from "
        f"{found.sums[0]:.7g} to {found.sums[1]:.7g}; the first at {first}. If these are logits or scaled "
        f"numbers, convert them or declare `scale`; to accept rounding this large, set `tolerance`."
    )


def off_uncertainties(request: Request, arrays: Mapping[str, NDArray[Any]]) -> OutOfRange:
    """The counted pixels of a block whose predicted uncertainty is out of range."""
    u = arrays["uncertainty"].ravel()
    off = u[(counted_pixels(request, arrays) >= 0) & off_range(request, u)]
    if not off.size:
        return NONE_OFF
    return OutOfRange(off.size, float(off.min()), float(off.max()), (0.0, 0.0), ())


def off_weighted(request: Request, arrays: Mapping[str, NDArray[Any]]) -> OutOfRange:
    """The counted pixels of a block whose weight is out of range."""
    weights = arrays["weight"].ravel()
    off = weights[(counted_pixels(request, arrays) >= 0) & off_weights(weights)]
    if not off.size:
        return NONE_OFF
    return OutOfRange(off.size, float(off.min()), float(off.max()), (0.0, 0.0), ())


def say_weights(found: OutOfRange, where: str) -> str:
    """One paragraph about weights out of range."""
    return (
        f"weight: {where} holds {found.number} counted pixels outside [0, {LARGEST:g}]: from {found.low:g} to "
        f"{found.high:g}. Give weights in a larger unit, or mask those pixels out."
    )


def off_shares(request: Request, arrays: Mapping[str, NDArray[Any]]) -> OutOfRange:
    """The pixels of a block that would count, but for a share of the reference that is out of range."""
    index = counted_pixels(request, arrays)
    reference = arrays["reference"].reshape(index.size, -1)
    off = reference[index == UNKNOWN]
    if not off.size:
        return NONE_OFF
    return OutOfRange(len(off), float(off.min()), float(off.max()), (0.0, 0.0), ())


def say_shares(found: OutOfRange, dtype: np.dtype[Any], raters: int | None, where: str) -> str:
    """One paragraph about shares of a fuzzy reference that are out of range, or no shares of so many raters."""
    allowed = tolerance_of(dtype)
    if raters is not None and found.low >= -allowed and found.high <= 1 + allowed:
        return (
            f"reference: {where} holds {found.number} counted pixels with shares that are no multiples of 1/{raters} "
            f"in {dtype}. Correct `raters`, or leave it out: shares are then counted in intervals."
        )
    return (
        f"reference: {where} holds {found.number} counted pixels with shares outside [0, 1] beyond "
        f"{allowed:g} (for {dtype}): from {found.low:.7g} to {found.high:.7g}. Scale them, or mask those "
        f"pixels out."
    )


def say_uncertainties(found: OutOfRange, request: Request, where: str) -> str:
    """One paragraph about predicted uncertainties out of range."""
    most = largest_uncertainty(request)
    return (
        f"uncertainty: {where} holds {found.number} counted pixels outside [0, {most:g}]: from {found.low:g} to "
        f"{found.high:g}. Scale it, or mask those pixels out."
    )
