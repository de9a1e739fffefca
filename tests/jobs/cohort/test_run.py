"""Cohorts as people use them: each case once, by itself; what is finished stays; what fails is named."""

import csv
import json
import shutil

import jsonschema
import nibabel
import numpy as np
import pytest
import xarray as xr
import zarr

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.io import file_cache
from dask_uncert.io.open import open_stored
from dask_uncert.io.stack_store import read_cases
from dask_uncert.io.summary_store import load
from dask_uncert.jobs.cohort import case
from dask_uncert.jobs.cohort.case import CaseOutcome, EvaluateCase
from dask_uncert.jobs.run import FailedCasesWarning
from dask_uncert.metrics.classification import accuracy
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.spec.inputs import Input
from tests.support import cohorts
from tests.support.command import command

Cohort, values, store, CLASSES = cohorts.Cohort, cohorts.values, cohorts.store, cohorts.CLASSES
NAMES = [f"P{i}" for i in range(6)]


def test_files_of_finished_cases_do_not_fill_a_workers_memory(tmp_path, monkeypatch):
    values = np.zeros((256, 256, 4))  # 2 MiB
    for number in range(8):
        np.savez_compressed(tmp_path / f"{number}.npz", values)

    def evaluate(self, row, finished):
        assert (open_stored(str(tmp_path / f"{row}.npz"), "", "probabilities")[...] == 0).all()
        return CaseOutcome("output")

    monkeypatch.setattr(EvaluateCase, "evaluate_small", evaluate)
    task = EvaluateCase(None, None, (), "", "", memory=50.0 * 2**20)
    assert {task((number, "")).status for number in range(8)} == {"output"}
    assert 0 < sum(content.nbytes for content in file_cache._CACHE.values()) <= 5 * 2**20


@pytest.fixture
def go(shared_client, without_pictures):
    """Run a cohort's job on a shared cluster, without figures and page."""

    def run(cohort, *, fresh=False, out=None, **changes):
        return du.run(cohort.job(**changes), cluster=shared_client, fresh=fresh, out=out)

    return run


def alone(seed, measures=(), shape=cohorts.SHAPE, **words):
    """One case, evaluated as a scene."""
    found = values(seed, shape)
    return evaluate(found["p"], found["y"], axis=None, classes=CLASSES, measures=list(measures), **words)


def test_a_cohort_is_its_cases_and_their_sum(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:3])
    cohort.add("P3", 3, shape=(7, 2))
    pooled = go(cohort, measures=["gini"])
    each = {f"P{i}": alone(i, ["gini"]) for i in range(3)} | {"P3": alone(3, ["gini"], (7, 2))}
    assert pooled == sum(each.values()) == load(cohort.out)
    stack = read_cases(str(cohort.out / "summary.zarr"))
    assert {case.name: one for case, one in stack.evaluations()} == each
    assert stack.groups["site"] == ("Bern", "Oslo", "Bern", "Oslo")
    assert not cohort.files.exists()
    found = json.loads((cohort.out / "results.json").read_text())
    jsonschema.validate(found, results_schema())
    assert found["cohort"]["groups"] == {"site": {"Bern": 2, "Oslo": 2}}
    assert found["failed"] == []
    record = cohort.record()
    assert set(cohort.statuses().values()) == {"computed"}
    assert record["cases"]["P3"]["shape"] == [7, 2]
    assert record["counted"] == 3 * 20 + 14


@pytest.mark.slow
def test_a_performance_report_shows_the_cases(tmp_path, shared_client, without_pictures):
    cohort = Cohort(tmp_path, ["A", "B"])
    du.run(cohort.job(), cluster=shared_client, performance_report=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "evaluate-case" in page
    assert '<script src="http' not in page


@pytest.mark.slow
def test_what_is_finished_is_not_computed_again(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:3])
    go(cohort)
    first, written = cohort.bits(), (cohort.out / "run.json").stat().st_mtime_ns
    go(cohort)
    assert (cohort.out / "run.json").stat().st_mtime_ns == written
    cohort.add("P9", 9)
    go(cohort)
    assert cohort.statuses() == {"P0": "kept", "P1": "kept", "P2": "kept", "P9": "computed"}
    row = cohort.rows.pop("P9")
    go(cohort)
    assert cohort.bits() == first
    assert set(cohort.statuses().values()) == {"kept"}
    cohort.rows = {"P9": row, **cohort.rows}
    go(cohort)
    assert cohort.statuses()["P9"] == "computed"
    again = Cohort(tmp_path / "again", NAMES[:3])
    again.add("P9", 9)
    go(again)
    assert cohort.bits() == again.bits()


@pytest.mark.slow
def test_regrouping_reads_no_voxel(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:3])
    before = go(cohort)
    for row in cohort.rows.values():
        row["site"] = "Rome"
    assert go(cohort) == before
    assert set(cohort.statuses().values()) == {"kept"}
    assert read_cases(str(cohort.out / "summary.zarr")).groups == {"site": ("Rome",) * 3}


@pytest.mark.slow
def test_a_store_that_was_rewritten_gives_new_results(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:3])
    before = go(cohort)
    cohort.add("P1", seed=50)
    after = go(cohort)
    assert cohort.statuses() == {"P0": "kept", "P1": "computed", "P2": "kept"}
    assert after == before - alone(1) + alone(50)


@pytest.mark.slow
def test_another_job_does_not_replace_a_finished_folder(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:2])
    go(cohort)
    with pytest.raises(InputError, match="finished evaluation of another job"):
        go(cohort, ignore=[3])
    go(cohort, ignore=[3], fresh=True)
    assert set(cohort.statuses().values()) == {"computed"}
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(InputError, match="not ours to replace"):
        go(cohort, output="thesis", fresh=True)


def test_what_fails_is_named_and_the_others_go_on(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES)
    (tmp_path / "P1.zarr" / "p" / "c" / "0" / "0").write_bytes(b"damaged")
    zarr.open_group(str(tmp_path / "P2.zarr"), mode="r+")["y"][0, :3] = 9
    cohort.rows["P3"]["reference"] = "none.zarr"
    store(tmp_path / "P4.zarr", {"p": values(4)["p"], "y": values(4, (9, 9))["y"]})
    with pytest.warns(FailedCasesWarning, match=r"4 cases failed and are left out: P1: .*; P2: "):
        pooled = go(cohort)
    assert pooled == alone(0) + alone(5)
    failed = {one["case"]: one["reason"] for one in json.loads((cohort.out / "results.json").read_text())["failed"]}
    assert list(failed) == ["P1", "P2", "P3", "P4"] == list(cohort.record()["failed"])
    assert "9 (3 pixels)" in failed["P2"]
    assert "P2.zarr:y" in failed["P2"]
    assert "no store at" in failed["P3"]
    assert "has y = 9" in failed["P4"]
    assert (cohort.out / "tables" / "failed.csv").read_text().count("\n") == 5
    assert cohort.statuses() == {"P0": "computed", **dict.fromkeys(failed, "failed"), "P5": "computed"}
    for i in (1, 2, 3, 4):
        cohort.add(f"P{i}", i)
    assert go(cohort) == sum(alone(i) for i in range(6))
    assert cohort.statuses() == {"P0": "kept", **dict.fromkeys(failed, "computed"), "P5": "kept"}


def test_when_all_fail_nothing_is_written(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:2])
    with pytest.raises(InputError, match=r"none of the 2 cases .* the first, P0: .* has no array .q."):
        go(cohort, inputs={"probabilities": {"array": "q"}, "reference": {"array": "y"}})
    assert not cohort.out.exists()


def test_bins_of_another_kind_do_not_add(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:3])
    store(tmp_path / "P1.zarr", {"p": values(1)["p"].astype("float64"), "y": values(1)["y"]})
    with pytest.warns(FailedCasesWarning, match="1 case failed .* P1: its bins differ from those of most"):
        go(cohort, soft_confusion=[{"class": "lesion"}])
    assert list(cohort.statuses().values()) == ["computed", "failed", "computed"]


@pytest.mark.slow
def test_a_large_case_is_run_like_a_scene_and_leaves_the_same_bits(tmp_path, go, monkeypatch):
    cohort = Cohort(tmp_path, NAMES[:3], maps=["correct"])
    go(cohort)
    monkeypatch.setattr(case, "LARGE", 20 * 4)
    cohort.add("P2", 2, shape=(6, 5))
    small = go(cohort)
    large = go(cohort, out=tmp_path / "large")
    assert small == large == alone(0) + alone(1) + alone(2, shape=(6, 5))
    assert cohort.bits() == cohort.bits(tmp_path / "large")


@pytest.mark.slow
def test_maps_of_each_patient(tmp_path, go):
    cohort = Cohort(tmp_path, maps=["gini", "correct"], measures=["gini"], visits="when")
    for name, when, seed in (("P1", "a", 1), ("P1", "b", 2), ("P0", "a", 3)):
        cohort.add(f"{name}{when}", seed, when=when)
        cohort.rows[f"{name}{when}"]["patient"] = name
        group = zarr.open_group(str(tmp_path / f"{name}{when}.zarr"), mode="r+")
        group.create_array("x", data=np.arange(5) * 2.0, dimension_names=("x",))
    go(cohort)
    for name, seed in (("P1/a", 1), ("P1/b", 2), ("P0/a", 3)):
        found = values(seed)
        evaluate(
            found["p"], found["y"], axis=None, classes=CLASSES, measures=["gini"], maps=["gini", "correct"],
            maps_store=tmp_path / "scene.zarr",
        )  # fmt: skip
        wanted = zarr.open_group(str(tmp_path / "scene.zarr"), mode="r")
        maps = xr.open_zarr(cohort.out / "maps.zarr", group=name, consolidated=False)
        np.testing.assert_array_equal(maps["gini"].values, wanted["gini"][...])
        np.testing.assert_array_equal(maps["correct"].fillna(255).values, wanted["correct"][...])
        assert maps["x"].values.tolist() == [0, 2, 4, 6, 8]
    cohort.add("P7", 7, when="z")
    go(cohort)
    assert cohort.statuses()["P1/b"] == "kept"
    names = {str(p.parent.relative_to(cohort.out / "maps.zarr")) for p in cohort.out.rglob("maps.zarr/**/gini")}
    assert names == {"P0/a", "P1/a", "P1/b", "P7/z"}
    shutil.rmtree(cohort.out / "maps.zarr" / "P1" / "b")
    go(cohort)
    assert [name for name, status in cohort.statuses().items() if status == "computed"] == ["P1/b"]
    assert not list(tmp_path.glob("*unfinished*"))


@pytest.mark.slow
def test_raters_in_columns_and_along_an_axis(tmp_path, go, monkeypatch):
    rng = np.random.default_rng(5)
    votes = {name: rng.choice(list(CLASSES), (3, *cohorts.SHAPE)).astype("uint8") for name in NAMES[:2]}
    columns = ["first", "second", "third"]
    inputs = {
        "probabilities": {"array": "p"},
        "reference": {"array": "", "raters": columns, "per_rater": True},
    }
    cohort = Cohort(tmp_path, NAMES[:2], inputs=inputs, groups=[])
    for name, three in votes.items():
        for column, one in zip(columns, three, strict=True):
            place = tmp_path / f"{name}-{column}.zarr"
            zarr.create_array(str(place), data=one, dimension_names=("y", "x"))
            cohort.rows[name][column] = place.name
        zarr.create_array(str(tmp_path / f"{name}-all.zarr"), data=three, dimension_names=("rater", "y", "x"))
    p = {name: values(i)["p"] for i, name in enumerate(votes)}
    words = {"axis": None, "classes": CLASSES, "measures": []}
    wanted = sum(
        evaluate(p[name], Input((three == 7).mean(axis=0), fuzzy=True, raters=3), **words)
        for name, three in votes.items()
    )
    assert go(cohort, soft_confusion=[]) == wanted
    for i, column in enumerate(columns):
        assert load(cohort.out / "raters" / column) == sum(
            evaluate(p[name], three[i], **words) for name, three in votes.items()
        )
    found = json.loads((cohort.out / "results.json").read_text())
    jsonschema.validate(found, results_schema())
    for column in columns:
        against = accuracy(load(cohort.out / "raters" / column))
        assert found["cohort"]["by_rater"][column]["metrics"]["overall/accuracy"]["pooled"] == against
    rows = list(csv.DictReader((cohort.out / "tables" / "raters.csv").open()))
    assert {row["rater"] for row in rows} == set(columns)
    for name in votes:
        cohort.rows[name]["reference"] = f"{name}-all.zarr"
    inputs["reference"] = {"per_rater": True}
    assert go(cohort, inputs=inputs, output="axis") == wanted
    assert load(tmp_path / "axis" / "raters" / "rater_1") == load(cohort.out / "raters" / "second")
    inputs["reference"] = {"raters": 4}
    with pytest.raises(InputError, match="holds 3 raters; the job says 4"):
        go(cohort, inputs=inputs, output="wrong")
    inputs["reference"] = {"array": "y", "per_rater": True}
    for name in votes:
        cohort.rows[name]["reference"] = f"{name}.zarr"
    with pytest.raises(InputError, match="has no dimension `rater`"):
        go(cohort, inputs=inputs, output="wrong")
    monkeypatch.undo()
    du.report(cohort.out)
    assert "Comparison with each rater" in (cohort.out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("along_an_axis", [False, True])
def test_each_rater_leaves_out_only_its_own_missing_chunks(tmp_path, go, along_an_axis):
    classes = {1: "background", 7: "lesion"}  # the fill value 0 is not a code
    votes = np.random.default_rng(3).choice([1, 7], (2, *cohorts.SHAPE)).astype("uint8")
    options = {"missing_chunks": "leave_out", "per_rater": True}
    labels = ["rater_0", "rater_1"] if along_an_axis else ["first", "second"]
    if not along_an_axis:
        options |= {"array": "", "raters": labels}
    inputs = {"probabilities": {"array": "p"}, "reference": options}
    cohort = Cohort(tmp_path, NAMES[:1], inputs=inputs, groups=[], classes=classes)
    dims = ("rater", "y", "x")
    if along_an_axis:
        path = tmp_path / "all.zarr"
        zarr.create_array(str(path), data=votes, chunks=(1, 2, 5), dimension_names=dims)
        cohort.rows["P0"]["reference"] = path.name
        (path / "c/0/1/0").unlink()
    else:
        for label, codes in zip(labels, votes, strict=True):
            path = tmp_path / f"{label}.zarr"
            zarr.create_array(str(path), data=codes, chunks=(2, 5), dimension_names=dims[1:])
            cohort.rows["P0"][label] = path.name
        (tmp_path / "first.zarr/c/1/0").unlink()
    with pytest.warns(du.InputWarning, match=r"^P0: .* 1 chunk of .* is not in the store, and left out as missing"):
        mean = go(cohort)
    p = values(0)["p"]
    first, second = (load(cohort.out / "raters" / label) for label in labels)
    assert second == evaluate(p, votes[1], axis=None, classes=classes, measures=[])
    for evaluation in (mean, first):
        assert evaluation.ledger.counted == 10
        assert evaluation.ledger.reasons()["reference_missing_chunk"] == 10
    wanted = evaluate(p[:2], votes[0, :2], axis=None, classes=classes, measures=[])
    assert accuracy(first) == accuracy(wanted)


@pytest.mark.slow
def test_samples_in_columns(tmp_path, go):
    inputs = {"samples": {"array": "p", "members": ["one", "two"]}, "reference": {"array": "y"}}
    cohort = Cohort(tmp_path, NAMES[:2], inputs=inputs, measures=["mutual_information"])
    for row in cohort.rows.values():
        row |= {"one": "P0.zarr", "two": "P1.zarr"}
    members = [values(0)["p"], values(1)["p"]]
    words = {"axis": None, "classes": CLASSES, "measures": ["mutual_information"]}
    assert go(cohort) == sum(evaluate(samples=members, reference=values(i)["y"], **words) for i in range(2))


def test_nifti_files_that_lie_differently(tmp_path, go):
    """A patient in NIfTI: the reference's axes run the other way, and one rater's as well."""
    rng = np.random.default_rng(3)
    p, y = rng.random((3, 4, 5)).astype("float32"), rng.choice(list(CLASSES), (3, 4, 5)).astype("uint8")
    there, back = np.diag([2.0, 2, 3, 1]), np.diag([-2.0, 2, 3, 1])
    back[0, 3] = 4
    for name, array, affine in (("p", p, there), ("y", y[::-1], back), ("z", y, there)):
        nibabel.save(nibabel.Nifti1Image(array, affine), tmp_path / f"{name}.nii.gz")
    inputs = {"probabilities": {}, "reference": {}}
    cohort = Cohort(tmp_path, ["P0"], inputs=inputs, groups=[])
    cohort.rows["P0"] |= {"probabilities": "p.nii.gz", "reference": "y.nii.gz", "other": "z.nii.gz"}
    wanted = evaluate(p, y, axis=None, classes=CLASSES, measures=[])
    assert go(cohort) == wanted
    go(cohort)
    assert cohort.statuses() == {"P0": "computed"}  # of the first run, whose output stays
    inputs["reference"] = {"raters": ["reference", "other"]}
    shares = evaluate(p, Input((y == 7) * 1.0, fuzzy=True, raters=2), axis=None, classes=CLASSES, measures=[])
    assert go(cohort, inputs=inputs, output="raters") == shares


@pytest.mark.slow
def test_class_distances_of_a_cohort_are_a_table(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES[:2], measures=["homophily"])
    with pytest.raises(InputError, match="with a metric every case would have different distances"):
        go(cohort, class_distances={"metric": "energy"})
    with pytest.raises(InputError, match="needs either"):
        go(cohort)
    table = {"table": [[0, 1], [1, 0]]}
    assert go(cohort, class_distances=table) == sum(alone(i, ["homophily"], class_distances=table) for i in range(2))


@pytest.mark.slow
def test_merging_and_leaving_out_read_no_voxel(tmp_path, go):
    cohort = Cohort(tmp_path, NAMES)
    go(cohort)
    rows = dict(cohort.rows)
    for out, part in (("a", NAMES[::2]), ("b", NAMES[1::2])):
        cohort.rows = {name: rows[name] for name in part}
        go(cohort, output=out)
    for path in tmp_path.glob("P*.zarr"):
        path.rename(path.with_suffix(".gone"))
    pooled = du.merge(tmp_path / "both", [tmp_path / "b", tmp_path / "a"])
    assert cohort.bits(tmp_path / "both") == cohort.bits()
    du.merge(tmp_path / "less", [tmp_path / "out"], leave_out=["P3", "P4"])
    assert load(tmp_path / "less") == pooled - alone(3) - alone(4)
    written = (tmp_path / "less" / "run.json").stat().st_mtime_ns
    du.merge(tmp_path / "less", [tmp_path / "out"], leave_out=["P4", "P3"])
    assert (tmp_path / "less" / "run.json").stat().st_mtime_ns == written
    with pytest.raises(InputError, match=r"case P0 is in .*out and in .*a; it would count twice"):
        du.merge(tmp_path / "twice", [tmp_path / "out", tmp_path / "a"])
    with pytest.raises(InputError, match="no case P1 to leave out"):
        du.merge(tmp_path / "twice", [tmp_path / "a"], leave_out=["P1"])
    with pytest.raises(InputError, match="all cases are left out; keep at least one"):
        du.merge(tmp_path / "twice", [tmp_path / "a"], leave_out=NAMES[::2])
    before = (tmp_path / "less" / "results.json").read_bytes()
    (tmp_path / "less" / "results.json").unlink()
    du.report(tmp_path / "less")
    assert (tmp_path / "less" / "results.json").read_bytes() == before


@pytest.mark.slow
def test_a_case_is_found_by_each_encoding_of_its_name(tmp_path, go, without_pictures):
    composed, decomposed = "José", "Jose\u0301"
    cohort = Cohort(tmp_path, [decomposed, "P"], measures=["gini"], maps=["gini"])
    go(cohort)
    for name in (composed, decomposed):
        assert du.export(cohort.out, "gini", tmp_path / f"{len(name)}.nc", case=name).exists()
        du.merge(tmp_path / f"less{len(name)}", [cohort.out], leave_out=[name])
        assert du.load_cases(tmp_path / f"less{len(name)}").names == ("P",)


@pytest.mark.slow
def test_the_commands_say_what_failed(tmp_path):
    """On processes of their own, as `local` gives a cohort; with figures and page."""
    cohort = Cohort(tmp_path, NAMES[:3])
    zarr.open_group(str(tmp_path / "P1.zarr"), mode="r+")["y"][0, 0] = 9
    facts = du.plan(cohort.job())
    assert (facts["cases"], facts["tasks"], facts["large_cases"]) == (3, 3, 0)
    assert facts["bytes_read"] == {"probabilities": 240, "reference": 60}
    done = command("run", cohort.job(), "--quiet", check=1)
    assert done.stderr.startswith("error: 1 case failed and is left out: P1: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert load(cohort.out) == alone(0) + alone(2)
    assert (cohort.out / "report.html").exists()
    cohort.rows["P0"]["site"] = ""
    with pytest.raises(InputError, match="row 2, column site is empty"):
        du.run(cohort.job())
