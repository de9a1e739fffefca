"""One vocabulary: what Python takes a job takes, and wrong options are refused in the same words."""

from typing import get_args

import numpy as np
import pytest
import xarray as xr
import zarr

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.formulas.soft_confusion import DAMPING_FORMS
from dask_uncert.formulas.threshold_distributions import DISTRIBUTIONS
from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.jobs.schema import CaseInputs, CohortJob, Inputs, Job, RegressionJob
from dask_uncert.spec import inputs as input_options
from dask_uncert.spec.options import (
    ClassificationOptions,
    DampingForm,
    Distribution,
    EvaluateOptions,
    PassOptions,
    RegressionOptions,
    SceneOptions,
)


def test_keywords_options_and_keys_of_jobs_are_the_same():
    scene, passes = {*SceneOptions.model_fields}, {*PassOptions.model_fields}
    assert {*EvaluateOptions.__annotations__} == scene | passes
    assert {*Job.model_fields} == scene | {"version", "kind", "inputs", "cluster", "output"}
    assert {*CohortJob.model_fields} >= {*ClassificationOptions.model_fields}
    assert {*RegressionJob.model_fields} >= {*RegressionOptions.model_fields}
    models = [input_options.InputOptions, *input_options.MODELS.values()]
    keys = {key for model in models for key in model.model_fields}
    assert {*input_options.InputKeywords.__annotations__} == keys
    for inputs in (Inputs, CaseInputs):
        assert {"probabilities", "samples", "reference", "mask", "uncertainty", "weight"} <= {*inputs.model_fields}


def test_options_know_every_formula():
    assert get_args(Distribution) == DISTRIBUTIONS
    assert get_args(DampingForm) == DAMPING_FORMS


@pytest.fixture
def scene(tmp_path):
    """A scene in a store, as arrays and as a job."""
    rng = np.random.default_rng(0)
    arrays = {
        "probabilities": np.rint(rng.dirichlet(np.ones(3), (6, 5)) * 250).astype("u1"),
        "reference": rng.integers(0, 4, (6, 5)).astype("u1"),
    }
    arrays["probabilities"][..., 0] += 250 - arrays["probabilities"].sum(axis=-1).astype("u1")
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    for name, values in arrays.items():
        group.create_array(name, data=values, dimension_names=("y", "x", "class")[: values.ndim])
    job = {
        "version": 1, "kind": "scene", "output": str(tmp_path / "out"),
        "inputs": {name: {"store": str(tmp_path / "scene.zarr"), "array": name} for name in arrays},
    }  # fmt: skip
    return arrays, job


def computed(job, **changes):
    return plan_job(*read_job({**job, **changes})).compute()


def test_both_take_the_same_options(scene):
    arrays, job = scene
    job["inputs"]["probabilities"] |= {"scale": 1 / 250, "tolerance": 0.1}
    job["inputs"]["reference"] |= {"nodata": 3}
    p, y = (
        du.Input(job["inputs"][n]["store"], **{k: v for k, v in job["inputs"][n].items() if k != "store"})
        for n in arrays
    )
    given = du.Input(arrays["probabilities"], scale=1 / 250, tolerance=0.1, dims=["y", "x", "class"])
    codes = du.Input(arrays["reference"], nodata=3)
    for options in (
        {},
        {"classes": ["a", "b", "c"], "measures": [{"geometric": {"n": 1}}]},
        {
            "classes": {0: "a", 1: "b", 2: "c"},
            "soft_confusion": [{"class": "a", "thresholds": 0.3, "sigmas": [0, 0.1]}],
        },
        {"measures": ["homophily"], "class_distances": {"table": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]}},
        {"confidence": {"size": 2, "replicates": 10}},
    ):
        wanted = computed(job, **options)
        assert wanted.ledger.reasons()["reference_nodata"] == (arrays["reference"] == 3).sum()
        assert du.evaluate(p, y, **options) == wanted
        assert du.evaluate(given, codes, **options) == wanted


def test_pixels_weigh_their_size_and_inputs_overlap_from_python_too():
    coordinates = {"lat": [50.0, 49.0, 48.0], "lon": [0.0, 1.0]}
    y = xr.DataArray(np.zeros((3, 2), int), dims=("lat", "lon"), coords=coordinates)
    p = xr.DataArray(np.full((3, 2), 0.25), dims=("lat", "lon"), coords=coordinates)
    evaluation = du.evaluate(p[1:], y, axis=None, weight="geometry", overlap=True)
    assert evaluation.ledger.reasons()["probabilities_outside"] == 2
    assert evaluation.weighted[0].unit == "m²"


@pytest.mark.parametrize(
    ("lone", "as_list"),
    [
        ({"ignore": 3}, {"ignore": [3]}),
        ({"measures": "gini"}, {"measures": ["gini"]}),
        ({"measures": {"renyi": {"alpha": 3}}}, {"measures": [{"renyi": {"alpha": 3}}]}),
        ({"measures": "geometric"}, {"measures": [{"geometric": {}}]}),
        ({"uncertainty_confusion": {"measures": "gini", "thresholds": 0.5}}, {"uncertainty_confusion": {"measures": ["gini"], "thresholds": [0.5]}}),
        ({"soft_confusion": {"class": "0", "thresholds": 0.5}}, {"soft_confusion": [{"class": ["0"], "thresholds": [0.5]}]}),
        ({"ignore": np.array([3])}, {"ignore": [3]}),
    ],
)  # fmt: skip
def test_a_lone_value_stands_for_a_list_of_one_in_both(scene, lone, as_list):
    _, job = scene
    job["inputs"]["probabilities"] |= {"scale": 1 / 250, "tolerance": 0.1}
    job["inputs"]["reference"] |= {"nodata": 3}
    wanted = computed(job, **as_list)
    assert computed(job, **lone) == wanted
    assert du.evaluate(job["inputs"]["probabilities"], job["inputs"]["reference"], **lone) == wanted


def test_an_input_is_a_path_a_mapping_or_names_with_commas(tmp_path):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), (4, 5)), rng.integers(0, 3, (4, 5))
    np.save(tmp_path / "p.npy", np.moveaxis(p, -1, 0))
    with zarr.config.set({"array.write_empty_chunks": True}):
        zarr.create_array(str(tmp_path / "y.zarr"), data=y, dimension_names=("y", "x"))
    names = {"store": str(tmp_path / "p.npy"), "dims": "class, y,x"}
    job = {
        "version": 1,
        "kind": "scene",
        "output": "out",
        "inputs": {"probabilities": names, "reference": str(tmp_path / "y.zarr")},
    }
    wanted = du.evaluate(p, y)
    assert computed(job) == wanted
    assert du.evaluate(names, tmp_path / "y.zarr") == wanted
    assert du.evaluate(du.Input(names["store"], dims="class,y,x"), str(tmp_path / "y.zarr")) == wanted
    with pytest.raises(InputError, match="probabilities: a mapping needs `store`"):
        du.evaluate({"array": "p"}, y)


TABLES = (
    {"classes": {"0": "soil", "1": "tree", "3": "sea"}},
    {"flag_values": [0, 1, 3], "flag_meanings": "soil tree sea"},
)


@pytest.mark.parametrize("attributes", TABLES)
def test_classes_from_the_file(tmp_path, attributes):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), (4, 5)), np.resize([0, 1, 3], (4, 5))
    for name, values in (("p", p), ("y", y)):
        dims = ("y", "x", "class")[: values.ndim]
        zarr.create_array(
            str(tmp_path / f"{name}.zarr"),
            data=values,
            dimension_names=dims,
            attributes=attributes if name == "y" else {},
        )
    inputs = {"probabilities": str(tmp_path / "p.zarr"), "reference": str(tmp_path / "y.zarr")}
    wanted = du.evaluate(p, y, classes={1: "tree", 3: "sea"}, ignore=0)
    options = {"classes": "from_file", "ignore": 0}
    assert computed({"version": 1, "kind": "scene", "output": "out", "inputs": inputs}, **options) == wanted
    assert du.evaluate(*inputs.values(), **options) == wanted
    assert du.evaluate(p, xr.DataArray(y, dims=("dim_0", "dim_1"), attrs=attributes), **options) == wanted
    with pytest.raises(InputError, match="has no class table"):
        du.evaluate(p, y, **options)


def test_classes_from_the_files_of_a_cohort(tmp_path):
    rng = np.random.default_rng(0)
    for case in "ab":
        zarr.create_array(str(tmp_path / f"p_{case}"), data=rng.uniform(size=(4, 5)), dimension_names=("y", "x"))
        table = {"0": "soil", "1": "tree" if case == "a" else "sea"}
        zarr.create_array(
            str(tmp_path / f"y_{case}"),
            data=rng.integers(0, 2, (4, 5)),
            dimension_names=("y", "x"),
            attributes={"classes": table},
        )
    rows = ["patient,probabilities,reference", "a,p_a,y_a", "b,p_b,y_b"]
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    job = {
        "version": 1,
        "kind": "cohort",
        "output": "out",
        "manifest": str(tmp_path / "cases.csv"),
        "classes": "from_file",
    }
    plan = du.plan({**job, "inputs": {"probabilities": {}, "reference": {}}})
    assert [*plan["unusable"]] == ["b"]
    assert "Write one table for all into the job" in plan["unusable"]["b"]


@pytest.mark.parametrize(
    ("dims", "shape", "classes", "message"),
    [
        (None, (3, 4, 5), 3, "write `dims: [class, y, x]`: axis 0 has 3, as many as classes."),
        (None, (4, 3, 5), 3, "write `dims: [y, class, x]`: axis 1 has 3, as many as classes."),
        (None, (3, 3, 5), 3, "the axes 0, 1 have 3, as many as classes; one is `class`."),
        (("band", "y", "x"), (3, 4, 5), 3, "write `dims: [class, y, x]`: axis 0 has 3, as many as classes."),
        (("y", "x", "clas"), (4, 5, 3), 3, "`clas` is not reserved. Did you mean `class`?"),
    ],
)
def test_missing_dimensions_are_proposed_never_assumed(tmp_path, dims, shape, classes, message):
    zarr.create_array(str(tmp_path / "p"), data=np.zeros(shape), dimension_names=dims)
    zarr.create_array(str(tmp_path / "y"), data=np.zeros((4, 5), int), dimension_names=("y", "x"))
    inputs = {"probabilities": str(tmp_path / "p"), "reference": str(tmp_path / "y")}
    job = {"version": 1, "kind": "scene", "output": "out", "classes": [*"abcdef"[:classes]], "inputs": inputs}
    with pytest.raises(InputError) as in_job:
        plan_job(*read_job(job))
    with pytest.raises(InputError) as python:
        du.evaluate(*inputs.values(), classes=job["classes"])
    assert message in str(in_job.value)
    assert message in str(python.value)


@pytest.mark.parametrize(
    ("key", "lines"),
    [
        ("ignore", ["ignore (kind: scene, cohort): a whole number or a list, each a whole number; optional", "Reference codes", "Example: ignore: 0"]),
        ("confidence.level", ["confidence.level (kind: scene, cohort): a number; default 0.95", "Level", "Example: level: 0.95"]),
        ("calibration", ["calibration (kind: scene, cohort): a mapping; default {bins: 15}", "Reliability", "Keys: bins. Example: calibration: {bins: 15}"]),
        ("inputs.reference.fuzzy", ["inputs.reference.fuzzy (kind: scene, cohort): true or false; default false", "Holds", "Example: fuzzy: false"]),
    ],
)  # fmt: skip
def test_schema_explains_a_key_in_three_lines(key, lines):
    for shown, wanted in zip(du.job_schema(key).splitlines(), lines, strict=True):
        assert shown.startswith(wanted)


def test_schema_explains_every_key_and_names_the_nearest():
    for name in {*Job.model_fields, *CohortJob.model_fields, *input_options.InputKeywords.__annotations__}:
        assert len(du.job_schema(name).splitlines()) == 3, name
    with pytest.raises(InputError, match="Did you mean `thresholds`"):
        du.job_schema("treshold")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "ginni"}, "`measures`: unknown measure 'ginni'. Did you mean `gini`?"),
        ({"measures": ["ginni"]}, "unknown measure 'ginni'. Did you mean `gini`?"),
        ({"measures": [{"renyi": {"alfa": 2}}]}, "measure 'renyi' has no parameter 'alfa'. Did you mean `alpha`?"),
        ({"maps": ["predict"]}, "Did you mean `predicted`?"),
        ({"maps": "renyi"}, "Add `renyi` to measures."),
        ({"classes": ["soil", "tree", "sea"], "soft_confusion": {"class": "Tre"}}, "there is no class 'Tre'. Did you mean `tree`?"),
        ({"soft_confusion": {"distribution": "gausian"}}, "found 'gausian'. Did you mean `gaussian`?"),
        ({"classes": "from-file"}, "`classes` should be 'from_file', found 'from-file'"),
        ({"measurs": ["gini"]}, "Unknown key `measurs`. Did you mean `measures`?"),
        ({"soft_confusion": [{"sigma": 0}]}, "`soft_confusion.0`: unknown key `sigma`. Did you mean `sigmas`?"),
        ({"calibration": {"bins": True}}, "`calibration.bins` should be a number, found True."),
        ({"classes": ["a", "a", "b"]}, "`classes`: the names a occur more than once."),
        ({"soft_confusion": [{"df": 3}]}, "`soft_confusion.0`: `distribution: student-t` needs df"),
        ({"confidence": {"unit": "patient"}}, "`confidence.unit` should be 'tile', found 'patient'."),
        ({"confidence": {"size": 0}}, "`confidence.size` should be greater than or equal to 1, found 0."),
        ({"confidence": {"seed": -1}}, "`confidence.seed` should be greater than or equal to 0, found -1."),
        ({"confidence": {"level": 95}}, "`confidence.level` should be less than 1, found 95."),
        ({"confidence": {"method": "normal"}}, "`confidence.method` should be 'bca' or 'percentile', found 'normal'."),
        ({"soft_confusion": [{"sweep": {"error": 0}}]}, "`soft_confusion.0.sweep.error` should be greater than 0"),
        ({"soft_confusion": [{"thresholds": []}]}, "`soft_confusion.0.thresholds` is empty."),
        ({"maps": ["gini", "gini"]}, "`maps`: a map is asked for twice."),
        ({"maps": ["renyi"]}, "maps: 'renyi' is neither a measure asked for (gini, entropy, fisher_rao) nor one of"),
        ({"class_distances": {"metric": "energy"}}, "add `homophily` to measures"),
        ({"calibration": {"bins": 0}, "classes": 3}, "`calibration.bins` should be greater than or equal to 1, found 0; `classes`"),
    ],
)  # fmt: skip
def test_both_refuse_in_the_same_words(scene, options, message):
    arrays, job = scene
    with pytest.raises(InputError) as python:
        du.evaluate(du.Input(arrays["probabilities"], scale=1 / 250), arrays["reference"], **options)
    with pytest.raises(InputError) as in_job:
        read_job({**job, **options})
    assert message in str(python.value)
    assert str(in_job.value) == f"the job: {python.value} `dask-uncert schema` lists every key."


HUGE = 10**29


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibration": {"bins": 10**12}}, "`calibration.bins` should be less than or equal to 10000, found 1000000000000"),
        ({"confidence": {"replicates": 10**12}}, "`confidence.replicates` should be less than or equal to 1000000"),
        ({"soft_confusion": [{"sigmas": [np.inf]}]}, "`soft_confusion.0.sigmas.0` should be less than or equal to 1000000, found inf"),
        ({"soft_confusion": [{"dampings": [np.nan]}]}, "`soft_confusion.0.dampings.0` should be greater than or equal to 0, found nan"),
        ({"soft_confusion": [{"distribution": "student-t", "df": np.inf}]}, "`soft_confusion.0.df` should be less than or equal to 1000000"),
        ({"soft_confusion": [{"sweep": {"error": np.inf}}]}, "`soft_confusion.0.sweep.error` should be less than or equal to 1, found inf"),
        ({"soft_confusion": [{"sweep": {"memory": np.inf}}]}, "`soft_confusion.0.sweep.memory` should be less than or equal to 10000000000"),
        ({"uncertainty_confusion": {"thresholds": [np.inf]}}, "`uncertainty_confusion.thresholds.0` should be less than or equal to 1048576"),
        ({"classes": {0: "a", 1: "b", HUGE: "c"}}, f"`classes` should be less than or equal to {2**63 - 1}, found {HUGE}"),
        ({"ignore": [-HUGE]}, f"`ignore.0` should be greater than or equal to {-(2**63)}, found {-HUGE}"),
        ({"measures": [{"geometric": {"n": 10**12}}]}, "n of measure 'geometric' must be a whole number from 1 to 1000, found 1000000000000"),
    ],
)  # fmt: skip
def test_numbers_without_sense_are_refused_in_python_jobs_and_cohorts(scene, options, message):
    arrays, job = scene
    inputs = {name: {} for name in arrays}
    cohort = {"kind": "cohort", "manifest": "cases.csv", "classes": ["a", "b", "c"], "inputs": inputs}
    with pytest.raises(InputError) as python:
        du.evaluate(du.Input(arrays["probabilities"], scale=1 / 250), arrays["reference"], **options)
    assert message in str(python.value)
    for kind in ({}, cohort):
        with pytest.raises(InputError) as in_job:
            read_job({**job, **kind, **options})
        assert message in str(in_job.value)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("probabilities", {"tolerance": 1}, "tolerance` should be less than 1, found 1"),
        ("probabilities", {"tolerance": np.nan}, "tolerance` should be greater than 0, found nan"),
        ("probabilities", {"scale": np.inf}, "should be from 1e-30 to 1, found inf"),
        ("probabilities", {"scale": 1e6}, "should be from 1e-30 to 1, found 1e+06"),
        ("probabilities", {"offset": np.inf}, "offset` should be a finite number"),
        ("reference", {"scale": np.inf}, "scale` should be a finite number"),
        ("reference", {"fuzzy": True, "raters": HUGE}, "raters` should be less than or equal to 1000000"),
    ],
)
def test_numbers_without_sense_of_an_input_are_refused_too(scene, name, options, message):
    arrays, job = scene
    with pytest.raises(InputError) as python:
        du.evaluate(**{key: du.Input(a, **options) if key == name else a for key, a in arrays.items()})
    assert message in str(python.value)
    cohort = {"kind": "cohort", "manifest": "cases.csv", "classes": ["a", "b", "c"], "inputs": {}}
    for kind, inputs in (({}, job["inputs"]), (cohort, {key: {} for key in arrays})):
        with pytest.raises(InputError, match=name) as in_job:
            read_job({**job, **kind, "inputs": {**inputs, name: {**inputs[name], **options}}})
        assert message in str(in_job.value)


def test_numbers_without_sense_of_scenes_passes_and_comparisons_are_refused(scene):
    p = scene[0]["probabilities"] / 250
    for options, message in (
        ({"confidence": {"size": 10**21}}, f"`confidence.size` should be less than or equal to {2**31 - 1}"),
        ({"block": (HUGE, 1)}, f"`block.0` should be less than or equal to {2**31 - 1}"),
        ({"split_every": HUGE}, "`split_every` should be less than or equal to 1000000"),
    ):
        with pytest.raises(InputError, match=message):
            du.evaluate(p, scene[0]["reference"], **options)
    for options in ({"replicates": 10**12}, {"permutations": 10**12}):
        with pytest.raises(InputError, match=r"must be from 1 to 1000000, found 1000000000000\."):
            du.compare(scene[0], scene[0], **options)


def test_only_logits_may_have_a_scale_above_1(scene):
    p, y = (scene[0]["probabilities"] / 250)[:, :, :2], np.zeros((6, 5), int)
    p[..., 1] = 1 - p[..., 0]
    logits = np.log(p + 1e-9)
    wanted, found = (du.evaluate(du.Input(logits / s, scale=s, logits=True), y) for s in (1, 4))
    assert found.decisions == wanted.decisions


def test_options_of_an_input_are_checked_by_what_it_is(scene):
    p, y = scene[0].values()
    for inputs, message in (
        ((du.Input(p, sacle=1 / 250), y), "probabilities: Unknown key `sacle`. Did you mean `scale`?"),
        ((p, du.Input(y, logits=True)), "reference: Unknown key `logits`"),
        ((du.Input(p, scale=0), y), "probabilities: `scale` should be greater than 0, found 0."),
        ((du.Input(p, scale=1, array="p"), y), "`array` and `missing_chunks` belong to the path of a store"),
        ((du.Input("nowhere.zarr"), y), "nowhere.zarr"),
    ):
        with pytest.raises(InputError) as error:
            du.evaluate(*inputs)
        assert message in str(error.value)
    with pytest.raises(InputError, match=r"`scale` belongs to one input: give `du.Input\(array, scale=...\)`"):
        du.evaluate(p, y, scale=1 / 250)
