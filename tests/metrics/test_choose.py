"""Thresholds chosen on some zones or patients and reported on others, against the pixels themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.metrics import choose as chosen
from dask_uncert.metrics.resampling_units import patients
from dask_uncert.metrics.threshold_rules import rule_for
from dask_uncert.metrics.tile_bootstrap import TileUnits
from dask_uncert.summaries.stack import Case, Stack
from tests.support.cohorts import Cohort

SIDE = 40
TILES = {"unit": "tile", "size": 8, "replicates": 60, "seed": 2}


@pytest.fixture(scope="module")
def scene():
    """Probabilities, labels, zones of quarters that differ, and the evaluation."""
    rng = np.random.default_rng(0)
    codes = (np.arange(SIDE)[:, None] * 4 // SIDE) + np.zeros((1, SIDE), int)
    y = rng.integers(0, 3, (SIDE, SIDE))
    logits = rng.normal(size=(SIDE, SIDE, 3)) + (np.arange(3) == y[..., None]) * (0.5 + codes[..., None])
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    names = {0: "a", 1: "b", 2: "c", 3: "d", 9: "empty"}
    levels = {"measures": ["gini"], "uncertainty_confusion": {"thresholds": [0.3]}}
    zones = du.Input(codes, names=names)
    return p, y, codes, du.evaluate(p, y, zones=zones, classes=["x", "y", "z"], confidence=TILES, **levels)


def test_a_class_threshold_does_on_other_zones_what_their_pixels_say(scene):
    p, y, codes, evaluation = scene
    choice = du.choose(evaluation, {"zone": ["a", "b"]}, class_name="y", replicates=50)
    best = du.best_threshold(evaluation.zone("a", "b"), "y")
    assert (choice.threshold, choice.chosen["f1"]) == tuple(best)
    assert choice.reported_on == ("c", "d")  # nothing is said of a zone without pixels
    others = codes >= 2
    found, true = p[others, 1] > choice.threshold, y[others] == 1
    assert choice.reported["precision"] == pytest.approx(true[found].mean())
    assert choice.reported["recall"] == pytest.approx(found[true].mean())
    assert choice.reported["found"] == pytest.approx(found.mean())
    assert choice.best == tuple(du.best_threshold(evaluation.zone("c", "d"), "y"))
    assert choice.reported["f1"] <= choice.best[1]
    low, high, _ = choice.intervals["f1"]
    assert low <= choice.reported["f1"] <= high
    assert (choice.unit, choice.units) == ("zone", 2)
    wanted = du.choose(evaluation, {"fold": "a"}, "precision", 0.6, class_name="y", report={"fold": "d"})
    assert wanted.chosen["precision"] >= 0.6
    assert not wanted.intervals
    assert "at least two zones" in " ".join(wanted.notes)


def test_an_uncertainty_finds_errors_and_tiles_give_its_intervals(scene):
    p, y, codes, evaluation = scene
    choice = du.choose(evaluation, {"zone": "a"}, "recall", 0.5, uncertainty="gini", replicates=50)
    others = codes >= 1
    wrong, u = (p.argmax(axis=-1) != y)[others], (1.5 * (1 - (p**2).sum(axis=-1)))[others]
    assert choice.reported["recall"] == pytest.approx((u > choice.threshold)[wrong].mean(), abs=2e-3)
    assert choice.reported["accuracy_of_others"] == pytest.approx(1 - wrong[u <= choice.threshold].mean(), abs=2e-3)
    assert choice.unit == "tile"
    assert 0.5 <= choice.chosen["recall"] < 0.52
    assert any("tiles reported have pixels on both sides" in note for note in choice.notes)  # 10 rows, tiles of 8


@pytest.mark.parametrize("by_tiles", [True, False])
def test_intervals_are_those_of_the_same_numbers_elsewhere(scene, by_tiles):
    evaluation = scene[-1].zone("a", "b", "c", "d") if by_tiles else du.zones(scene[-1]).without(["empty"])
    total = evaluation if by_tiles else evaluation.total()
    rule = rule_for(total, "f1", None, None, "gini")
    units = TileUnits(total) if by_tiles else patients(evaluation)
    cells = rule.cells(units, rule.edges.index(0.3))
    found = chosen._intervals(rule, units, cells, Confidence(60, 0.95, 2))["accuracy"]
    name = "uncertainty_confusion/gini/0.3/UAcc"
    wanted = du.intervals(evaluation, name, replicates=60, level=0.95, seed=2)[name]
    np.testing.assert_allclose([found.low, found.high], [wanted.low, wanted.high], rtol=1e-12)


def test_sets_of_classes_cover_what_their_pixels_say(scene):
    p, y, codes, evaluation = scene
    choice = du.choose(evaluation, {"zone": ["c", "d"]}, "coverage", 0.9, replicates=50)
    assert choice.threshold == du.conformal_threshold(evaluation.zone("c", "d"), 0.9).item()
    others = codes < 2
    own = np.take_along_axis(p, y[..., None], axis=-1)[..., 0]
    assert choice.reported["coverage"] == pytest.approx((own[others] > choice.threshold).mean())
    assert choice.reported["mean_size"] == pytest.approx((p[others] > choice.threshold).sum(axis=-1).mean())
    assert choice.reported["coverage of z"] == pytest.approx((own[others & (y == 2)] > choice.threshold).mean())
    assert choice.chosen["coverage"] >= 0.9 > choice.reported["coverage"]  # a and b are harder: said, not hidden


def cohort(patients_: int, seed: int) -> Stack:
    """Patients of two sites that find a class more or less well; every third has two visits, one at each site."""
    rng, cases = np.random.default_rng(seed), {}
    for i in range(patients_):
        for visit in ("1", "2") if i % 3 == 0 else ("1",):
            y = (rng.random(60) < 0.4).astype(int)
            p = 1 / (1 + np.exp(-rng.normal(size=60) - (2 * y - 1) * rng.uniform(0.5, 3)))
            site = "AB"[(i + (visit == "2")) % 2]
            evaluation = du.evaluate(np.stack([1 - p, p], axis=-1), y, classes=["no", "yes"], measures=[])
            cases[Case(f"P{i:02}", visit if i % 3 == 0 else "", (("site", site),))] = evaluation
    return Stack.of(cases)


def test_patients_are_chosen_by_columns_and_overlap_is_said():
    stack = cohort(12, 0)
    choice = du.choose(stack, {"site": "A"}, "missed", 0.3, class_name="yes", replicates=50)
    first = stack.by("site")["A"]
    own = {}
    for case, evaluation in first.evaluations():
        own[case.patient] = own.get(case.patient, 0) + evaluation
    missed = []
    for evaluation in own.values():
        table = du.threshold_table(evaluation, "yes")
        missed.append((table.FN / (table.TP + table.FN)).values)
    allowed = (np.sum(missed, axis=0) + 1) / (len(missed) + 1) <= 0.3
    assert choice.threshold == table.threshold.values[allowed.sum() - 1]
    assert choice.chosen["mean_missed"] <= 0.3
    shared = set(first.patients) & set(stack.by("site")["B"].patients)
    assert shared
    assert any(f"{len(shared)} patients have visits on both sides" in note for note in choice.notes)
    apart = du.choose(stack, {"patient": ["P00", "P01"]}, class_name="yes", replicates=50)
    assert not any("overlap" in note for note in apart.notes)
    assert apart.units == 10
    both = du.choose(stack, {"site": "A"}, class_name="yes", report="all", replicates=50)
    assert f"Choice and report overlap: {len(first)} of {len(stack)} cases" in both.notes[0]
    few = du.choose(stack, {"patient": "P01"}, "missed", 0.1, class_name="yes")
    assert np.isnan(few.threshold)
    assert "needs at least 9 units" in few.notes[-1]


def test_wrong_requests_say_what_there_is(scene):
    evaluation = scene[-1]
    for words, options, message in (
        ({"site": "a"}, {}, "no column 'site'; there are case, patient, zone"),
        ({"zone": "e"}, {}, "no zone is e; there are a, b, c, d"),
        ({"zone": ["a", "b", "c", "d"]}, {}, "nothing is left to report on"),
        ({}, {}, "name where"),
        ({"zone": "a"}, {"by": "f2"}, "f2.* is not one of f1"),
        ({"zone": "a"}, {"class_name": None}, "either a class"),
        ({"zone": "a"}, {"class_name": "q"}, "no class 'q'"),
        ({"zone": "a"}, {"by": "coverage"}, "needs a wanted value"),
        ({"zone": "a"}, {"wanted": 0.5}, "takes no wanted value"),
        ({"zone": "a"}, {"by": "recall", "wanted": 2}, "between 0 and 1"),
        ({"zone": "a"}, {"by": "missed", "wanted": 0.5, "class_name": None, "uncertainty": "gini"}, "name the class"),
        ({"zone": "a"}, {"class_name": None, "uncertainty": "entropy"}, "no measure 'entropy'; measured: gini"),
    ):
        with pytest.raises(InputError, match=message):
            du.choose(evaluation, words, **{"class_name": "y", **options})
    with pytest.raises(InputError, match="no zones"):
        du.choose(evaluation.alone(), {"zone": "a"}, class_name="y")


@pytest.mark.slow
def test_the_command_reads_scenes_with_zones_and_cohorts(scene, tmp_path, dask_uncert_command):
    du.report(scene[-1], tmp_path / "scene")
    status, out, _ = dask_uncert_command(
        "choose", tmp_path / "scene", "--on", "fold=a", "--on", "fold=b", "--for", "f1", "--class", "y", "--json"
    )
    assert status == 0
    assert json.loads(out) == du.choose(scene[-1], {"zone": ["a", "b"]}, class_name="y").to_dict()
    folder = Cohort(tmp_path / "cohort")
    for i, site in enumerate("AABB"):
        folder.add(f"P{i}", seed=i, site=site)
    assert dask_uncert_command("run", folder.job())[0] == 0
    status, out, _ = dask_uncert_command(
        "choose", folder.folder / "out", "--on", "site=A", "--report", "all", "--for", "recall=0.9", "--class", "lesion"
    )
    assert status == 0
    assert "threshold of the probability of lesion for a recall of 0.9" in out
    assert "Choice and report overlap: 2 of 4 cases" in out
    status, _, said = dask_uncert_command("choose", folder.folder / "out", "--on", "site", "--class", "lesion")
    assert status == 2
    assert "COLUMN=VALUE" in said
