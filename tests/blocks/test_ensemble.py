"""Samples of a prediction: their mean is the prediction, their spread its uncertainty; streamed, and the same bits."""

import math
import tracemalloc

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.kernels import compiled
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate, prepare
from dask_uncert.formulas.ensembles import sample_uncertainty
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.scene import Encoding
from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.jobs.run import run
from dask_uncert.metrics import classification, distributions
from dask_uncert.spec.inputs import Input
from dask_uncert.spec.options import SceneOptions
from tests.support import ROOT
from tests.support.requests import request_of

PINES = ROOT / "examples" / "data" / "indian_pines.zarr"
KINDS = ["predictive_entropy", "expected_entropy", "mutual_information", "variation_ratio"]
WORDS = {
    "classes": ["soil", "tree", "water"],
    "measures": ["gini", "entropy", *KINDS],
    "soft_confusion": [
        {"class": "tree", "sigmas": [0.1], "dampings": [2], "uncertainty": "mutual_information", "sweep": {"memory": 1e5}}
    ],  # of little memory: there are many blocks here, of few pixels
}  # fmt: skip


def scene(seed=0, members=5, shape=(11, 9), dtype="float32"):
    rng = np.random.default_rng(seed)
    return {
        "samples": rng.dirichlet(np.full(3, 0.6), (members, *shape)).astype(dtype),
        "reference": rng.integers(0, 3, shape).astype("uint8"),
        "mask": rng.random(shape) < 0.8,
    }


def mutual_information(evaluation):
    return distributions.moments(evaluation, "mutual_information")


@pytest.fixture(scope="module")
def whole():
    return evaluate(**scene(), **WORDS)


@settings(max_examples=4)
@given(
    block=st.tuples(st.integers(1, 11), st.integers(1, 9)),
    chunks=st.tuples(st.integers(1, 5), st.integers(2, 11), st.integers(2, 9)),
    apart=st.booleans(),
)
def test_same_bits_for_every_cut(whole, block, chunks, apart):
    arrays = scene()
    samples = da.from_array(arrays["samples"], chunks=(*chunks, 3))
    arrays["samples"] = list(samples) if apart else samples
    assert evaluate(**arrays, **WORDS, block=block) == whole


@pytest.mark.slow
def test_any_order_of_dimensions(whole):
    arrays = scene()
    for order in map(str.split, ("class y x sample", "y sample class x", "x class sample y")):
        labelled = xr.DataArray(arrays["samples"], dims=("sample", "y", "x", "class")).transpose(*order)
        others = {name: xr.DataArray(arrays[name], dims=("y", "x")) for name in ("reference", "mask")}
        assert evaluate(samples=labelled, **others, **WORDS) == whole
        named = labelled.rename({"class": "kind", "sample": "member"})
        assert evaluate(samples=named, **others, **WORDS, axis="kind", sample_axis="member") == whole
    members = [xr.DataArray(one, dims=("y", "x", "class")) for one in arrays["samples"]]
    members[1], members[3] = members[1].transpose("class", "y", "x"), members[3].transpose("x", "class", "y")
    assert evaluate(samples=members, **others, **WORDS) == whole
    moved = np.moveaxis(arrays["samples"], 0, 2)
    assert evaluate(**{**arrays, "samples": moved}, **WORDS, sample_axis=2) == whole
    first = np.moveaxis(arrays["samples"], 3, 1)
    assert evaluate(**{**arrays, "samples": first}, **WORDS, axis=0) == whole


@pytest.mark.parametrize(
    ("dtype", "engine"),
    [
        ("float16", "compiled"),
        ("float32", "compiled"),
        pytest.param("float64", "compiled", marks=pytest.mark.slow),
        pytest.param("float16", "reference", marks=pytest.mark.slow),
    ],
)
def test_values_are_those_of_the_formulas(tmp_path, dtype, engine):
    arrays = scene(dtype=dtype)
    maps = ["entropy", "predicted", *KINDS]
    found = evaluate(**arrays, **WORDS, maps=maps, maps_store=tmp_path / "maps.zarr", engine=engine)
    drawn = xr.open_zarr(tmp_path / "maps.zarr", consolidated=False)
    p = arrays["samples"].astype("float64")
    p /= p.sum(axis=3, keepdims=True)
    wanted = sample_uncertainty(p)
    for name in KINDS:
        np.testing.assert_allclose(drawn[name].values, wanted[name], atol=2e-7, rtol=0)
        one = distributions.distribution(found, name)
        assert one.upper == (1.0 if name == "variation_ratio" else math.log(3))
        n, mean = (distributions.moments(found, name)[word] for word in ("n", "mean"))
        assert n == arrays["mask"].sum()
        assert mean == pytest.approx(wanted[name][arrays["mask"]].mean(), abs=1e-11)
    np.testing.assert_array_equal(drawn["predicted"].values, wanted["mean"].argmax(axis=2))
    np.testing.assert_allclose(drawn["entropy"].values, wanted["predictive_entropy"] / math.log(3), atol=2e-7)


def test_the_mean_given_beside_decides_the_same(whole):
    arrays = scene()
    p = arrays["samples"].astype("float64")
    total = p.sum(axis=3, keepdims=True)
    mean = sum(p / total) / 5
    beside = evaluate(mean, **arrays, **WORDS)
    assert beside.decisions == whole.decisions
    assert beside.measures["mutual_information"] == whole.measures["mutual_information"]
    other = evaluate(np.roll(mean, 1, axis=2), **arrays, **WORDS)
    assert other.decisions != whole.decisions
    assert mutual_information(other) == mutual_information(whole)


def test_binary_samples_without_a_class_axis():
    rng = np.random.default_rng(1)
    second, reference = rng.random((4, 6, 5)), rng.integers(0, 2, (6, 5))
    words = {"classes": ["no", "yes"], "measures": ["gini", *KINDS]}
    found = evaluate(samples=second, reference=reference, axis=None, **words)
    both = np.stack([1 - second, second], axis=3)
    assert evaluate(samples=both, reference=reference, **words) == found
    assert evaluate(samples=list(second), reference=reference, axis=None, **words) == found
    assert classification.accuracy(found) == ((second.mean(axis=0) > 0.5) == reference).mean()


def test_integers_with_a_declared_scale():
    rng = np.random.default_rng(2)
    stored = rng.integers(0, 256, (3, 7, 5)).astype("uint8")
    words = {"axis": None, "classes": ["no", "yes"], "measures": KINDS}
    found = evaluate(samples=Input(stored, scale=1 / 255), reference=np.ones((7, 5), int), **words)
    wanted = evaluate(samples=stored / 255, reference=np.ones((7, 5), int), **words)
    assert found.decisions == wanted.decisions
    assert mutual_information(found)["mean"] == pytest.approx(mutual_information(wanted)["mean"], abs=1e-12)


def test_a_hole_in_any_member_is_no_prediction():
    arrays = scene()
    arrays["mask"][:] = True
    arrays["samples"][3, 2, 4, 1] = np.nan
    arrays["samples"][1, 7, 7, 0] = np.nan
    arrays["samples"][0, 7, 7] *= 9  # off the simplex where another is missing: still no prediction
    found = evaluate(**arrays, **WORDS)
    assert found.ledger.reasons()["samples_nan"] == 2
    assert int(found.ledger.counted) == 97


def test_samples_that_agree_have_no_epistemic_part():
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], "float32")
    found = evaluate(samples=[p] * 7, reference=np.array([0, 0, 0]), **WORDS)
    assert mutual_information(found)["mean"] < 1e-15
    assert distributions.moments(found, "variation_ratio")["mean"] == 0
    assert found.decisions == evaluate(p, np.array([0, 0, 0]), classes=WORDS["classes"]).decisions


def test_repairs_are_counted_once_a_pixel():
    p = np.tile(np.array([0.5, 0.5], "float32"), (3, 4, 1))
    p[0, 1] = (1.00005, -0.00005)
    p[1, 1] = p[2, 2] = (0.50002, 0.50002)
    found = evaluate(samples=p, reference=np.zeros(4, int), classes=["a", "b"])
    assert found.ledger.repaired.tolist() == [1, 2]


@settings(max_examples=4)
@given(block=st.tuples(st.integers(1, 11), st.integers(1, 9)))
def test_samples_off_the_simplex_are_said_whole(block):
    arrays = scene()
    arrays["mask"][:] = True
    arrays["mask"][0, 0] = False
    arrays["samples"][2, 0, 0] = 7  # not counted
    arrays["samples"][4, 3, 1] = arrays["samples"][1, 3, 1] = (0.9, 0.4, 0.2)
    arrays["samples"][0, 8, 8] = (-0.5, 0.5, 0.5)
    message = (
        r"samples: .* holds 2 counted pixels .* from -0\.5 to 0\.9, sums \(clipped\) from 1 to 1\.5; the first "
        r"at dim_0 = 3, dim_1 = 1, sample = 1\."
    )
    for samples in (arrays["samples"], list(arrays["samples"])):
        with pytest.raises(InputError, match=message):
            evaluate(**{**arrays, "samples": samples}, **WORDS, block=block)


class CountingStore(zarr.storage.MemoryStore):
    """Counts how often each chunk is fetched."""

    def __init__(self):
        super().__init__()
        self.fetched = {}

    async def get(self, key, prototype, byte_range=None):
        if "c/" in key:
            self.fetched[key] = self.fetched.get(key, 0) + 1
        return await super().get(key, prototype, byte_range)


def test_every_chunk_is_read_once():
    arrays = scene(shape=(32, 24))
    store = CountingStore()
    group = zarr.open_group(store, mode="w")
    stored = group.create_array("samples", data=arrays["samples"], chunks=(2, 8, 8, 2))
    store.fetched.clear()
    found = evaluate(**{**arrays, "samples": stored}, **WORDS)
    assert found == evaluate(**arrays, **WORDS)
    assert len(store.fetched) == 3 * 4 * 3 * 2
    assert set(store.fetched.values()) == {1}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_samples_are_never_all_widened(dtype):
    """What a block needs beside its samples does not grow with their number."""
    rng = np.random.default_rng(0)
    samples = np.broadcast_to(rng.dirichlet(np.ones(8), (96, 96)).astype(dtype), (50, 96, 96, 8)).copy()
    arrays = {"samples": samples, "reference": rng.integers(0, 8, (96, 96))}
    request = request_of("samples", classes=[str(i) for i in range(8)], measures=KINDS)
    evaluate_block(request, arrays, Encoding(2), compiled)
    peaks = []
    for number in (10, 50):
        some = {**arrays, "samples": samples[:number]}
        tracemalloc.start()
        evaluate_block(request, some, Encoding(2), compiled)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] < samples.nbytes


def test_the_plan_counts_all_samples():
    arrays = scene()

    def planned(samples):
        cubes = {name: Cube(name, *array, kind="samples") for name, array in samples.items()}
        cubes["reference"] = Cube("reference", arrays["reference"], ("y", "x"))
        return prepare(SceneOptions(classes=WORDS["classes"]), cubes, block=(11, 9))

    stacked = planned({"samples": (arrays["samples"], ("sample", "y", "x", "class"))})
    apart = planned({f"samples_{i}": (one, ("y", "x", "class")) for i, one in enumerate(arrays["samples"])})
    assert stacked.nbytes()["samples"] == arrays["samples"].nbytes
    assert sum(apart.nbytes().values()) == sum(stacked.nbytes().values())
    assert stacked.block_memory() == apart.block_memory() > 2 * arrays["samples"].nbytes


REFUSALS = [
    ({"samples": None}, "give `probabilities`, `samples` or both"),
    ({"samples": []}, "samples: the list is empty"),
    ({"samples": np.zeros((0, 11, 9, 3))}, "holds no sample"),
    ({"samples": np.ones((5, 11, 9, 3), "uint8")}, "samples: .* declared `scale`"),
    ({"samples": [np.ones((11, 9, 3)), np.ones((11, 8, 3))]}, "samples_1: .* dim_1 = 8"),
    ({"samples": [np.ones((11, 9, 3)), np.ones((11, 9, 4))]}, "samples_1: .* 4 classes"),
    ({"samples": np.ones((11, 9, 3))}, "reference: .* covers"),
    ({"probabilities": np.ones((11, 9, 4))}, "probabilities: .* 4 classes"),
    (
        {"samples": None, "probabilities": np.ones((11, 9, 3))},
        "`predictive_entropy` needs the input `samples`",
    ),
    ({"reference": None}, "give `reference`"),
    ({"uncertainty_confusion": {"measures": ["mutual_information"], "thresholds": [1.2]}}, "above 1.09861"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[m[:30] for _, m in REFUSALS])
def test_refusals_say_what_to_do(changes, message):
    with pytest.raises(InputError, match=message):
        evaluate(**{**scene(), **WORDS, **changes})


def test_ten_forests_of_indian_pines():
    group = zarr.open_group(str(PINES), mode="r")
    classes = {int(code): f"class {code}" for code in group["forest_samples"].attrs["class_codes"]}
    inputs = {"samples": group["forest_samples"], "reference": group["labels"], "mask": group["held_out"]}
    words = {"classes": classes, "ignore": [0], "measures": KINDS}
    found = evaluate(**inputs, **words)
    assert classification.accuracy(found) == pytest.approx(0.7399, abs=5e-5)
    assert classification.kappa(found) == pytest.approx(0.6993, abs=5e-5)
    stacked = group["forest_samples"][:]
    plain = {name: array[:] for name, array in inputs.items()}
    assert evaluate(**{**plain, "samples": list(stacked)}, **words) == found
    ones = np.ones((145, 145), int)
    everywhere = evaluate(samples=stacked, reference=ones, classes=classes, measures=KINDS)
    assert mutual_information(everywhere)["mean"] == pytest.approx(0.09606475, abs=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_jobs_take_samples_stacked_or_apart(tmp_path):
    store = str(tmp_path / "scene.zarr")
    group = zarr.open_group(store, mode="w")
    arrays = scene(members=3, shape=(40, 30))
    for i, one in enumerate(arrays["samples"]):
        group.create_array(f"m{i}", data=one, chunks=(16, 10, 3), dimension_names=("y", "x", "class"))
    dims = ("sample", "y", "x", "class")
    group.create_array("all", data=arrays["samples"], chunks=(2, 16, 10, 3), dimension_names=dims)
    for name in ("reference", "mask"):
        group.create_array(name, data=arrays[name], chunks=(16, 10), dimension_names=("y", "x"))
    inputs = {name: {"store": store, "array": name} for name in ("reference", "mask")}
    job = {
        "version": 1, "kind": "scene", "inputs": {**inputs, "samples": {"store": store, "array": "all"}},
        "classes": dict(enumerate(WORDS["classes"])), "measures": ["entropy", *KINDS],
        "maps": ["mutual_information"], "output": str(tmp_path / "out"),
    }  # fmt: skip
    apart = [{"store": store, "array": f"m{i}"} for i in range(3)]
    other = {**job, "inputs": {**inputs, "samples": apart}}
    found = run(job)
    plan = plan_job(*read_job(other))
    assert set(plan.nbytes()) == {"samples_0", "samples_1", "samples_2", "reference", "mask"}
    assert plan.compute() == found
    assert (tmp_path / "out" / "results.json").exists()
    drawn = xr.open_zarr(tmp_path / "out" / "maps.zarr", consolidated=False)["mutual_information"]
    assert drawn.dims == ("y", "x")
    assert not drawn.isnull().any()
    for words, message in (
        ({**inputs}, "give `probabilities`, `samples` or both"),
        ({**inputs, "samples": [{**apart[0], "scale": 0.1}, apart[1]]}, "the same for all"),
        (
            {**inputs, "samples": [{**apart[0], "sacle": 0.1}]},
            "inputs.samples.0`: unknown key `sacle`. Did you mean `scale`",
        ),
        ({**inputs, "samples": []}, "inputs.samples` is empty"),
    ):
        with pytest.raises(InputError, match=message):
            plan_job(*read_job({**job, "measures": ["gini"], "maps": [], "inputs": words}))


def test_moments_of_mutual_information_that_hardly_varies():
    """Two members that differ in the fourth digit: the information is of about 1e-7, and so is its spread."""
    gap = np.random.default_rng(0).uniform(1e-5, 5e-4, 300)
    samples = np.stack([[0.3 + gap, 0.7 - gap], [0.3 - gap, 0.7 + gap]]).transpose(0, 2, 1)
    found = mutual_information(evaluate(samples=samples, reference=np.zeros(300, int), measures=KINDS))
    exact = np.asarray(sample_uncertainty(samples)["mutual_information"])
    assert 1e-7 < exact.std() < 2e-7
    assert found["mean"] == pytest.approx(exact.mean(), rel=1e-6)
    assert found["std"] == pytest.approx(exact.std(), rel=1e-6)
    assert found["skewness"] == pytest.approx(stats.skew(exact), abs=1e-5)
