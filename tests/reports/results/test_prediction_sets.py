"""Prediction sets, ordered classes and parts of the Brier score in results: against the pixels themselves."""

from __future__ import annotations

import jsonschema
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.metrics.tile_bootstrap import TileUnits
from dask_uncert.reports.page.templates import environment
from dask_uncert.reports.results.cohort import Cohort, cohort_results, cohort_statistics
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.reports.tables.scene import scene_tables
from dask_uncert.summaries.marginals import marginal_reader

WANTED = {"prediction_sets": {"coverages": [0.95, 0.8], "missed": {"b": 0.3, "c": 0.001}}, "ordered": True}
NAMES = ["a", "b", "c"]


def drawn(seed, shape=(40, 24), dtype=np.float32):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6, 0.5, 0.4], size=shape)
    y = (rng.random(shape)[..., None] > np.cumsum(0.9 * p + 0.1 / 3, axis=-1)[..., :2]).sum(axis=-1)
    return p.astype(dtype), y


def shares(p, y, threshold):
    """Coverage, size, emptiness and coverage by class, counted pixel by pixel."""
    inside = p > threshold
    true = np.take_along_axis(inside, y[..., None], axis=-1)[..., 0]
    return [true.mean(), inside.sum(axis=-1).mean(), (~inside.any(axis=-1)).mean()], [
        true[y == c].mean() for c in range(3)
    ]


@pytest.mark.parametrize(
    ("engine", "dtype"), [("compiled", np.float32), pytest.param("reference", np.float64, marks=pytest.mark.slow)]
)
def test_sets_of_a_scene_and_its_tiles_are_those_of_the_pixels(engine, dtype):
    p, y = drawn(3, dtype=dtype)
    confidence = {"unit": "tile", "size": 8, "replicates": 20}
    evaluation = du.evaluate(p, y, classes=NAMES, confidence=confidence, engine=engine, block=(17, 24), **WANTED)
    assert evaluation == du.evaluate(p, y, classes=NAMES, confidence=confidence, engine=engine, **WANTED)
    units, read = TileUnits(evaluation), marginal_reader(evaluation)
    for name in ("items", "true/0", "true/2", "winning", "squared_error"):
        np.testing.assert_array_equal(units.counts(name, 0, len(units.names)).sum(axis=0), read(name))
    results = scene_results(evaluation)
    jsonschema.validate(results, results_schema())
    tiles = [(p[i : i + 8, j : j + 8], y[i : i + 8, j : j + 8]) for i in range(0, 40, 8) for j in range(0, 24, 8)]
    for row, wanted in zip(results["prediction_sets"], (0.8, 0.95), strict=True):
        edge = dtype(row["threshold"])
        found, by_class = shares(p, y, edge)
        assert row["coverage_wanted"] == wanted <= row["coverage"] < wanted + 0.01
        np.testing.assert_allclose([row["coverage"], row["mean_size"], row["empty"]], found, rtol=1e-12)
        np.testing.assert_allclose([c["coverage"] for c in row["classes"]], by_class, rtol=1e-12)
        for k, c in enumerate(row["classes"]):
            assert wanted <= shares(p, y, dtype(c["own_threshold"]))[1][k] < wanted + 0.01
        low, high = row["coverage_interval"]
        assert low < row["coverage"] < high
        covered = [shares(*tile, edge)[0][0] for tile in tiles]
        assert row["by_unit"]["n"] == len(tiles)
        np.testing.assert_allclose([row["by_unit"][k] for k in ("mean", "lowest")], [np.mean(covered), min(covered)])
        assert row["by_unit"]["below_wanted"] == sum(share < wanted for share in covered)
    some, none = results["risk_control"]
    missed = [np.mean(q[..., 1][r == 1] <= dtype(some["threshold"])) for q, r in tiles if (r == 1).any()]
    assert some["missed"] == pytest.approx(np.mean(missed))
    assert (len(missed) * np.mean(missed) + 1) / (len(missed) + 1) <= 0.3
    assert none["threshold"] is None
    assert none["units"] + none["without_class"] == len(tiles)


def test_sets_of_a_cohort_are_described_by_patient():
    cases = {f"P{i}": drawn(i, (300,)) for i in range(6)}
    evaluations = {name: du.evaluate(p, y, classes=NAMES, **WANTED) for name, (p, y) in cases.items()}
    stack = du.Stack.of(evaluations)
    confidence = {"replicates": 20, "level": 0.9, "seed": 1}
    results = cohort_results(stack.total(), cohort_statistics(Cohort(stack, confidence=confidence), stack.total()))
    jsonschema.validate(results, results_schema())
    row = results["prediction_sets"][0]
    covered = [shares(p, y, np.float32(row["threshold"]))[0][0] for p, y in cases.values()]
    assert row["by_unit"]["lowest"] == pytest.approx(min(covered))
    statistics = results["cohort"]["metrics"]["prediction_sets/0.8/coverage"]
    assert [statistics["mean"], row["by_unit"]["mean"]] == pytest.approx([np.mean(covered)] * 2)
    assert results["risk_control"][0]["units"] == 6
    assert {"mcb_interval", "dsc_interval"} <= {*results["calibration"]["corp"]}
    assert "reliability_interval" in results["calibration"]["classes"][1]["brier"]


def test_weighted_kappa_and_parts_of_the_brier_score_by_class():
    p, y = drawn(5)
    evaluation = du.evaluate(p, y, classes=NAMES, **WANTED)
    results = scene_results(evaluation)
    overall, calibration = results["overall"], results["calibration"]
    for weights in ("linear", "quadratic"):
        assert overall[f"weighted_kappa_{weights}"] == du.weighted_kappa(evaluation, weights)
    for key in ("reliability", "resolution", "uncertainty"):
        assert sum(c["brier"][key] for c in calibration["classes"]) == pytest.approx(calibration["brier"][key])
    for k, c in enumerate(calibration["classes"]):
        low, high = c["corp"]["brier_bound"]
        assert low <= np.mean((p[..., k] - (y == k)) ** 2, dtype=np.float64) <= high
    tables = dict(scene_tables(evaluation, results))
    assert len(tables["prediction_sets"]) == 1 + 2 * 4
    assert [row[0] for row in tables["risk_control"]] == ["class", "b", "c"]
    assert len(tables["brier_by_class"]) == 4
    assert "not pixels" in section("prediction_sets", results)
    assert "Classes are ordered" in section("classes", results)
    plain = du.evaluate(p, y, classes=NAMES)
    results = scene_results(plain)
    assert "weighted_kappa_linear" not in results["overall"]
    assert not section("prediction_sets", results).strip()
    assert "ordered" not in section("classes", results)


def section(name, results):
    """A section of the page of a scene."""
    template = environment("pixel").get_template(f"{name}.html.jinja")
    return template.render(results=results, cohort=None, interval_note="", fits=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prediction_sets": {"missed": {"bb": 0.1}}}, "prediction_sets: there is no class 'bb'. Did you mean b?"),
        ({"prediction_sets": {"coverages": []}}, "neither a coverage nor a missed share"),
        ({"prediction_sets": {"coverages": 1.0}}, "less than 1"),
        ({"conventions": "sklearn"}, "scikit-learn"),
    ],
)
def test_wrong_wishes_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        du.evaluate(*drawn(0), classes=NAMES, **options)
