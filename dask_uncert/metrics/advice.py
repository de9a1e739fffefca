"""What to do with a result, in sentences made from its numbers by stated rules.

Each rule looks at one question and returns nothing where the numbers do not answer it. A sentence says "prediction" for
what is counted, so it holds for pixels and voxels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dask_uncert.errors import listed
from dask_uncert.formulas import calibration as calibration_formulas
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.missing_data_bounds import accuracy_bounds
from dask_uncert.metrics.distributions import right_and_wrong
from dask_uncert.metrics.selective import Bounded, error_auroc
from dask_uncert.summaries.evaluation import Evaluation

LEAST_ERROR = 0.01
"""Calibration errors below this are not spoken of."""
HALF = 0.5  # of the wrong predictions
MOST_NAMED = 3  # classes, measures or reasons in a sentence


class Advice(NamedTuple):
    """A sentence, the name of its rule, and the section of the page that it was read from."""

    rule: str
    section: str
    text: str


@shared_sections
def advice(evaluation: Evaluation) -> list[Advice]:
    """Return what to do with a result: up to five sentences, each by a rule from the numbers.

    {Parameters: evaluation}

    Returns
    -------
    list of Advice
        ``rule``, ``section`` (its place on the page) and ``text`` of each sentence, in the order of the rules below.

    Notes
    -----
    ``confidence``
        If ECE is at least .01: the direction with the larger part of it, and the bin that adds most.
    ``detection``
        The measure with the largest error AUROC, and those that bins cannot tell from it. With a value of at most .5,
        that none is better than chance.
    ``review``
        The smallest share of the most uncertain predictions, by that measure, that holds half of the wrong ones.
        Only if it is better than chance.
    ``classes``
        Up to three reference classes that hold at least half of the wrong predictions, and the largest confusion.
    ``left_out``
        If anything was left out: how much, why, and what accuracy could be if lost predictions had counted.

    {Examples: three pixels}
    >>> [sentence.rule for sentence in du.advice(evaluation)]
    ['confidence', 'detection', 'review', 'classes']
    """
    found = [(name, rule(evaluation)) for name, rule in RULES.items()]
    return [Advice(name, *sentence) for name, sentence in found if sentence is not None]


def _confidence(evaluation: Evaluation) -> tuple[str, str] | None:
    if evaluation.calibration is None:
        return None
    bins = evaluation.stated.binned(evaluation.stated.fine)
    stated, right = calibration_formulas.reliability(*bins)
    total = bins.number.sum()
    parts = np.nan_to_num((stated - right) * bins.number / max(total, 1))
    over, under = float(parts[parts > 0].sum()), float(-parts[parts < 0].sum())
    if not total or over + under < LEAST_ERROR:
        return None
    word, worst = ("over", int(parts.argmax())) if over >= under else ("under", int(parts.argmin()))
    many = len(parts)
    return "calibration", (
        f"Predictions are {word}confident by {max(over, under):.3f} (calibration error {over + under:.3f}), most "
        f"where confidence lies from {worst / many:.3f} to {(worst + 1) / many:.3f}: there it is "
        f"{stated[worst]:.3f} on average, but {_percent(right[worst])} of these predictions are right. They are "
        f"{_percent(bins.number[worst] / total)} of all."
    )


def _detection(evaluation: Evaluation) -> tuple[str, str] | None:
    areas = _areas(evaluation)
    if not areas:
        return None
    best, area = next(iter(areas.items()))
    if area.value <= HALF:
        return "measures", (
            f"No measure finds wrong predictions better than chance: the largest error AUROC is {area.value:.3f} ({best}), "
            f"that of chance 0.5."
        )
    others = {name: other for name, other in areas.items() if name != best}
    as_good = [name for name, other in others.items() if other.highest >= area.lowest]
    less = [f"{name} {other.value:.3f}" for name, other in others.items() if name not in as_good]
    return "measures", (
        (
            f"Of {len(areas)} measures, {best} finds wrong predictions best"
            if others
            else f"{best} finds wrong predictions"
        )
        + f": a wrong one is more uncertain than a right one with probability {area.value:.3f} (error AUROC; chance 0.5)"
        + (f"; {listed(as_good, MOST_NAMED)} cannot be told from it within the bounds of bins" if as_good else "")
        + (f"; next {less[0]}" if less else "")
        + "."
    )


def _review(evaluation: Evaluation) -> tuple[str, str] | None:
    areas = _areas(evaluation)
    best = next(iter(areas), "")
    if not areas or areas[best].value <= HALF:
        return None
    right, wrong = right_and_wrong(evaluation, best)
    found, looked_at = (np.cumsum(counts[::-1])[::-1] for counts in (wrong, right + wrong))
    edge = int(np.flatnonzero(found >= HALF * wrong.sum())[-1])
    if edge == 0:
        return None  # half of the wrong predictions are in the lowest bin, which holds 0: no threshold finds them
    measure = evaluation.measures[best]
    return "uncertainty-confusion" if measure.thresholds else "measures", (
        f"To see half of the wrong predictions again, review the {_percent(looked_at[edge] / looked_at[0])} with {best} "
        f"above {measure.edges[edge]:.4g}: they hold {_percent(found[edge] / found[0])} of the {found[0]:,} wrong ones."
    )


def _classes(evaluation: Evaluation) -> tuple[str, str] | None:
    matrix = np.array(evaluation.decisions.confusion)
    np.fill_diagonal(matrix, 0)
    lost, total = matrix.sum(axis=1), int(matrix.sum())
    if not total:
        return None
    order = np.argsort(-lost, kind="stable")
    needed = int(np.searchsorted(np.cumsum(lost[order]), HALF * total)) + 1
    chosen, names = order[: min(needed, MOST_NAMED)], evaluation.class_names
    shares = [f"{names[i]} {_percent(lost[i] / total)}" for i in chosen]
    row, column = np.unravel_index(int(matrix.argmax()), matrix.shape)
    return "confusion", (
        f"{_percent(lost[chosen].sum() / total)} of the {total:,} wrong predictions belong to {len(chosen)} of "
        f"{len(names)} reference classes: {', '.join(shares)}. The largest confusion is {names[row]} taken for "
        f"{names[column]}: {_percent(matrix[row, column] / total)}."
    )


def _left_out(evaluation: Evaluation) -> tuple[str, str] | None:
    ledger, lost = evaluation.ledger, evaluation.ledger.lost()
    reasons = sorted(((n, reason) for reason, n in ledger.reasons().items() if n), key=lambda pair: (-pair[0], pair[1]))
    out = sum(n for n, _ in reasons)
    if not out:
        return None
    shares = [f"{reason.replace('_', ' ')} {_percent(n / ledger.pixels)}" for n, reason in reasons]
    text = f"{_percent(out / ledger.pixels)} of the grid was left out: {listed(shares, MOST_NAMED)}."
    if lost.any() and ledger.counted:
        low, high = accuracy_bounds(evaluation.decisions.confusion, lost)
        text += f" Had what is lost to missing data counted, accuracy would lie from {low:.3f} to {high:.3f}."
    return "excluded", text


RULES: dict[str, Callable[[Evaluation], tuple[str, str] | None]] = {
    "confidence": _confidence,
    "detection": _detection,
    "review": _review,
    "classes": _classes,
    "left_out": _left_out,
}


def _areas(evaluation: Evaluation) -> dict[str, Bounded]:
    """Return the defined error AUROC of every measure, the largest first."""
    areas = {name: error_auroc(evaluation, name, bound=True) for name in evaluation.measures}
    defined = [(name, area) for name, area in areas.items() if not np.isnan(area.value)]
    return dict(sorted(defined, key=lambda pair: -pair[1].value))


def _percent(share: float) -> str:
    """Return a share in percent; never 0.0 % or 100.0 % where it is only close to them.

    >>> _percent(0.1234), _percent(0.00001), _percent(0.99999), _percent(1.0)
    ('12.3 %', 'under 0.1 %', 'over 99.9 %', '100.0 %')
    """
    if 0 < share < 0.0005:
        return "under 0.1 %"
    return "over 99.9 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"


def with_failed_cases(sentences: list[Advice], failed: int, cases: int) -> list[Advice]:
    """Return the advice with the cases that failed, out of all, in the sentence on what was left out."""
    if not failed:
        return sentences
    text = f"{failed:,} of {cases:,} cases failed and are in no number."
    others = [sentence for sentence in sentences if sentence.rule != "left_out"]
    left_out = [sentence.text for sentence in sentences if sentence.rule == "left_out"]
    return [*others, Advice("left_out", "excluded", " ".join([text, *left_out]))]
