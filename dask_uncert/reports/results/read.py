"""All results of an evaluation of any kind as one dictionary."""

from __future__ import annotations

from typing import Any

from dask_uncert.reports.results.cohort import Cohort, cohort_results, cohort_statistics
from dask_uncert.reports.results.regression import regression_results
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation
from dask_uncert.summaries.stack import Stack

DEFAULT_INTERVALS = {"replicates": 1000, "level": 0.95, "seed": 0}


def results(evaluation: Evaluation | RegressionEvaluation | Stack) -> dict[str, Any]:
    """Return every number as a dictionary, as in `results.json`.

    Parameters
    ----------
    evaluation : Evaluation, RegressionEvaluation or Stack
        A scene, a regression, or the cases of a cohort.

    Returns
    -------
    dict
        Plain numbers, lists and dictionaries; None where undefined. A number with a confidence interval has a sibling
        ``<name>_interval``: of a scene from its tiles, of a Stack from its patients.

    Notes
    -----
    ``dask_uncert/reports/results/*.schema.json`` documents every key.

    Examples
    --------
    >>> import dask_uncert as du
    >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> found = du.results(evaluation)
    >>> found["confusion"], found["classes"][1]["recall"]
    ([[1, 0], [1, 1]], 0.5)
    """
    if isinstance(evaluation, RegressionEvaluation):
        return regression_results(evaluation)
    if isinstance(evaluation, Stack):
        total, cohort = evaluation.total(), Cohort(evaluation, confidence=DEFAULT_INTERVALS)
        return cohort_results(total, cohort_statistics(cohort, total))
    return scene_results(evaluation)
