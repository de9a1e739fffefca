"""Binary predictions of 8 bits without a class axis: what a pixel adds depends on its code and its class alone.

So one pixel of each code and class is evaluated, once, and a block adds what they add as often as it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.typing import Counts, Indices
from dask_uncert.inputs.scene import Encoding
from dask_uncert.spec.request import Request

CODES = 256
LEAST = 1 << 18  # pixels of a block: fewer are counted sooner than the table is made
PARTS = 4  # tables that are counted side by side, so that equal pixels do not wait for each other

EvaluateBlock = Callable[[Request, Mapping[str, Any], Encoding, ModuleType], Any]


def is_coded(request: Request, arrays: Mapping[str, Any], encoding: Encoding) -> bool:
    """Return whether a block's pixels can be counted by their codes."""
    p = arrays.get("probabilities")
    if p is None or p.dtype != np.uint8 or encoding.class_axis is not None or p.size < LEAST:
        return False
    more = request.layers or request.tiles or request.weight_unit or request.functions or request.zones is not None
    return request.reference == "codes" and not (more or "uncertainty" in arrays or len(arrays.get("samples", ())))


def count_by_code(
    request: Request,
    counts: Counts,
    arrays: Mapping[str, Any],
    reference: Indices,
    encoding: Encoding,
    kernels: ModuleType,
    evaluate: EvaluateBlock,
) -> bool:
    """Add the pixels that count to the counts of an Evaluation, (cells,); return whether that could be done.

    It cannot where a code is refused or left out. reference: (n,) class index, negative where the pixel does not count.
    evaluate: `evaluate_block`.
    """
    codes, classes = arrays["probabilities"], len(request.classes)
    found = np.zeros((PARTS, classes + 1, CODES), np.int64)
    kernels.count_codes(np.ascontiguousarray(codes).reshape(-1), reference, found)
    number = found.sum(axis=0)[:classes]
    table = _table(request, encoding, kernels, arrays["reference"].dtype.newbyteorder("="), codes.ndim)
    for c, code in np.argwhere(number).tolist():
        if (c, code) not in table:
            pixel = {"probabilities": code, "reference": request.codes[c]}
            one = {name: np.full((1,) * codes.ndim, value, arrays[name].dtype) for name, value in pixel.items()}
            table[c, code] = _added_by(request, one, encoding, kernels, evaluate)
        if table[c, code] is None:
            return False
    for c, code in np.argwhere(number).tolist():
        cells, added = table[c, code]
        counts[cells] += number[c, code] * added
    return True


@lru_cache(maxsize=4)
def _table(
    request: Request, encoding: Encoding, kernels: ModuleType, kind: np.dtype[Any], ndim: int
) -> dict[tuple[int, int], Any]:
    """Return a table for what a pixel of a class and a code adds; kind: of the reference. It is filled where it is used."""
    return {}


def _added_by(
    request: Request, pixel: Mapping[str, Any], encoding: Encoding, kernels: ModuleType, evaluate: EvaluateBlock
) -> tuple[Indices, Counts] | None:
    """Return which cells a pixel adds to, and what; None where it is refused or left out."""
    try:
        _, one = evaluate(request, pixel, encoding, kernels)
    except UnusableBlockError:
        return None
    if one.ledger.counted.sum() != 1:
        return None
    added = np.concatenate([array.reshape(-1) for _, _, array in one.arrays()])
    cells = np.flatnonzero(added)
    return cells, added[cells]
