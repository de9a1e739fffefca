"""Every kind of Evaluation, by its name in saved data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation

AnyEvaluation = Evaluation | RegressionEvaluation
KINDS: dict[str, type[AnyEvaluation]] = {cls.kind: cls for cls in (Evaluation, RegressionEvaluation)}


def evaluation_from_plain(frame: Mapping[str, Any], arrays: Mapping[str, Counts]) -> AnyEvaluation:
    """Return the Evaluation of a frame and arrays; KeyError or TypeError where its kind is not known."""
    return KINDS[frame["kind"]].from_plain(frame, arrays)
