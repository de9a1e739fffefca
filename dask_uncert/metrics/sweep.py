"""Soft confusion at any setting, read off joint histograms, with an error bound on every number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from dask_uncert.errors import InputError, plural, suggestion
from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.metric_bounds import metric_bounds
from dask_uncert.formulas.soft_confusion import CELLS, DAMPING_FORMS
from dask_uncert.formulas.soft_sweep import damped_sums, row_certainty, soft_cells
from dask_uncert.formulas.threshold_distributions import named_distribution
from dask_uncert.formulas.typing import Floats
from dask_uncert.summaries import display
from dask_uncert.summaries.case import composed
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram

if TYPE_CHECKING:
    import xarray as xr

UNDAMPED = "none"
WIDE = 0.05
"""A bound above this is called wide: the value then says little."""


@dataclass(frozen=True)
class Sweep:
    """Soft confusions of a class at every combination of thresholds (T), sigmas (S) and dampings (D).

    Attributes
    ----------
    class_name : str
        The class.
    uncertainty : str or None
        The measure that damps; None where nothing is damped.
    thresholds, sigmas, dampings : tuple of float
        The settings.
    values : dict of str to ndarray (T, S, D)
        Sums of weights ``TP``, ``TN``, ``FP``, ``FN``, and the metrics of them; NaN where undefined.
    bounds : dict of str to ndarray (T, S, D)
        The most that each value can differ from what a pass over the pixels would give.
    share : ndarray (T, S, D)
        Share of the counted pixels' weight that is left: (TP + TN + FP + FN) / counted.

    Examples
    --------
    >>> import dask_uncert as du
    >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], soft_confusion=[{"class": "1"}])
    >>> du.sweep(evaluation, "1", sigmas=[0.1, 0.3]).share.round(4).tolist()
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

    def _title(self) -> str:
        damped = "" if self.uncertainty is None else f", damped by {self.uncertainty}"
        settings = plural(self.share.size, "setting")
        return f"Sweep of class {self.class_name}{damped}: {settings}, {self.wide} with a wide error bound"

    def _table(self) -> list[list[Any]]:
        shown = ("accuracy", "precision", "recall", "f1", "f1_bound")
        header = ["threshold", "sigma", "damping", "share", "accuracy", "precision", "recall", "F1", "F1 bound"]
        return [
            header,
            *([*(f"{row[s]:g}" for s in header[:3]), *(row[n] for n in ("share", *shown))] for row in self.rows()),
        ]

    def __repr__(self) -> str:
        table = display.text_table(self._table(), display.LINES - 1, "all are in to_dataframe()")
        return "\n".join([self._title(), *table])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the main metrics of every setting."""
        return display.html(self._title(), display.html_table(self._table(), "Settings"))

    @property
    def wide(self) -> int:
        """Number of settings where the bound of a metric, other than kappa and Matthews, is wide."""
        metrics = [bound for name, bound in self.bounds.items() if name not in (*CELLS, "kappa", "matthews")]
        return int((np.stack(metrics) > WIDE).any(axis=0).sum())

    def rows(self) -> list[dict[str, float]]:
        """Return a row for each setting.

        Returns
        -------
        list of dict of str to float
            Threshold, sigma, damping, share, every value and ``<name>_bound``.
        """
        rows = []
        settings = product(self.thresholds, self.sigmas, self.dampings)
        for index, (t, sigma, d) in zip(np.ndindex(self.share.shape), settings, strict=True):
            row = {"threshold": t, "sigma": sigma, "damping": d, "share": float(self.share[index])}
            for name, value in self.values.items():
                row |= {name: float(value[index]), f"{name}_bound": float(self.bounds[name][index])}
            rows.append(row)
        return rows

    def to_dataframe(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row for each setting, a column for each value and each bound.
        """
        rows = self.rows()
        return display.dataframe("setting", range(len(rows)), {key: [row[key] for row in rows] for key in rows[0]})

    def to_dataset(self) -> xr.Dataset:
        """Return values, bounds and share as an xarray Dataset.

        Returns
        -------
        xarray.Dataset
            Variables over threshold, sigma and damping; the bound of a value is ``<name>_bound``.
        """
        import xarray as xr

        dims = ("threshold", "sigma", "damping")
        bounds = {f"{name}_bound": bound for name, bound in self.bounds.items()}
        arrays = {"share": self.share, **self.values, **bounds}
        return xr.Dataset(
            {name: (dims, array) for name, array in arrays.items()},
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
    """Return the soft confusion of a class against the rest at any settings, without reading a pixel.

    Parameters
    ----------
    evaluation : Evaluation
        Evaluation with joint histograms: its job asked for `soft_confusion`.
    class_name : str, optional
        The class; may be left out where there is one only.
    thresholds : float or sequence of float, default 0.5
        Thresholds in (0, 1).
    sigmas, dampings : float or sequence of float, default 0
        Spreads of the threshold and dampings, 0 or above.
    uncertainty : str, optional
        The measure that damps, or "none"; may be left out where there is one only.
    distribution, df, damping_form, reference_threshold, reference_certainty
        As in `soft_weights`.

    Returns
    -------
    Sweep
        Values and their bounds, each (thresholds, sigmas, dampings).

    Raises
    ------
    InputError
        If there is no such joint histogram, or a setting is out of range.

    Notes
    -----
    Counts without a spread (sigma 0) are exact at the thresholds that the job named.

    References
    ----------
    [S22], equations (1)-(17).

    Examples
    --------
    >>> import dask_uncert as du
    >>> p, u = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0.1, 0.2, 0.5]
    >>> soft = [{"class": "1", "uncertainty": "uncertainty"}]
    >>> evaluation = du.evaluate(p, [0, 1, 1], uncertainty=u, soft_confusion=soft)
    >>> swept = du.sweep(evaluation, "1", thresholds=0.5, sigmas=[0, 0.1], dampings=[0, 1])
    >>> swept.values["f1"].round(4).tolist()
    [[[0.6667, 0.7297], [0.745, 0.7977]]]
    """
    joint = _joint_histogram(evaluation, class_name, uncertainty, reference_threshold)
    s = joint.settings
    ts, widths = _numbers("threshold", thresholds), _numbers("sigma", sigmas)
    ds = _numbers("damping", dampings)
    for t in (*ts, *(() if reference_threshold is None else (reference_threshold,))):
        if not 0 < t < 1:
            raise InputError(f"sweep: thresholds must lie in (0, 1), found {t!r}.")
    _check_choice("damping_form", damping_form, DAMPING_FORMS)
    _check_choice("reference_certainty", reference_certainty, ("paper", "none"))
    if s.uncertainty is None and any(d > 0 for d in ds):
        raise InputError(
            "sweep: this class was counted without an uncertainty, so nothing can be damped. Give its entry of "
            "`soft_confusion` an `uncertainty` and run the job again."
        )
    if s.reference_dtype is not None and reference_threshold not in (None, s.reference_threshold):
        fixed = "that of the prediction" if s.reference_threshold is None else s.reference_threshold
        raise InputError(f"sweep: the reference is fuzzy, and its threshold was fixed in the pass: {fixed}.")
    try:
        shape = named_distribution(distribution, df)
    except ValueError as error:
        raise InputError(f"sweep: {error}.") from None
    moments, spreads = joint.decoded(), np.asarray(widths)
    values, errors = np.zeros((2, len(ts), len(widths), len(ds), len(CELLS)))
    sums = [damped_sums(moments, d, damping_form) for d in ds]
    for i, threshold in enumerate(ts):
        t, level = s.stored(threshold), s.reference_level(threshold, reference_threshold)
        certainty = row_certainty(moments.rows, t, spreads, shape)
        for m, damped in enumerate(sums):
            values[i, :, m], errors[i, :, m] = soft_cells(
                moments, certainty, damped, t, spreads, shape, level, reference_certainty
            )
    cells, bounds = (dict(zip(CELLS, np.moveaxis(a, -1, 0), strict=True)) for a in (values, errors))
    counted = int(evaluation.ledger.counted)
    return Sweep(
        class_name=evaluation.classes[s.class_index].name,
        uncertainty=s.uncertainty,
        thresholds=ts,
        sigmas=widths,
        dampings=ds,
        values={**cells, **cell_metrics(*cells.values())},
        bounds={**bounds, **metric_bounds(values, errors)},
        share=values.sum(axis=-1) / counted if counted else np.full(values.shape[:-1], np.nan),
    )


def _joint_histogram(
    evaluation: Evaluation, class_name: str | None, uncertainty: str | None, reference_threshold: float | None
) -> JointHistogram:
    """Return the joint histogram of a class and a damping measure.

    A fuzzy reference may have several, which differ in its threshold.
    """
    known, fitting = [], []
    for joint in evaluation.joint:
        s = joint.settings
        name, damping = evaluation.classes[s.class_index].name, s.uncertainty or UNDAMPED
        known.append(f"{name} ({damping})")
        if (class_name is None or composed(class_name) == composed(name)) and uncertainty in (None, damping):
            fitting.append(joint)
    if len(fitting) > 1:
        fitting = [joint for joint in fitting if joint.settings.reference_threshold == reference_threshold]
    if len(fitting) == 1:
        return fitting[0]
    if not known:
        raise InputError(
            "sweep: this evaluation holds no joint histogram; name the class under `soft_confusion` and run it."
        )
    wanted = " damped by ".join(filter(None, (class_name or "a class", uncertainty)))
    number = "more than one" if fitting else "no"
    names = [evaluation.classes[joint.settings.class_index].name for joint in evaluation.joint]
    near = "" if class_name in (None, *names) else f" {suggestion(class_name, names, 'Classes')}"
    raise InputError(f"sweep: {number} joint histogram of {wanted}; there are: {', '.join(known)}.{near}")


def _numbers(name: str, values: Any) -> tuple[float, ...]:
    numbers = [values] if isinstance(values, int | float | np.number) else list(values)
    for number in numbers:
        if not (isinstance(number, int | float | np.number) and math.isfinite(number) and number >= 0):
            raise InputError(f"sweep: a {name} must be a finite number, 0 or above, found {number!r}.")
    if not numbers:
        raise InputError(f"sweep: no {name} is given.")
    return tuple(float(number) for number in numbers)


def _check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        near = suggestion(value, allowed)
        end = f" {near}" if near.startswith("Did") else ""
        raise InputError(f"sweep: {name} {value!r} is not one of {', '.join(allowed)}.{end}")
