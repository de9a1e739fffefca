"""Marginals of an Evaluation: its arrays of counts, summed over the dimensions that no scalar needs.

Scalars (`metrics.scalars`) are formulas of marginals. A marginal may have a leading dimension: of cases, of tiles
or of bootstrap replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.evaluation import Evaluation

MarginalReader = Callable[[str], Counts | None]
"""Return the counts of a marginal, by its name: (..., *marginal); None where it was not kept."""


class Marginal(NamedTuple):
    """An array of an Evaluation, summed over some dimensions.

    path: of the array. keep: the dimensions kept. entry: the one entry of the first dimension that is
    used, where not all are. binned: whether fine calibration bins are summed to the job's bins. tally: the one entry of
    the last dimension that is used, where not all are.
    """

    path: str
    keep: tuple[str, ...]
    entry: int | None = None
    binned: bool = False
    tally: int | None = None

    def of(self, array: Counts, dims: tuple[str, ...], evaluation: Evaluation) -> Counts:
        """Return the marginal of an array with these dimensions, and perhaps a leading one."""
        leading = array.ndim - len(dims)
        if self.entry is not None:
            array, dims = np.take(array, self.entry, axis=leading), dims[1:]
        if self.tally is not None:
            array, dims = array[..., self.tally], dims[:-1]
        summed = tuple(leading + i for i, d in enumerate(dims) if d not in self.keep)
        counts = np.asarray(array.sum(axis=summed))
        return in_bins(counts, evaluation.stated) if self.binned else counts


def marginals(evaluation: Evaluation) -> dict[str, Marginal]:
    """Return every marginal that the scalars of Evaluations of this frame need, by name."""
    pairs = ("reference_class", "predicted_class")
    found = {"confusion": Marginal("decisions/pairs", pairs)}
    for i in range(len(evaluation.distributions)):
        found[f"sums/{i}"] = Marginal(f"distributions/{i}/by_confused", ("right", "sum3"))
        found[f"histogram/{i}"] = Marginal(f"distributions/{i}/histogram", ("right", "bin"))
    if evaluation.calibration is not None:
        found |= _of_calibration(len(evaluation.classes))
        if evaluation.report_options.sets:
            found["items"] = Marginal("calibration/classwise", ("bin", "tally"))
            for c in range(len(evaluation.classes)):
                found[f"true/{c}"] = Marginal("calibration/classwise", ("bin",), c, tally=1)
    for i in range(len(evaluation.weighted)):
        found[f"weighted/{i}"] = Marginal(f"weighted/{i}/pairs", (*pairs, "limb"))
    for i in range(len(evaluation.soft_confusion)):
        kept = ("threshold", "sigma", "damping", "cell", "limb")
        found[f"soft/{i}"] = Marginal(f"soft_confusion/{i}/weights", kept)
    return found


def _of_calibration(classes: int) -> dict[str, Marginal]:
    found, tally = {}, ("bin", "tally")
    found["winning"] = Marginal("calibration/winning", tally)
    found["winning_in_bins"] = Marginal("calibration/winning", tally, binned=True)
    for c in range(classes):
        found[f"class/{c}"] = Marginal("calibration/classwise", tally, c)
        found[f"class_in_bins/{c}"] = Marginal("calibration/classwise", tally, c, True)
    found["squared_error"] = Marginal("calibration/squared_error", ("limb",))
    found["log_loss"] = Marginal("calibration/log_loss", ("limb",))
    found["infinite"] = Marginal("calibration/infinite", ())
    return found


def in_bins(fine: Counts, calibration: Calibration) -> Counts:
    """Return tallies (..., fine bins, 4) summed to the job's bins."""
    starts = np.searchsorted(calibration.edges, [m / calibration.bins for m in range(calibration.bins)])
    return np.asarray(np.add.reduceat(fine, starts, axis=-2))


def marginal_reader(evaluation: Evaluation) -> MarginalReader:
    """Return a reader of one Evaluation's own marginals, without a leading dimension."""
    arrays = {path: (array, dims) for path, dims, array in evaluation.arrays()}
    known = marginals(evaluation)

    def read(name: str) -> Counts:
        return known[name].of(*arrays[known[name].path], evaluation)

    return read


def marginals_for(evaluation: Evaluation, scalars: Collection[str]) -> set[str]:
    """Return the names of the marginals that these scalars need; the confusion matrix is always among them."""

    def wanted(*prefixes: str) -> list[str]:
        return [name for name in scalars if name.startswith(prefixes)]

    found = {"confusion"}
    for i, distribution in enumerate(evaluation.distributions):
        measure = distribution.measure.name
        quantiles = ["/quantiles/" in name for name in wanted(f"measures/{measure}/")]
        if not all(quantiles):
            found.add(f"sums/{i}")
        if any(quantiles) or wanted(f"uncertainty_confusion/{measure}/", f"selective/{measure}/"):
            found.add(f"histogram/{i}")
    if wanted(
        "calibration/ece",
        "calibration/mce",
        "calibration/equal_mass_ece",
        "calibration/debiased_l2",
        "calibration/corp/",
    ):
        found |= {"winning", "winning_in_bins"}
    if wanted("calibration/classwise_ece", "calibration/classes/", "calibration/brier/", "ranking/"):
        found |= {f"{kind}/{c}" for c in range(len(evaluation.classes)) for kind in ("class", "class_in_bins")}
    if wanted("calibration/brier/", "calibration/nll/"):
        found |= {"squared_error", "log_loss", "infinite"}
    if wanted("prediction_sets/"):
        found |= {"items", "winning", *(f"true/{c}" for c in range(len(evaluation.classes)))}
    if wanted("weighted/"):
        found |= {f"weighted/{i}" for i in range(len(evaluation.weighted))}
    if wanted("soft_confusion/"):
        found |= {f"soft/{i}" for i in range(len(evaluation.soft_confusion))}
    return found
