"""What the scalars of an Evaluation are read off: its arrays, summed over dimensions that no number looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.evaluation import Evaluation

Read = Callable[[str], Counts | None]
"""Gives the counts of an item, (..., *item); None where it was not kept."""


class Item(NamedTuple):
    """An array of an Evaluation by its path, the dimensions kept; of its first dimension perhaps one index.

    binned: its `bin`s are summed to the job's.
    """

    path: str
    keep: tuple[str, ...]
    at: int | None = None
    binned: bool = False

    def of(self, array: Counts, dims: tuple[str, ...], like: Evaluation) -> Counts:
        """The item of an array with these dimensions, and perhaps a leading one."""
        before = array.ndim - len(dims)
        if self.at is not None:
            array, dims = np.take(array, self.at, axis=before), dims[1:]
        gone = tuple(before + i for i, d in enumerate(dims) if d not in self.keep)
        found = np.asarray(array.sum(axis=gone))
        return in_bins(found, like.calibration) if self.binned else found


def items(like: Evaluation) -> dict[str, Item]:
    """What the scalars of Evaluations of this frame need, by name."""
    found = {"confusion": Item("decisions/pairs", ("reference_class", "predicted_class"))}
    for i in range(len(like.distributions)):
        found[f"sums/{i}"] = Item(f"distributions/{i}/by_confused", ("right", "power", "limb"))
        found[f"histogram/{i}"] = Item(f"distributions/{i}/histogram", ("right", "bin"))
    tally = ("bin", "tally")
    found["winning"] = Item("calibration/winning", tally)
    found["winning_in_bins"] = Item("calibration/winning", tally, binned=True)
    for c in range(len(like.classes)):
        found[f"class/{c}"] = Item("calibration/classwise", tally, c)
        found[f"class_in_bins/{c}"] = Item("calibration/classwise", tally, c, True)
    found["squared_error"] = Item("calibration/squared_error", ("limb",))
    found["log_loss"] = Item("calibration/log_loss", ("limb",))
    found["infinite"] = Item("calibration/infinite", ())
    for i in range(len(like.weighted)):
        found[f"weighted/{i}"] = Item(f"weighted/{i}/pairs", ("reference_class", "predicted_class", "limb"))
    for i in range(len(like.soft_confusion)):
        kept = ("threshold", "sigma", "damping", "cell", "limb")
        found[f"soft/{i}"] = Item(f"soft_confusion/{i}/weights", kept)
    return found


def in_bins(fine: Counts, like: Calibration) -> Counts:
    """Tallies (..., fine bins, 4) summed to the job's bins."""
    starts = np.searchsorted(like.edges, [m / like.bins for m in range(like.bins)])
    return np.asarray(np.add.reduceat(fine, starts, axis=-2))


def counts_of(evaluation: Evaluation) -> Read:
    """The items of one Evaluation, without a leading dimension."""
    arrays = {path: (array, dims) for path, dims, array in evaluation.arrays()}
    known = items(evaluation)

    def read(name: str) -> Counts:
        return known[name].of(*arrays[known[name].path], evaluation)

    return read


def needed(like: Evaluation, names: Collection[str]) -> set[str]:
    """The items that these scalars are read off; the confusion matrix is always among them."""
    found = {"confusion"}

    def asked(*starts: str, inside: str = "") -> bool:
        return any(name.startswith(starts) and inside in name for name in names)

    for i, one in enumerate(like.distributions):
        at = f"measures/{one.measure.name}/"
        if any(name.startswith(at) and "/quantiles/" not in name for name in names):
            found.add(f"sums/{i}")
        table, selected = f"uncertainty_confusion/{one.measure.name}/", f"selective/{one.measure.name}/"
        if asked(at, inside="/quantiles/") or asked(table, selected):
            found.add(f"histogram/{i}")
    if asked("calibration/ece", "calibration/mce", "calibration/equal_mass_ece"):
        found |= {"winning", "winning_in_bins"}
    if asked("calibration/classwise_ece", "calibration/classes/", "calibration/brier/"):
        for c in range(len(like.classes)):
            found |= {f"class/{c}", f"class_in_bins/{c}"}
    if asked("calibration/brier/", "calibration/nll/"):
        found |= {"squared_error", "log_loss", "infinite"}
    if asked("weighted/"):
        found |= {f"weighted/{i}" for i in range(len(like.weighted))}
    if asked("soft_confusion/"):
        found |= {f"soft/{i}" for i in range(len(like.soft_confusion))}
    return found
