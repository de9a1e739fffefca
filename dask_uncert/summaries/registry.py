"""Every kind of Evaluation that is kept, by the name its frame has for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dask_uncert.summaries.evaluation import Evaluation, from_plain
from dask_uncert.summaries.regression import RegressionEvaluation, regression_from_plain

AnyEvaluation = Evaluation | RegressionEvaluation
READERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], AnyEvaluation]] = {
    "Evaluation": from_plain,
    "RegressionEvaluation": regression_from_plain,
}


def evaluation_from_plain(frame: dict[str, Any], arrays: dict[str, Any]) -> AnyEvaluation:
    """The Evaluation of this frame and these arrays; KeyError or TypeError where they are of no kind that is known."""
    return READERS[frame["kind"]](frame, arrays)
