"""Any soft confusion of a class, read off its joint histogram, with a bound on every number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from dask_uncert.errors import InputError
from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.metric_bounds import metric_bounds
from dask_uncert.formulas.soft_confusion import CELLS, DAMPING_FORMS
from dask_uncert.formulas.soft_sweep import damped_sums, row_certainty, soft_cells
from dask_uncert.formulas.threshold_distributions import named_distribution
from dask_uncert.formulas.typing import Floats
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram

UNDAMPED = "none"
WIDE = 0.05
"""A bound above this is called wide: the value beside it says little."""


@dataclass(frozen=True)
class Sweep:
    """Soft confusions at every combination of thresholds, sigmas and dampings, each (T, S, D) float64.

    values: TP, TN, FP, FN (sums of weights) and the metrics of them, NaN where undefined; bounds: what each is
    off by at most from what a pass over the pixels would give. share: of the counted pixels' weight, what is
    left: (TP + TN + FP + FN) / counted.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], soft_confusion=[{"class": "1"}])
    >>> du.sweep(found, "1", sigmas=[0.1, 0.3]).share.round(4).tolist()
    [[[0.9986], [0.6784]]]
    """

    class_name: str
    uncertainty: str | None
    thresholds: tuple[float, ...]
    sigmas: tuple[float, ...]
    dampings: tuple[float, ...]
    values: dict[str, Floats]
    bounds: dict[str, Floats]
    share: Floats

    @property
    def wide(self) -> int:
        """At how many settings the bound of F1, or of any other metric but kappa and Matthews, is wide."""
        settled = [self.bounds[name] for name in self.bounds if name not in (*CELLS, "kappa", "matthews")]
        return int((np.stack(settled) > WIDE).any(axis=0).sum())

    def rows(self) -> list[dict[str, float]]:
        """One row a setting: threshold, sigma, damping, share, every value and `<name>_bound`."""
        found = []
        for i, t in enumerate(self.thresholds):
            for k, sigma in enumerate(self.sigmas):
                for m, d in enumerate(self.dampings):
                    row = {"threshold": t, "sigma": sigma, "damping": d, "share": float(self.share[i, k, m])}
                    for name, value in self.values.items():
                        row[name] = float(value[i, k, m])
                        row[f"{name}_bound"] = float(self.bounds[name][i, k, m])
                    found.append(row)
        return found

    def to_dataset(self) -> xr.Dataset:
        """Values, `<name>_bound` and share as an xarray Dataset over threshold, sigma and damping."""
        dims = ("threshold", "sigma", "damping")
        arrays = {**self.values, **{f"{name}_bound": one for name, one in self.bounds.items()}}
        return xr.Dataset(
            {name: (dims, one) for name, one in (("share", self.share), *arrays.items())},
            coords={"threshold": [*self.thresholds], "sigma": [*self.sigmas], "damping": [*self.dampings]},
            attrs={"class": self.class_name, "uncertainty": self.uncertainty or "none"},
        )


def sweep(
    evaluation: Evaluation,
    class_name: str | None = None,
    thresholds: float | Sequence[float] = 0.5,
    sigmas: float | Sequence[float] = 0.0,
    dampings: float | Sequence[float] = 0.0,
    *,
    uncertainty: str | None = None,
    distribution: str = "gaussian",
    df: float | None = None,
    damping_form: str = "exponential",
    reference_threshold: float | None = None,
    reference_certainty: str = "paper",
) -> Sweep:
    """The soft confusion of a class against the rest at any settings, without reading a pixel.

    class_name, uncertainty: which joint histogram ("none": the undamped one); may be left out where there is one
    only. thresholds in (0, 1),
    sigmas and dampings 0 or above and finite. The other words are those of `soft_confusion` [S22]. Hard counts
    (sigma 0) are exact at the thresholds that were named in the pass.

    Raises InputError where there is no such histogram or a word is out of range.

    >>> import dask_uncert as du
    >>> p, u = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0.1, 0.2, 0.5]
    >>> soft = [{"class": "1", "uncertainty": "uncertainty"}]
    >>> found = du.evaluate(p, [0, 1, 1], uncertainty=u, soft_confusion=soft)
    >>> one = du.sweep(found, "1", thresholds=0.5, sigmas=[0, 0.1], dampings=[0, 1])
    >>> one.values["f1"].round(4).tolist()
    [[[0.6667, 0.7297], [0.745, 0.7977]]]
    """
    joint = chosen(evaluation, class_name, uncertainty, reference_threshold)
    s = joint.settings
    grid = [
        _numbers(word, values)
        for word, values in (("threshold", thresholds), ("sigma", sigmas), ("damping", dampings))
    ]
    _check(grid[0], damping_form, reference_threshold, reference_certainty)
    if s.uncertainty is None and any(d > 0 for d in grid[2]):
        raise InputError(
            "sweep: this class was counted without an uncertainty, so nothing can be damped. Give its entry of "
            "`soft_confusion` an `uncertainty` and run the job again."
        )
    fixed = s.reference_dtype is not None and reference_threshold not in (None, s.reference_threshold)
    if fixed:
        raise InputError(
            f"sweep: the reference is fuzzy, and its threshold was fixed in the pass: "
            f"{'that of the prediction' if s.reference_threshold is None else s.reference_threshold}."
        )
    try:
        threshold_distribution = named_distribution(distribution, df)
    except ValueError as error:
        raise InputError(f"sweep: {error}.") from None
    moments = joint.decoded()
    widths = np.asarray(grid[1])
    values, errors = np.zeros((2, len(grid[0]), len(grid[1]), len(grid[2]), len(CELLS)))
    sums = [damped_sums(moments, d, damping_form) for d in grid[2]]
    for i, threshold in enumerate(grid[0]):
        t, level = s.stored(threshold), s.reference_level(threshold, reference_threshold)
        certainty = row_certainty(moments.rows, t, widths, threshold_distribution)
        for m, damped in enumerate(sums):
            values[i, :, m], errors[i, :, m] = soft_cells(
                moments, certainty, damped, t, widths, threshold_distribution, level, reference_certainty
            )
    cells = dict(zip(CELLS, np.moveaxis(values, -1, 0), strict=True))
    counted = int(evaluation.ledger.counted)
    return Sweep(
        class_name=evaluation.classes[s.class_index].name,
        uncertainty=s.uncertainty,
        thresholds=grid[0],
        sigmas=grid[1],
        dampings=grid[2],
        values={**cells, **cell_metrics(*cells.values())},
        bounds={**dict(zip(CELLS, np.moveaxis(errors, -1, 0), strict=True)), **metric_bounds(values, errors)},
        share=values.sum(axis=-1) / counted if counted else np.full(values.shape[:-1], np.nan),
    )


def chosen(
    evaluation: Evaluation,
    class_name: str | None,
    uncertainty: str | None,
    reference_threshold: float | None = None,
) -> JointHistogram:
    """The joint histogram of a class and a damping measure; InputError naming those there are.

    Of a fuzzy reference there may be several, with thresholds of their own.
    """
    found = [
        one
        for one in evaluation.joint
        if class_name in (None, evaluation.classes[one.settings.class_index].name)
        and uncertainty in (None, one.settings.uncertainty or UNDAMPED)
    ]
    if len(found) > 1:
        found = [one for one in found if one.settings.reference_threshold == reference_threshold]
    if len(found) == 1:
        return found[0]
    known = [
        f"{evaluation.classes[one.settings.class_index].name} ({one.settings.uncertainty or UNDAMPED})"
        for one in evaluation.joint
    ]
    if not known:
        raise InputError(
            "sweep: this evaluation holds no joint histogram; name the class under `soft_confusion` and run it."
        )
    asked = " damped by ".join(word for word in (class_name or "a class", uncertainty) if word)
    what = "more than one is" if found else "none is"
    raise InputError(f"sweep: of {asked} {what} there; there are: {', '.join(known)}.")


def _numbers(word: str, values: Any) -> tuple[float, ...]:
    listed = [values] if isinstance(values, int | float | np.number) else list(values)
    for value in listed:
        if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value >= 0):
            raise InputError(f"sweep: a {word} must be a finite number, 0 or above, found {value!r}.")
    if not listed:
        raise InputError(f"sweep: no {word} is given.")
    return tuple(float(value) for value in listed)


def _check(
    thresholds: Sequence[float],
    damping_form: str,
    reference_threshold: float | None,
    reference_certainty: str,
) -> None:
    for t in (*thresholds, *(() if reference_threshold is None else (reference_threshold,))):
        if not 0 < t < 1:
            raise InputError(f"sweep: thresholds must lie in (0, 1), found {t!r}.")
    for word, given, allowed in (
        ("damping_form", damping_form, DAMPING_FORMS),
        ("reference_certainty", reference_certainty, ("paper", "none")),
    ):
        if given not in allowed:
            raise InputError(f"sweep: {word} {given!r} is not one of {', '.join(allowed)}.")
