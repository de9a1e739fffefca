"""What to do with a result: each rule speaks from the counts, and is silent where they say nothing."""

from __future__ import annotations

import jsonschema
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.cli.summary import lines
from dask_uncert.metrics.advice import Advice, with_failed_cases
from dask_uncert.reports.results.schema import results_schema
from tests.support.pages import Page, write_page


def evaluated(confidence, right, **options):
    """Of two classes, a and b, a prediction of a with each confidence, and whether it was right."""
    p = np.array(confidence)[:, None]
    options = {"classes": ["a", "b"], "measures": ["gini"], **options}
    return du.evaluate(np.concatenate([p, 1 - p], axis=1), np.where(right, 0, 1), **options)


def said(evaluation):
    return {sentence.rule: sentence for sentence in du.advice(evaluation)}


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.5, "overconfident by 0.300 (calibration error 0.300), most where confidence lies from 0.733 to 0.800"),
        (1.0, "underconfident by 0.200 (calibration error 0.200)"),
        (0.8, None),
    ],
)
def test_confidence_is_spoken_of_where_it_is_off(share, text):
    told = said(evaluated(np.full(10, 0.8), np.arange(10) < 10 * share))
    assert (text in told["confidence"].text) if text else ("confidence" not in told)


def test_the_better_measure_and_the_share_to_review():
    confidence, right = np.repeat([0.99, 0.9, 0.7, 0.6], 25), np.arange(100) < 80
    detection, review = (said(evaluated(confidence, right))[rule] for rule in ("detection", "review"))
    assert "gini finds wrong predictions: " in detection.text
    assert "error AUROC; chance 0.5" in detection.text
    # gini is 4 p (1 - p): .96 at .6, so that its 25 predictions hold all 20 wrong ones.
    assert "review the 25.0 % with gini above 0.959: they hold 100.0 % of the 20 wrong ones." in review.text
    backwards = said(evaluated(confidence, right[::-1]))
    assert "No measure finds wrong predictions better than chance" in backwards["detection"].text
    assert "review" not in backwards
    every = said(evaluated(confidence, np.ones(100, bool)))
    assert {"detection", "review", "classes", "left_out"} & {*every} == set()


def test_measures_that_bins_cannot_tell_apart_are_named():
    measures = {"measures": ["gini", "max_probability"]}
    tied = said(evaluated([0.9, 0.6], [1, 0], **measures))["detection"].text
    assert tied.endswith("; max_probability cannot be told from it within the bounds of bins.")
    p = [[0.5, 0.5, 0], [0.52, 0.24, 0.24]]
    behind = said(du.evaluate(p, [0, 1], classes=["a", "b", "c"], **measures))["detection"].text
    assert behind.startswith("Of 2 measures, gini finds wrong predictions best")
    assert behind.endswith("; next max_probability 0.000.")


def test_classes_that_carry_the_loss():
    reference = np.array([0] * 10 + [1] * 10 + [2] * 10)
    decided = reference.copy()
    decided[:6], decided[10:12] = 2, 0
    told = said(du.evaluate(np.eye(3)[decided], reference, classes=["x", "y", "z"], measures=[]))
    assert told["classes"].text == (
        "75.0 % of the 8 wrong predictions belong to 1 of 3 reference classes: x 75.0 %. The largest confusion is x "
        "taken for z: 75.0 %."
    )
    assert "detection" not in told


def test_what_was_left_out_and_what_it_could_mean():
    p = np.array([[0.9, 0.1]] * 8 + [[np.nan, np.nan]] * 2)
    told = said(du.evaluate(p, [0] * 7 + [1] * 2 + [5], classes=["a", "b"], ignore=[5]))["left_out"]
    assert told.text.startswith("20.0 % of the grid was left out: ")
    assert "ignored 10.0 %" in told.text
    assert told.text.endswith("accuracy would lie from 0.778 to 0.889.")


def test_advice_is_in_results_on_the_page_and_at_the_end_of_a_run(tmp_path):
    evaluation = evaluated(np.repeat([0.99, 0.6], 10), np.arange(20) < 15)
    found = du.results(evaluation)
    jsonschema.Draft202012Validator(results_schema()).validate(found)
    sentences = [sentence["text"] for sentence in found["advice"]]
    assert 3 <= len(sentences) <= 5
    assert [text for _, text in lines(found, "pixels")][-len(sentences) :] == sentences
    write_page(evaluation, tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    assert all(sentence in " ".join(page.text) for sentence in sentences)


def test_failed_cases_of_a_cohort_are_left_out():
    sentences = [Advice("left_out", "excluded", "A.")]
    told = with_failed_cases(sentences, 2, 10)
    assert [sentence.text for sentence in told] == ["2 of 10 cases failed and are in no number. A."]
    assert with_failed_cases(sentences, 0, 10) == sentences
