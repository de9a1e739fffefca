"""What a reader of the numbers should know about the reference, in sentences, from the counts of a result."""

from __future__ import annotations

from collections.abc import Collection

from dask_uncert.errors import plural
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.summary import Summary


def result_remarks(evaluation: Summary, ignore: Collection[int]) -> list[str]:
    """Return all remarks on a result of any kind; ignore: reference codes that did not count."""
    if not isinstance(evaluation, Evaluation):
        return []
    return [*reference_remarks(evaluation), *shifted_codes(evaluation, ignore)]


def reference_remarks(evaluation: Evaluation) -> list[str]:
    """Return sentences about pixels that may have been left out, or counted, against the user's wish."""
    unlabelled, remarks = evaluation.ledger.reasons().get("reference_nodata", 0), incomplete_shares(evaluation)
    if unlabelled:
        remarks.append(
            f"reference: {plural(unlabelled, 'pixel is', 'pixels are')} unlabelled: masked, or with the no-data value of "
            f"the reference. The bounds of accuracy and F1 allow for any class there. If nobody meant to count them, give "
            f"that value as `ignore`, or a `mask`."
        )
    return remarks


def incomplete_shares(evaluation: Evaluation) -> list[str]:
    """Return a sentence about counted pixels of which a fuzzy reference labels a part only."""
    pixels = int(evaluation.ledger.incomplete)
    if not pixels:
        return []
    return [
        f"reference: the shares of {plural(pixels, 'counted pixel')} sum to less than 1; the rest is unlabelled and "
        f"belongs to no class. `complete: true` would refuse them."
    ]


def shifted_codes(evaluation: Evaluation, ignore: Collection[int]) -> list[str]:
    """Return a warning where the codes of the reference seem to count from 1 and those of the classes from 0.

    That is so where the classes have the codes 0, 1, ..., the code after the last one is ignored and occurs, and code 0
    does not occur.
    """
    codes, ledger = [c.code for c in evaluation.classes], evaluation.ledger
    first = evaluation.decisions.confusion[0].sum() + ledger.excluded[:, 0].sum()
    ignored = ledger.reasons()["ignored"]
    if codes != [*range(len(codes))] or len(codes) not in ignore or first or not ignored:
        return []
    names = evaluation.class_names
    return [
        f"classes: no pixel of the reference has code 0 ({names[0]}), and {plural(ignored, 'pixel')} are ignored, with "
        f"code {len(codes)} among the ignored ones. A list of names has the codes 0 to {len(codes) - 1}. If the reference "
        f"counts from 1, all classes are one off: give `classes: {{1: {names[0]}, ..., {len(codes)}: {names[-1]}}}` and "
        f"do not ignore {len(codes)}."
    ]
