from .clusters.connect import connect
from .errors import (
    ClusterError,
    InputError,
    InputWarning,
)
from .execution.evaluate import evaluate
from .execution.evaluate_regression import evaluate_regression
from .formulas.class_distances import class_distances
from .formulas.ensembles import sample_uncertainty
from .formulas.entropies import (
    binary_variance,
    confused_classes,
    renyi_entropy,
    t_entropy,
    tsallis_entropy,
)
from .formulas.homophily import homophily_uncertainty
from .formulas.simplex_distances import geometric_uncertainty
from .formulas.simplex_maximum import simplex_maximum
from .formulas.soft_confusion import soft_weights
from .formulas.top_probabilities import (
    margin,
    max_probability,
)
from .io.summary_store import (
    load,
    save,
)
from .jobs.cohort.compare import compare
from .jobs.cohort.output import load_cases
from .jobs.convert import convert
from .jobs.demo import demo
from .jobs.export import export
from .jobs.init import init
from .jobs.merge import merge
from .jobs.plan import plan
from .jobs.report import report
from .jobs.run import run
from .jobs.schema import job_schema
from .jobs.submit import (
    cancel,
    status,
    submissions,
    submit,
    wait,
)
from .metrics.advice import advice
from .metrics.calibration import (
    brier,
    classwise_calibration_error,
    corp,
    debiased_calibration_error,
    equal_mass_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    negative_log_likelihood,
    reliability,
    windows_curve,
)
from .metrics.choose import (
    Choice,
    choose,
)
from .metrics.classification import (
    accuracy,
    allocation_disagreement,
    confusion_matrix,
    f1,
    iou,
    kappa,
    matthews,
    precision,
    quantity_disagreement,
    recall,
    weighted_kappa,
)
from .metrics.conventions import (
    conventions,
)
from .metrics.distributions import (
    distribution,
    ecdf,
    histogram,
    joint_distribution,
    moments,
    quantiles,
    uncertainty_confusion,
)
from .metrics.intervals import intervals
from .metrics.prediction_sets import (
    conformal_threshold,
    prediction_sets,
)
from .metrics.rankings import (
    average_precision,
    best_threshold,
    roc_auc,
    roc_curve,
    threshold_table,
)
from .metrics.selective import (
    augrc,
    aurc,
    coverage_at_risk,
    error_auprc,
    error_auroc,
    excess_aurc,
    risk_at_coverage,
    risk_coverage,
)
from .metrics.sweep import (
    Sweep,
    sweep,
)
from .metrics.zones import zones
from .reports.results.read import results
from .spec.inputs import Input
from .summaries.case import Case
from .summaries.evaluation import Evaluation
from .summaries.regression import (
    RegressionEvaluation,
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
    regression_side,
)
from .summaries.stack import Stack

__version__: str

__all__ = [
    "Case",
    "Choice",
    "ClusterError",
    "Evaluation",
    "Input",
    "InputError",
    "InputWarning",
    "RegressionEvaluation",
    "Stack",
    "Sweep",
    "accuracy",
    "advice",
    "allocation_disagreement",
    "augrc",
    "aurc",
    "average_precision",
    "best_threshold",
    "binary_variance",
    "brier",
    "cancel",
    "choose",
    "class_distances",
    "classwise_calibration_error",
    "compare",
    "conformal_threshold",
    "confused_classes",
    "confusion_matrix",
    "connect",
    "conventions",
    "convert",
    "corp",
    "coverage_at_risk",
    "debiased_calibration_error",
    "demo",
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
    "init",
    "intervals",
    "iou",
    "job_schema",
    "joint_distribution",
    "kappa",
    "load",
    "load_cases",
    "margin",
    "matthews",
    "max_probability",
    "maximum_calibration_error",
    "merge",
    "moments",
    "negative_log_likelihood",
    "plan",
    "precision",
    "prediction_sets",
    "quantiles",
    "quantity_disagreement",
    "recall",
    "regression_area",
    "regression_coverage",
    "regression_curve",
    "regression_distance",
    "regression_side",
    "reliability",
    "renyi_entropy",
    "report",
    "results",
    "risk_at_coverage",
    "risk_coverage",
    "roc_auc",
    "roc_curve",
    "run",
    "sample_uncertainty",
    "save",
    "simplex_maximum",
    "soft_weights",
    "status",
    "submissions",
    "submit",
    "sweep",
    "t_entropy",
    "threshold_table",
    "tsallis_entropy",
    "uncertainty_confusion",
    "wait",
    "weighted_kappa",
    "windows_curve",
    "zones",
]
