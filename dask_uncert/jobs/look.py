"""What a user's files seem to hold: guesses from names, shapes and a sample of the values, for a person to confirm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError, listed
from dask_uncert.inputs.cube import BAND, CLASS, SAMPLE
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers.stored_array import Label, StoredArray

MOST_SAMPLED = 1 << 20  # numbers of an array that are looked at
WHOLE = 64  # axes up to this long are looked at from end to end
MOST_CODES = 1000
GRID = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x")}
"""Names for the axes of a grid in a file that does not name them."""
HINTS = {
    "mask": ("mask", "valid", "held", "test", "roi"),
    "reference": ("ref", "label", "truth", "gt", "seg", "class", "annot", "target"),
    "uncertainty": ("uncert", "entropy", "variance", "std", "sigma"),
    "weight": ("weight", "area"),
}
"""Parts of names by the input that they suggest."""


@dataclass(frozen=True)
class Source:
    """An array of a file, or of each file of a folder: the name it is known by, its path by case, the array's name."""

    label: str
    paths: Mapping[str, Path]
    array: str = ""


@dataclass
class Finding:
    """An array with what it seems to be; why: the reasons for its role and its dimensions, for comments."""

    source: Source
    stored: StoredArray
    values: NDArray[Any]
    role: str = ""
    why: str = ""
    dims: tuple[str, ...] | None = None
    why_dims: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def codes(self) -> list[int]:
        """The whole numbers in the sample, without those declared as no data; none if there are too many."""
        values = self.values[np.isfinite(self.values)] if self.values.dtype.kind == "f" else self.values
        codes = [int(code) for code in np.unique(values) if code not in self.stored.decoding.missing]
        return codes if len(codes) <= MOST_CODES else []

    @property
    def names(self) -> dict[int, str]:
        """The class table of the file, by code; empty where it has none."""
        return dict(self.stored.class_table() or {})

    @property
    def labels(self) -> tuple[Label, ...] | None:
        """What the file calls each index of the class axis."""
        dims = self.dims or ()
        return self.stored.labels(dims, dims.index(CLASS)) if CLASS in dims else None

    def hints(self, role: str) -> bool:
        """Whether its name, or that of its file, suggests this role; the name counts before the file's."""
        return any(hint in (self.source.array or self.source.label).lower() for hint in HINTS[role])


def open_finding(source: Source) -> Finding | None:
    """Return an array of the first case with a sample of its values; None of coordinates and other single rows."""
    stored = open_stored(str(next(iter(source.paths.values()))), source.array, source.label)
    if stored.ndim < 2:
        return None
    most = int((MOST_SAMPLED / max(1, math.prod(n for n in stored.shape if n <= WHOLE))) ** 0.5)
    middle = tuple(
        slice(None) if n <= WHOLE else slice((n - min(n, most)) // 2, (n + min(n, most)) // 2) for n in stored.shape
    )
    return Finding(source, stored, stored[middle])


def give_roles(findings: Sequence[Finding]) -> None:
    """Say of each finding which input it seems to be, and its dimensions; raise InputError without a reference."""
    for finding in findings:
        axis = class_axis(finding.values)
        if axis is not None:
            _set(finding, "probabilities", f"numbers sum to 1 along axis {axis}")
            finding.dims, finding.why_dims = (CLASS,), f"axis {axis} sums to 1"  # completed with the grid's below
            finding.options["class axis"] = axis
    whole = [f for f in findings if not f.role and f.values.dtype.kind in "biu" and f.codes]
    whole += [f for f in findings if not f.role and f not in whole and f.hints("reference") and _is_whole(f.values)]
    by_name = [f for f in whole if f.hints("reference") and not f.hints("mask")]
    masks = [
        f for f in whole if f not in by_name and {*f.codes} <= {0, 1} and (f.values.dtype == bool or f.hints("mask"))
    ]
    references = by_name or [f for f in whole if f not in masks]
    if not references:
        shown = (
            listed([f"{f.source.label} ({f.values.dtype}, shape {f.stored.shape})" for f in findings], 5) or "nothing"
        )
        raise InputError(f"init: none of these looks like a reference of class codes: {shown}. Name its file, too.")
    reference = references[0]
    _set(reference, "reference", "whole numbers" + (", by its name" if by_name else ""))
    if masks:
        _set(masks[0], "mask", "true counts; holds 0 and 1 alone" + (", by its name" if masks[0].hints("mask") else ""))
    shape = reference.stored.shape
    floats = [f for f in findings if not f.role and f.values.dtype.kind == "f"]
    for finding in floats:
        role = next((role for role in ("uncertainty", "weight") if finding.hints(role)), "")
        if finding.stored.shape == shape and role and all(other.role != role for other in findings):
            _set(finding, role, "by its name")
    rest = [f for f in floats if not f.role]
    for finding in rest:
        lowest, highest = np.nanmin(finding.values, initial=0), np.nanmax(finding.values, initial=0)
        same = finding.stored.shape == shape
        if same and lowest >= 0 and highest <= 1 and not _predictions(findings) and len(reference.codes) <= 3:
            _set(finding, "probabilities", "in [0, 1], one number a pixel: of the second of two classes")
        elif (
            finding.stored.ndim == len(shape) + 1
            and "logit" in finding.source.label.lower() + finding.source.array.lower()
        ):
            _set(finding, "probabilities", "by its name")
            finding.options["logits"] = True
        elif finding.stored.ndim == len(shape) + 1 and not any(f.role == "features" for f in findings):
            _set(finding, "features", "one axis more than the reference, whose numbers do not sum to 1")
    predictions = _predictions(findings)
    for extra in predictions[1:]:
        extra.role, extra.why = "", "a second prediction: evaluate it in a job of its own"
    for finding in findings:
        if finding.role:
            _name_dims(finding, reference)


def class_axis(values: NDArray[Any]) -> int | None:
    """Return the axis along which nearly all numbers sum to 1; None where there is none, or where they are not floats.

    >>> class_axis(np.full((3, 4, 5), 0.25))
    1
    """
    if values.dtype.kind != "f" or not values.size or np.nanmin(values) < -1e-3:
        return None
    shares: dict[int, float] = {}
    for axis in range(values.ndim):
        sums = np.asarray(np.nansum(values, axis=axis, dtype=np.float64))
        there = sums > 0  # what lies outside of the scene is often 0
        if there.any() and values.shape[axis] > 1:
            shares[axis] = float(np.mean(np.abs(sums[there] - 1) < 0.01))
    best = max(shares, key=lambda axis: shares[axis], default=None)
    return best if best is not None and shares[best] > 0.95 else None


def _is_whole(values: NDArray[Any]) -> bool:
    finite = values[np.isfinite(values)]
    return bool(finite.size and (finite == np.rint(finite)).all())


def _predictions(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.role == "probabilities"]


def _set(finding: Finding, role: str, why: str) -> None:
    finding.role, finding.why = role, why


def _name_dims(finding: Finding, reference: Finding) -> None:
    """Name the dimensions where the file does not name them as a job needs them."""
    own, shape, grid = finding.stored.dims, finding.stored.shape, reference.stored.shape
    names = reference.stored.dims or GRID.get(len(grid), tuple(f"axis_{i}" for i in range(len(grid))))
    axis = finding.options.pop("class axis", None)
    finding.dims, why = None, finding.why_dims
    if len(shape) == len(grid):
        finding.dims = None if own is not None else tuple(names)
        finding.why_dims = "names of the axes" if finding.dims else ""
        return
    extra = CLASS if finding.role == "probabilities" else BAND
    if axis is None:
        axis = next((i for i in range(len(shape)) if (*shape[:i], *shape[i + 1 :]) == grid), None)
        axis, why = (len(shape) - 1, "the last axis") if axis is None else (axis, "the axis that the reference lacks")
    rest = [i for i in range(len(shape)) if i != axis]
    if len(shape) == len(grid) + 2 and extra == CLASS:
        sample = next((i for i in rest if tuple(shape[j] for j in rest if j != i) == grid), rest[0])
        finding.role, why = "samples", f"{why}, axis {sample} holds {shape[sample]} predictions"
        rest.remove(sample)
    else:
        sample = -1
    kept = dict(zip(rest, (own[i] for i in rest) if own is not None else names, strict=False))
    dims = tuple(extra if i == axis else SAMPLE if i == sample else kept.get(i, f"axis_{i}") for i in range(len(shape)))
    finding.dims, finding.why_dims = (None, "") if own == dims else (dims, why)
