"""What exactly is wrong with an input, over the whole of it: read only once a pass was refused.

A pass stops at the first block it cannot use; these findings add over all blocks, so that the message does not depend on
how the scene was cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.classification import (
    REFERENCE_GAPS,
    counted_pixels,
    invalid_uncertainties,
    invalid_weights,
    largest_uncertainty,
)
from dask_uncert.blocks.decided import decision_indices
from dask_uncert.blocks.encoding import GAPS, ZONE_GAPS, rounding_of, three_axes
from dask_uncert.blocks.zones import zone_indices
from dask_uncert.errors import listed, plural
from dask_uncert.formulas.labels import UNKNOWN, class_indices
from dask_uncert.formulas.typing import Bools, Floats
from dask_uncert.inputs.cube import SAMPLE, Cube
from dask_uncert.inputs.scene import Encoding, Scene
from dask_uncert.spec.request import Request
from dask_uncert.summaries.weighted_decisions import LARGEST

SHOWN = 10


@dataclass(frozen=True)
class OutOfRange:
    """Counted pixels whose values are out of range: their number, extreme values and sums, and the first of them."""

    number: int = 0
    low: float = 0.0
    high: float = 0.0
    sums: tuple[float, float] = (0.0, 0.0)
    first: tuple[int, ...] = ()

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


Finding = Counter[Any] | OutOfRange


def inspect_block(
    problem: str, request: Request, arrays: Mapping[str, Any], encoding: Encoding, offset: tuple[int, ...]
) -> Finding:
    """Return what is wrong with a block; problem: "codes" or the name of an input, as of an UnusableBlockError."""
    if problem == "codes":
        return _unknown_codes(request, arrays["reference"], arrays.get(GAPS))
    if problem == "zones":
        return _unknown_zones(request, arrays["zones"].ravel(), arrays.get(ZONE_GAPS))
    index = counted_pixels(request, arrays)
    if problem == "prediction":
        unknown = (decision_indices(request, arrays["prediction"]) < 0) & (index >= 0)
        return _numbers(arrays["prediction"].ravel()[unknown])
    if problem == "reference":
        wrong = np.flatnonzero(index == UNKNOWN)
        values = arrays["reference"].reshape(index.size, -1)[wrong].astype(np.float64)
        if not wrong.size:
            return OutOfRange()
        sums, at = values.sum(axis=1), np.unravel_index(int(wrong[0]), arrays["reference"].shape[: len(offset)])
        first = tuple(int(i) + o for i, o in zip(at, offset, strict=True))
        ends = float(values.min()), float(values.max())
        return OutOfRange(wrong.size, *ends, (float(sums.min()), float(sums.max())), first)
    if problem in ("uncertainty", "weight"):
        counted = arrays[problem].ravel()[index >= 0]
        invalid = invalid_weights(counted) if problem == "weight" else invalid_uncertainties(request, counted)
        return _values_out_of_range(counted[invalid])
    stacked, counted = problem == "samples", index >= 0
    shape = arrays["reference"].shape[: len(offset)]
    members = arrays["samples"] if stacked else [arrays["probabilities"]]
    for member in members if stacked else ():  # pixels that lack a sample do not count
        counted &= ~np.isnan(_off_simplex(member, problem, request, encoding)[-1])
    total, anywhere = OutOfRange(), np.zeros(counted.size, np.bool_)
    for number, member in enumerate(members):
        off, low, high, sums = _off_simplex(member, problem, request, encoding)
        off &= counted
        if off.any():
            at = np.unravel_index(int(np.flatnonzero(off)[0]), shape)
            first = tuple(int(i) + o for i, o in zip(at, offset, strict=True))
            total += OutOfRange(
                1,
                float(low[off].min()),
                float(high[off].max()),
                (float(sums[off].min()), float(sums[off].max())),
                (*first, number) if stacked else first,
            )
        anywhere |= off
    return replace(total, number=int(np.count_nonzero(anywhere)))


def _off_simplex(
    values: NDArray[Any], problem: str, request: Request, encoding: Encoding
) -> tuple[Bools, NDArray[Any], NDArray[Any], Floats]:
    """Return which vectors are off the simplex, their extreme values, and their sums once clipped, all (n,)."""
    precision = encoding.samples if problem == "samples" else encoding.probabilities
    stored, dtype = three_axes(values, encoding.class_axis, precision.scale)
    tolerance = rounding_of(dtype, len(request.classes), precision).tolerance
    low, high = stored.min(axis=1).ravel(), stored.max(axis=1).ravel()
    with np.errstate(invalid="ignore"):  # signaling NaN, in damaged files
        sums = np.clip(stored, 0.0, 1.0).sum(axis=1, dtype=np.float64).ravel()
    off = (low < -tolerance) | (high > 1 + tolerance) | (np.abs(sums - 1) > tolerance)
    return off, low, high, sums


def _unknown_codes(request: Request, codes: NDArray[Any], gaps: NDArray[np.uint8] | None) -> Counter[Any]:
    """Return how often each code occurs that is neither in the class table nor ignored nor missing."""
    unknown = class_indices(codes, request.codes, request.ignore) == UNKNOWN
    if gaps is not None:
        unknown &= ~np.isin(gaps.ravel(), REFERENCE_GAPS)
    return _numbers(codes.ravel()[unknown])


def _unknown_zones(request: Request, codes: NDArray[Any], gaps: NDArray[np.uint8] | None) -> Counter[Any]:
    """Return how often each number occurs that is neither the code of a zone nor missing."""
    unknown = zone_indices(request, codes, None if gaps is None else gaps.ravel())[0] == UNKNOWN
    return _numbers(codes[unknown])


def _numbers(codes: NDArray[Any]) -> Counter[Any]:
    """Return how often each code occurs."""
    values, numbers = np.unique(codes, return_counts=True)
    return Counter(dict(zip(values.tolist(), numbers.tolist(), strict=True)))


def _values_out_of_range(values: NDArray[Any]) -> OutOfRange:
    """Return the finding for invalid values, a row or number for each pixel."""
    return OutOfRange(len(values), float(values.min()), float(values.max())) if values.size else OutOfRange()


def problem_message(problem: str, finding: Any, request: Request, scene: Scene) -> str:
    """Return one paragraph about what `inspect_block` has found in all blocks."""
    if problem == "codes":
        return unknown_codes_message(finding, request, scene.cubes["reference"].where)
    if problem == "zones":
        return _unknown_zones_message(finding, request, scene.cubes["zones"].where)
    if problem == "prediction":
        where = scene.cubes["prediction"].where
        return (
            f"prediction: {where} holds codes of no class at counted pixels: {_listed(finding)}. The class table has "
            f"{', '.join(map(str, request.codes))}. Add the codes to `classes`; or declare them as `nodata` of the "
            f"prediction: their pixels are then left out."
        )
    cubes = [cube for cube in scene.cubes.values() if cube.kind == problem and cube.gap is None]
    more = f" and {len(cubes) - 1} more" if len(cubes) > 1 else ""
    start = f"{problem}: {cubes[0].where}{more} holds {plural(finding.number, 'counted pixel')}"
    if problem == "uncertainty":
        return (
            f"{start} outside [0, {largest_uncertainty(request):g}]: from {finding.low:g} to {finding.high:g}. Scale it, "
            f"or mask those pixels out."
        )
    if problem == "weight":
        return (
            f"{start} outside [0, {LARGEST:g}]: from {finding.low:g} to {finding.high:g}. Give weights in a larger unit, "
            f"or mask those pixels out."
        )
    if problem == "reference":
        first = ", ".join(f"{dim} = {i}" for dim, i in zip(scene.dims, finding.first, strict=True))
        return f"{start} with shares {_shares_problem(finding, cubes[0], request)} The first is at {first}."
    dims = (*scene.dims, SAMPLE) if problem == "samples" else scene.dims
    dtype = cubes[0].dtype
    tolerance = rounding_of(dtype, len(request.classes), cubes[0].precision).tolerance
    first = ", ".join(f"{dim} = {i}" for dim, i in zip(dims, finding.first, strict=True))
    return (
        f"{start} whose values are not probabilities within {tolerance:g} (for {dtype}): values from {finding.low:.7g} to "
        f"{finding.high:.7g}, sums (clipped) from {finding.sums[0]:.7g} to {finding.sums[1]:.7g}; the first at {first}. "
        f"If these are logits or scaled numbers, convert them or declare `scale`; to accept rounding this large, set "
        f"`tolerance`."
    )


def _unknown_zones_message(counts: Mapping[Any, int], request: Request, where: str) -> str:
    """Return one paragraph about numbers that are no codes of zones, with the number of pixels of each."""
    codes = _listed(counts)
    if not request.zones:
        return f"zones: {where} holds numbers that are not whole: {codes}. Codes of zones are whole numbers."
    return (
        f"zones: {where} holds codes without a name: {codes}. Names are given for "
        f"{', '.join(str(zone.code) for zone in request.zones)}. Name the others in `names`, or declare them as `nodata`: "
        f"their pixels are then left out."
    )


def _listed(counts: Mapping[Any, int]) -> str:
    """Return codes with the number of pixels of each."""
    return listed([f"{code} ({plural(number, 'pixel')})" for code, number in sorted(counts.items())], SHOWN)


def unknown_codes_message(counts: Mapping[Any, int], request: Request, where: str) -> str:
    """Return one paragraph about codes that are neither classes nor ignored, with the number of pixels of each."""
    codes = _listed(counts)
    fractions = any(isinstance(code, float) and not code.is_integer() for code in counts)
    return (
        f"reference: {where} holds codes that are not in the class table{' or are not whole numbers' if fractions else ''}: "
        f"{codes}. The class table has {', '.join(map(str, request.codes))}; ignored: "
        f"{', '.join(map(str, request.ignore)) or 'none'}. Add the codes to `classes` or to `ignore`."
    )


def _shares_problem(finding: OutOfRange, reference: Cube, request: Request) -> str:
    allowed, dtype = request.share_tolerance, reference.dtype
    low, high = finding.sums
    if finding.low < -allowed or finding.high > 1 + allowed:
        return (
            f"outside [0, 1] beyond {allowed:g} (for {dtype}): from {finding.low:.7g} to {finding.high:.7g}. Scale them, or "
            f"mask those pixels out."
        )
    if request.reference == "shares" and high > 1 + allowed:
        return (
            f"that sum to more than 1 beyond {allowed:g} (for {dtype}): up to {high:.7g}. Masks may overlap: divide the "
            f"shares by their sum, mask those pixels out, or set `tolerance` if this is rounding."
        )
    if request.complete and low < 1 - allowed:
        return (
            f"that sum to less than 1 beyond {allowed:g} (for {dtype}): down to {low:.7g}. Give all shares, mask those "
            f"pixels out, or leave out `complete`: the rest is then unlabelled."
        )
    return (
        f"that are not multiples of 1/{request.raters} in {dtype}. Correct `raters`, or leave it out: shares are then "
        f"counted in intervals."
    )
