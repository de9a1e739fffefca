"""Reserved names of inputs: samples, and what stands for a part that an input lacks."""

from __future__ import annotations

from typing import NamedTuple

STACKED, APART = "samples", "samples_"
"""The input that holds all samples on an axis of their own; how inputs that hold one each begin."""


GAPS = "gaps"
"""Beside a block's values: over the grid, uint8, 0 or one more than a reason's place in the ledger's `REASONS`."""

BLANK = "blank"
"""The same where the prediction is among what is missing: true there, and maps are undefined."""

VIRTUAL = {"absent_": "missing_chunk", "outside_": "outside"}
"""How inputs begin that say, not 0, where another one is not there; and why not."""


class Gap(NamedTuple):
    """What an input says of another, not 0 where that has nothing: the other's name, and the fault in the ledger."""

    name: str
    fault: str


def gap_of(name: str) -> Gap | None:
    """What the input of this name says of another; None where it is one itself."""
    for prefix, fault in VIRTUAL.items():
        if name.startswith(prefix):
            return Gap(name.removeprefix(prefix), fault)
    return None
