"""A class that is no foreground: means leave it out, and the Dice of the others comes first for cohorts."""

import jsonschema
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.cli.summary import lines
from dask_uncert.reports.results.cohort import Cohort, cohort_results, cohort_statistics
from dask_uncert.reports.results.schema import results_schema

CLASSES = ["liver", "rest", "tumour"]


def patient(seed, background="rest", classes=CLASSES):
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(classes), (20, 20), p=[0.2, 0.7, 0.1] if len(classes) == 3 else None)
    found = np.where(rng.random(truth.shape) < 0.7, truth, rng.integers(0, len(classes), truth.shape))
    return du.evaluate(prediction=found, reference=truth, classes=classes, background=background)


def test_dice_of_the_foreground_comes_first():
    stack = du.Stack.of({f"P{i}": patient(i) for i in range(5)})
    total = stack.total()
    statistics = cohort_statistics(Cohort(stack, confidence={"replicates": 50, "level": 0.9, "seed": 0}), total)
    results = cohort_results(total, statistics)
    jsonschema.validate(results, results_schema())
    overall, dice = results["overall"], du.f1(total)
    assert overall["foreground_f1"] == pytest.approx((float(dice[0]) + float(dice[2])) / 2)
    assert overall["foreground_f1"] != overall["macro_f1"] == pytest.approx(float(dice.mean()))
    assert (overall["foreground_f1_n"], overall["foreground_f1_undefined"]) == (2, 0)
    assert results["cohort"]["headline"][:3] == ["overall/foreground_f1", "classes/liver/f1", "classes/tumour/f1"]
    shown = [text for _, text in lines(results, "pixels")]
    mean = results["cohort"]["metrics"]["overall/foreground_f1"]
    low, high = mean["mean_interval"]
    assert shown[1].startswith(
        f"mean Dice of the foreground: {mean['mean']:.4f} ({low:.4f} to {high:.4f}) over patients"
    )
    assert [text.split(":")[0] for text in shown[2:4]] == ["Dice of liver", "Dice of tumour"]


def test_of_two_classes_the_other_is_the_foreground():
    for background, first in ((None, "b"), ("a", "b"), ("b", "a")):
        total = patient(0, background, ["a", "b"])
        headline = cohort_statistics(Cohort(du.Stack.of({"P": total})), total).headline
        assert headline[0].name == f"classes/{first}/f1"
    with pytest.raises(du.InputError, match=r"background: there is no class 'rset'\. Did you mean `rest`"):
        patient(0, "rset")
