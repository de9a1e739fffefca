"""Compare two models case by case, or tile by tile of one scene: by output folders, Stacks or Evaluations."""

from __future__ import annotations

from collections.abc import Sequence

from dask_uncert.errors import InputError, listed
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.io.output_folder import read_record
from dask_uncert.io.paths import AnyPath, as_path
from dask_uncert.io.summary_store import load
from dask_uncert.jobs.cohort.output import FinishedCohort, is_cohort
from dask_uncert.metrics import comparison
from dask_uncert.metrics.comparison import Comparison
from dask_uncert.reports.results.headline import headline
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Stack

SHOWN = 5  # cases that a message names


def compare(
    first: Stack | Evaluation | str | AnyPath,
    second: Stack | Evaluation | str | AnyPath,
    *,
    metrics: str | Sequence[str] | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    permutations: int = 2000,
    common: bool = False,
) -> Comparison:
    """Compare two models on the same cases or the same scene, without reading a pixel.

    Parameters
    ----------
    first, second : Stack, Evaluation, str or path
        The cases of each model, or its evaluation of a scene with `confidence`, whose tiles are paired; or the output
        folder of a finished job, which may be a URL.
    metrics : str or sequence of str, optional
        Names or patterns such as ``"classes/*/f1"``; ``"*"`` is every metric. By default the report's main metrics.
    replicates : int, default 1000
        Number of bootstrap replicates, each a draw of patients or tiles with replacement, the same for both models.
    level : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        The same seed draws the same patients or tiles.
    permutations : int, default 2000
        Random swaps of the permutation test; all swaps are listed if there are no more than this.
    common : bool, default False
        Compare the cases that both have if the cases differ.

    Returns
    -------
    Comparison
        Differences, first minus second: of the means over patients (or tiles), with Student's paired t-test and Wilcoxon's
        signed-rank test, and of the pooled metrics, with a permutation test that swaps the two models patient by
        patient. `holm` holds the p-values adjusted for the number of metrics; `rows()` gives one row per metric.

    Raises
    ------
    InputError
        If a folder is unfinished, the cases differ (the message names them), a scene has no tiles, or the two were not
        evaluated with the same options.

    Notes
    -----
    The command is ``dask-uncert compare``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> good, poor = (du.evaluate([[0.9, 0.1], [p, 1 - p]], [0, 1]) for p in (0.2, 0.7))
    >>> first = du.Stack.of({"P1": good, "P2": good, "P3": poor})
    >>> second = du.Stack.of({"P1": poor, "P2": poor, "P3": poor})
    >>> comparison = du.compare(first, second, metrics="overall/accuracy")
    >>> comparison.mean.T.round(4).tolist(), comparison.mean_difference.round(4).tolist()
    ([[0.8333, 0.5]], [0.3333])
    >>> comparison.permutation.p_value.tolist(), comparison.exact
    ([0.5], True)
    """
    for name, number in (("replicates", replicates), ("permutations", permutations)):
        if not 1 <= number <= 10**6:
            raise InputError(f"{name} must be from 1 to 1000000, found {number}.")
    if not 0 < level < 1:
        raise InputError(f"the level of an interval must be in (0, 1), found {level:g}.")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, found {seed}.")
    models = _counts(first), _counts(second)
    if not common and (stacks := [model for model in models if isinstance(model, Stack)])[1:]:
        _check_cases(stacks, [_name(first, "first"), _name(second, "second")])
    if metrics is None:
        metrics = [m.name for m in headline(models[0].total() if isinstance(models[0], Stack) else models[0])]
    names = [metrics] if isinstance(metrics, str) else metrics
    return comparison.compare(*models, Confidence(replicates, level, seed), names, permutations)


def _counts(model: Stack | Evaluation | str | AnyPath) -> Stack | Evaluation:
    """Return the counts of a model: of its cases, or of its scene; InputError where a folder holds neither."""
    if isinstance(model, Stack | Evaluation):
        return model
    folder = as_path(model)
    read_record(folder)
    if is_cohort(folder):
        return FinishedCohort.read(folder).stack
    evaluation = load(folder)
    if not isinstance(evaluation, Evaluation):
        raise InputError(f"{folder} is a regression; only classifications are compared.")
    return evaluation


def _name(model: Stack | Evaluation | str | AnyPath, position: str) -> str:
    return f"the {position}" if isinstance(model, Stack | Evaluation) else str(model)


def _check_cases(stacks: Sequence[Stack], models: Sequence[str]) -> None:
    """Raise InputError if two models were not evaluated on the same cases."""
    first, second = ({*stack.names} for stack in stacks)
    common = len(first & second)
    differences = [
        f"{model} alone has {listed(sorted(names), SHOWN)}"
        for model, names in zip(models, (first - second, second - first), strict=True)
        if names
    ]
    if differences:
        raise InputError(
            f"the two models were not evaluated on the same cases: {'; '.join(differences)}. Evaluate both on the same "
            f"manifest" + (f", or compare the {common} cases that both have (--common)." if common else ".")
        )
