"""What is read off a cohort, through the job: pooled or averaged, asked twice; who is at which place; models compared."""

from __future__ import annotations

import csv
import itertools
import json

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import dask_uncert as du
from dask_uncert.cli import main
from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import write_record
from dask_uncert.jobs.run import FailedCasesWarning
from dask_uncert.reports import write
from dask_uncert.reports.results.schema import results_schema
from tests.support import cohorts

Cohort, store = cohorts.Cohort, cohorts.store
DICE, ECE = "classes/lesion/f1", "calibration/ece"


@pytest.fixture(scope="module")
def run(shared_client):
    """Run a cohort's job on a shared cluster, without figures and page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "figures_and_page", lambda *arguments: {})
        yield lambda cohort, **changes: du.run(cohort.job(**changes), cluster=shared_client)


def of_cells(tp=0, fp=0, fn=0, tn=0, p=0.9):
    """Binary probabilities and codes with these four cells, every decision stated with probability p; a row."""
    cells = ((tp, 7, p), (fp, 0, p), (fn, 7, 1 - p), (tn, 0, 1 - p))
    y = np.concatenate([np.full(n, truth, "uint8") for n, truth, _ in cells])
    return {"p": np.concatenate([np.full(n, value) for n, _, value in cells])[None], "y": y[None]}


def cohort_with(folder, cases, **words):
    cohort = Cohort(folder, groups=[], **words)
    for name, arrays in cases.items():
        store(folder / f"{name}.zarr", arrays)
        place = f"{name}.zarr"
        cohort.rows[name] = {"patient": name, "probabilities": place, "reference": place}
    return cohort


def found_in(cohort):
    found = json.loads((cohort.out / "results.json").read_text())
    jsonschema.validate(found, results_schema())
    return found


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_pooled_and_averaged_are_both_offered_and_named(tmp_path, run):
    cohort = cohort_with(tmp_path / "dice", {"A": of_cells(tp=90, fp=10), "B": of_cells(tp=1, fn=9)})
    run(cohort)
    found = found_in(cohort)
    dice = found["cohort"]["metrics"][DICE]
    assert (round(dice["mean"], 7), round(dice["pooled"], 7)) == (0.5645933, 0.9054726)
    assert dice["pooled"] == found["classes"][1]["f1"]
    row = next(one for one in rows_of(cohort.out / "tables" / "cohort.csv") if one["metric"] == DICE)
    assert (float(row["mean"]), float(row["pooled"])) == (dice["mean"], dice["pooled"])
    same = {"A": of_cells(tp=9, fp=1, p=0.7), "B": of_cells(tp=5, fp=5, p=0.7)}
    cohort = cohort_with(tmp_path / "ece", same)
    run(cohort)
    ece = found_in(cohort)["cohort"]["metrics"][ECE]
    assert ece["mean"] == pytest.approx(0.2, abs=1e-12)
    assert ece["pooled"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
def test_undefined_numbers_are_counted_the_same_in_every_report(tmp_path, run):
    cases = {"P1": of_cells(tp=4, fp=2), "P2": of_cells(tn=5), "P3": of_cells(tp=3, fn=4)}
    cohort = cohort_with(tmp_path, cases)
    run(cohort)
    seen = set()
    for _ in range(3):
        dice = found_in(cohort)["cohort"]["metrics"][DICE]
        assert dice["mean"] == pytest.approx(0.7, abs=1e-12)
        assert (dice["n"], dice["undefined"]) == (2, 1)
        assert dice["at"] == {"0.05": "P3", "0.25": "P3", "0.5": "P3", "0.75": "P1", "0.95": "P1"}
        seen.add((cohort.out / "results.json").read_bytes())
        du.report(cohort.out)
    assert len(seen) == 1
    table = {one["case"]: one for one in rows_of(cohort.out / "tables" / "patients_all.csv")}
    assert [table[name][DICE] for name in ("P1", "P2", "P3")] == ["0.8", "", "0.6"]


@pytest.mark.slow
def test_the_tables_say_who_failed_and_the_intervals_are_of_patients(tmp_path, run):
    cohort = Cohort(tmp_path, ["P0", "P1", "P2", "P3"], visits="when")
    for i, row in enumerate(cohort.rows.values()):
        row |= {"when": str(i), "patient": f"N{i // 2}"}
    cohort.rows["P3"]["reference"] = "none.zarr"
    with pytest.warns(FailedCasesWarning, match="1 case failed"):
        run(cohort)
    first = (cohort.out / "tables" / "patients_all.csv").read_bytes()
    rows = rows_of(cohort.out / "tables" / "patients_all.csv")
    assert [(r["case"], r["patient"], r["visit"], r["site"], r["status"]) for r in rows] == [
        ("N0/0", "N0", "0", "Bern", "evaluated"),
        ("N0/1", "N0", "1", "Oslo", "evaluated"),
        ("N1/2", "N1", "2", "Bern", "evaluated"),
        ("N1/3", "N1", "3", "Oslo", "failed"),
    ]
    assert "no store at" in rows[3]["reason"]
    assert (rows[0]["counted (pixels)"], rows[3]["counted (pixels)"], rows[3][DICE]) == ("20", "", "")
    found = found_in(cohort)
    assert (found["confidence"]["unit"], found["confidence"]["units"]) == ("patient", 2)
    one = found["cohort"]["metrics"]["overall/accuracy"]
    assert found["overall"]["accuracy_interval"] == one["pooled_interval"]
    each = {row["case"]: float(row["overall/accuracy"]) for row in rows[:3]}
    assert one["mean"] == pytest.approx(((each["N0/0"] + each["N0/1"]) / 2 + each["N1/2"]) / 2)
    assert {v: g["cases"] for v, g in found["cohort"]["by_group"]["site"].items()} == {"Bern": 2, "Oslo": 1}
    groups = rows_of(cohort.out / "tables" / "groups.csv")
    bern = next(r for r in groups if r["value"] == "Bern" and r["metric"] == "overall/accuracy")
    assert float(bern["mean"]) == pytest.approx((each["N0/0"] + each["N1/2"]) / 2)
    # Written again, and merged with nothing, it says the same of who failed.
    du.report(cohort.out)
    assert (cohort.out / "tables" / "patients_all.csv").read_bytes() == first
    du.merge(tmp_path / "again", [cohort.out])
    assert (tmp_path / "again" / "tables" / "patients_all.csv").read_bytes() == first


@pytest.fixture(scope="module")
def models(tmp_path_factory, run):
    """Two models on the same seven patients, and the folders that their cohorts left."""
    folder = tmp_path_factory.mktemp("models")
    cohort = Cohort(folder, [f"P{i}" for i in range(7)])
    for i, name in enumerate(cohort.rows):
        rng = np.random.default_rng(100 + i)
        y = rng.choice([0, 7], (6, 5)).astype("uint8")
        for array, skill in (("p", 0.85), ("q", 0.7)):
            right = rng.random(y.shape) < skill
            values = np.where(right == (y == 7), 0.75, 0.25) + rng.random(y.shape) / 8
            store(folder / f"{name}-{array}.zarr", {array: values.astype("float32")})
        store(folder / f"{name}.zarr", {"y": y})
    for array in "pq":
        for name, row in cohort.rows.items():
            row["probabilities"] = f"{name}-{array}.zarr"
        inputs = {"probabilities": {"array": array}, "reference": {"array": "y"}}
        run(cohort, inputs=inputs, output=f"model_{array}")
    cohort.rows = {name: row for name, row in cohort.rows.items() if name not in ("P2", "P5")}
    run(cohort, inputs=inputs, output="fewer")
    return folder


def called(*words):
    return CliRunner().invoke(main.cli, ["compare", *map(str, words)], standalone_mode=False)


@pytest.mark.slow
def test_compare_says_what_the_tables_of_patients_say(models, tmp_path):
    one, other = models / "model_p", models / "model_q"
    done = called(one, other, "--csv", tmp_path / "found.csv", "--replicates", 50)
    assert done.exception is None
    assert not done.output
    shown = called(one, other, "--json", "--replicates", 50)
    found = json.loads(shown.output)
    schema = results_schema()
    jsonschema.validate(found, {**schema["properties"]["comparison"], "$defs": schema["$defs"]})
    tables = [{r["case"]: r for r in rows_of(place / "tables" / "patients_all.csv")} for place in (one, other)]
    rows = {row["metric"]: row for row in rows_of(tmp_path / "found.csv")}
    assert list(rows) == list(found["metrics"])
    assert {DICE, "overall/accuracy", ECE} <= set(rows)
    for name, of in found["metrics"].items():
        a, b = (np.array([float(table[case][name]) for case in sorted(table)]) for table in tables)
        assert of["mean_difference"] == pytest.approx((a - b).mean(), abs=1e-12)
        assert of["t_test"]["p_value"] == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-9)
        assert of["signed_rank"]["statistic"] == pytest.approx(stats.wilcoxon(a, b).statistic)
        assert float(rows[name]["mean difference"]) == of["mean_difference"]
        assert float(rows[name]["permutation p holm"]) == of["permutation"]["p_holm"]
        low, high = of["mean_difference_interval"]
        assert low <= of["mean_difference"] <= high
    # Accuracy of cases of equal size: the pooled difference is the mean one, and its swaps can be listed.
    of = found["metrics"]["overall/accuracy"]
    d = [float(tables[0][c]["overall/accuracy"]) - float(tables[1][c]["overall/accuracy"]) for c in tables[0]]
    far = [abs(np.dot(signs, d)) >= abs(sum(d)) - 1e-9 for signs in itertools.product((1, -1), repeat=len(d))]
    assert found["all_swaps"]
    assert of["permutation"]["p_value"] == pytest.approx(np.mean(far))
    p = sorted(one["t_test"]["p_value"] for one in found["metrics"].values())
    smallest = min(found["metrics"].values(), key=lambda one: one["t_test"]["p_value"])
    assert smallest["t_test"]["p_holm"] == pytest.approx(min(1, p[0] * len(p)))


@pytest.mark.slow
def test_the_table_shows_both_differences_with_their_tests(models):
    output = called(models / "model_p", models / "model_q", "--metric", DICE, "--replicates", 30).output
    head, name, mean, pooled = output.splitlines()[4:8]
    assert name == DICE
    assert [head.split()[i] for i in (0, 1, 2)] == ["A", "B", "difference"]
    assert mean.split()[0] == "mean"
    assert pooled.split()[0] == "pooled"
    found = du.compare(models / "model_p", models / "model_q", metrics=DICE, replicates=30)
    for line, both, difference in (
        (mean, found.mean, found.mean_difference),
        (pooled, found.pooled, found.pooled_difference),
    ):
        shown = [float(text) for text in line.split()[1:4]]
        np.testing.assert_allclose(shown, [*both[:, 0], difference[0]], atol=5e-5)
    assert len(mean.split()) == 4 + 3 + 4  # two p-values, each with the corrected one
    assert len(pooled.split()) == 4 + 3 + 2
    assert f"A  {models / 'model_p'}" in output


@pytest.mark.slow
def test_compare_refuses_what_is_not_two_models_on_the_same_cases(models, tmp_path):
    one = models / "model_p"
    with pytest.raises(InputError, match=r"model_p alone has P2, P5\. .*5 cases that both have \(--common\)"):
        du.compare(one, models / "fewer")
    found = du.compare(one, models / "fewer", common=True, replicates=20)
    assert (found.patients, found.only) == (("P0", "P1", "P3", "P4", "P6"), (("P2", "P5"), ()))
    assert "left out, in A alone: P2, P5" in called(one, models / "fewer", "--common").output
    scene = tmp_path / "scene"
    du.save(du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1]), scene / "summary.zarr")
    write_record(scene, {})
    with pytest.raises(InputError, match="one is a scene and the other has cases"):
        du.compare(one, scene)
    with pytest.raises(InputError, match="another model only for cohorts"):
        du.report(scene, against=one)
    with pytest.raises(InputError, match="no folder"):
        du.compare(one, tmp_path / "none")
    for words, said in (
        ({"level": 1.0}, "level"), ({"replicates": 0}, "replicates"), ({"seed": -1}, "seed"), ({"metrics": "dice"}, "dice")
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            du.compare(one, models / "model_q", **words)
    (tmp_path / "mine.csv").write_text("do not lose me")
    refused = called(one, models / "model_q", "--csv", tmp_path / "mine.csv")
    assert "exists" in str(refused.exception)
    assert (tmp_path / "mine.csv").read_text() == "do not lose me"


@pytest.mark.slow
def test_a_report_against_another_model_and_without_it_again(models):
    one, other = models / "model_p", models / "model_q"
    before = (one / "results.json").read_bytes()
    done = CliRunner().invoke(main.cli, ["report", str(one), "--against", str(other)], standalone_mode=False)
    assert done.exception is None
    found = json.loads((one / "results.json").read_text())
    jsonschema.validate(found, results_schema())
    compared = json.loads(called(one, other, "--json", "--replicates", 20).output)
    assert found["comparison"] == {**compared, "first": "this"}
    assert (one / "tables" / "comparison.csv").exists()
    assert {key: value for key, value in found.items() if key != "comparison"} == json.loads(before)
    du.report(one)
    assert (one / "results.json").read_bytes() == before
    assert not (one / "tables" / "comparison.csv").exists()
    with pytest.raises(InputError, match="is the same folder"):
        du.report(one, against=one)
    with pytest.raises(InputError, match="not evaluated on the same cases"):
        du.report(one, against=models / "fewer")
    assert (one / "results.json").read_bytes() == before


@pytest.mark.slow
def test_another_seed_draws_other_patients_and_the_same_seed_the_same(models):
    def ends(seed):
        found = du.compare(models / "model_p", models / "model_q", metrics=DICE, replicates=40, seed=seed, level=0.8)
        return np.concatenate([*found.mean_interval[:2], *found.pooled_interval[:2]])

    np.testing.assert_array_equal(ends(1), ends(1))
    assert (ends(1) != ends(2)).any()
