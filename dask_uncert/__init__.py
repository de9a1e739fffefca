"""Evaluate predictions with their uncertainty, at any scale.

Every public name is here and is loaded when first used, so that ``import dask_uncert`` costs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dask_uncert.clusters import connect
    from dask_uncert.cohort_outputs import load_cases
    from dask_uncert.compare import compare
    from dask_uncert.convert import convert
    from dask_uncert.errors import ClusterError, InputError
    from dask_uncert.evaluate import evaluate
    from dask_uncert.exports import export
    from dask_uncert.formulas.entropies import (
        binary_variance,
        confused_classes,
        renyi_entropy,
        t_entropy,
        tsallis_entropy,
    )
    from dask_uncert.formulas.geometry import geometric_uncertainty
    from dask_uncert.formulas.homophily import homophily_uncertainty
    from dask_uncert.formulas.samples import sample_uncertainty
    from dask_uncert.formulas.separation import class_distances
    from dask_uncert.formulas.simplex import simplex_maximum
    from dask_uncert.formulas.soft import soft_weights
    from dask_uncert.regression import evaluate_regression
    from dask_uncert.runs import run
    from dask_uncert.saving import load, save
    from dask_uncert.summaries.calibration_readings import (
        brier,
        classwise_calibration_error,
        equal_mass_calibration_error,
        expected_calibration_error,
        maximum_calibration_error,
        negative_log_likelihood,
        reliability,
        windows_curve,
    )
    from dask_uncert.summaries.evaluation import Evaluation
    from dask_uncert.summaries.readings import (
        accuracy,
        confusion_matrix,
        distribution,
        ecdf,
        f1,
        histogram,
        iou,
        kappa,
        moments,
        precision,
        quantiles,
        recall,
        uncertainty_confusion,
    )
    from dask_uncert.summaries.regression import (
        RegressionEvaluation,
        regression_area,
        regression_coverage,
        regression_curve,
        regression_distance,
        regression_side,
    )
    from dask_uncert.summaries.selective_readings import (
        augrc,
        aurc,
        coverage_at_risk,
        error_auprc,
        error_auroc,
        excess_aurc,
        risk_at_coverage,
        risk_coverage,
    )
    from dask_uncert.summaries.stack import Case, Stack
    from dask_uncert.summaries.sweeps import Sweep, sweep

    __version__: str

_HOMES = {
    "clusters": ("connect",),
    "compare": ("compare",),
    "convert": ("convert",),
    "exports": ("export",),
    "cohort_outputs": ("load_cases",),
    "errors": ("ClusterError", "InputError"),
    "evaluate": ("evaluate",),
    "saving": ("load", "save"),
    "formulas.entropies": (
        "binary_variance",
        "confused_classes",
        "renyi_entropy",
        "t_entropy",
        "tsallis_entropy",
    ),
    "formulas.geometry": ("geometric_uncertainty",),
    "formulas.homophily": ("homophily_uncertainty",),
    "formulas.samples": ("sample_uncertainty",),
    "formulas.separation": ("class_distances",),
    "formulas.simplex": ("simplex_maximum",),
    "formulas.soft": ("soft_weights",),
    "regression": ("evaluate_regression",),
    "runs": ("run",),
    "summaries.evaluation": ("Evaluation",),
    "summaries.calibration_readings": (
        "brier",
        "classwise_calibration_error",
        "equal_mass_calibration_error",
        "expected_calibration_error",
        "maximum_calibration_error",
        "negative_log_likelihood",
        "reliability",
        "windows_curve",
    ),
    "summaries.readings": (
        "accuracy",
        "confusion_matrix",
        "distribution",
        "ecdf",
        "f1",
        "histogram",
        "iou",
        "kappa",
        "moments",
        "precision",
        "quantiles",
        "recall",
        "uncertainty_confusion",
    ),
    "summaries.sweeps": ("Sweep", "sweep"),
    "summaries.selective_readings": (
        "augrc",
        "aurc",
        "coverage_at_risk",
        "error_auprc",
        "error_auroc",
        "excess_aurc",
        "risk_at_coverage",
        "risk_coverage",
    ),
    "summaries.stack": ("Case", "Stack"),
    "summaries.regression": (
        "RegressionEvaluation",
        "regression_area",
        "regression_coverage",
        "regression_curve",
        "regression_distance",
        "regression_side",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Case",
    "ClusterError",
    "Evaluation",
    "InputError",
    "RegressionEvaluation",
    "Stack",
    "Sweep",
    "accuracy",
    "augrc",
    "aurc",
    "binary_variance",
    "brier",
    "class_distances",
    "classwise_calibration_error",
    "compare",
    "confused_classes",
    "confusion_matrix",
    "connect",
    "convert",
    "coverage_at_risk",
    "distribution",
    "ecdf",
    "equal_mass_calibration_error",
    "error_auprc",
    "error_auroc",
    "evaluate",
    "evaluate_regression",
    "excess_aurc",
    "expected_calibration_error",
    "export",
    "f1",
    "geometric_uncertainty",
    "histogram",
    "homophily_uncertainty",
    "iou",
    "kappa",
    "load",
    "load_cases",
    "maximum_calibration_error",
    "moments",
    "negative_log_likelihood",
    "precision",
    "quantiles",
    "recall",
    "regression_area",
    "regression_coverage",
    "regression_curve",
    "regression_distance",
    "regression_side",
    "reliability",
    "renyi_entropy",
    "risk_at_coverage",
    "risk_coverage",
    "run",
    "sample_uncertainty",
    "save",
    "simplex_maximum",
    "soft_weights",
    "sweep",
    "t_entropy",
    "tsallis_entropy",
    "uncertainty_confusion",
    "windows_curve",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("dask-uncert")
    elif name in _HOME_OF:
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, "__version__"})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """Importing the module ``evaluate`` would set it here, over the function of that name; it may not."""
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
