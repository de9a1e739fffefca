"""Fuzzy references: shares in [0, 1] instead of codes; counted by the hard class, weighed by the share itself."""

import json

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError, InputWarning
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.soft_confusion import soft_weights
from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.metrics import classification
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.spec.inputs import Input

SMALL = {"memory": 1e5}  # of joint histograms: there are many blocks here, of few pixels
SOFT = [
    {"thresholds": [0.3, 0.7], "sigmas": [0, 0.1], "dampings": [0, 1], "uncertainty": "gini", "sweep": SMALL},
    {"class": "tree", "thresholds": [0.4], "sigmas": [0.2], "reference_threshold": 0.6, "sweep": SMALL},
    {"class": "tree", "sigmas": [0.2], "reference_certainty": "none", "distribution": "logistic", "sweep": SMALL},
]  # fmt: skip
WORDS = {"classes": ["soil", "tree", "water"], "measures": ["gini"], "soft_confusion": SOFT}
BINARY = {"classes": ["no", "yes"], "axis": None, "measures": ["gini"]}


def scene(seed=0, shape=(11, 9), dtype="float32"):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.6), shape)
    shares[2, 3, 0] = shares[7, 1, 2] = np.nan
    return {
        "probabilities": rng.dirichlet(np.full(3, 0.6), shape).astype("float32"),
        "reference": shares.astype(dtype),
        "mask": rng.random(shape) < 0.8,
    }


def fuzzy(arrays):
    """The arrays, of which the reference holds shares."""
    return {**arrays, "reference": Input(arrays["reference"], fuzzy=True)}


@pytest.fixture(scope="module")
def whole():
    return evaluate(**fuzzy(scene()), **WORDS)


@settings(max_examples=5)
@given(
    block=st.tuples(st.integers(1, 11), st.integers(1, 9)),
    chunks=st.tuples(st.integers(2, 11), st.integers(2, 9), st.integers(1, 3)),
)
def test_same_bits_for_every_cut(whole, block, chunks):
    arrays = scene()
    arrays["reference"] = da.from_array(arrays["reference"], chunks=chunks)
    assert evaluate(**fuzzy(arrays), **WORDS, block=block) == whole


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_soft_weights_take_the_shares_themselves(dtype):
    arrays = scene(dtype=dtype)
    arrays["probabilities"] = arrays["probabilities"].astype("float64")  # so that Gini has all digits, too
    found = evaluate(**fuzzy(arrays), **WORDS)
    p, c = arrays["probabilities"], arrays["reference"]
    counted = arrays["mask"] & ~np.isnan(c).any(axis=2)
    assert int(found.ledger.counted) == counted.sum()
    exact = p / p.sum(axis=2, keepdims=True)
    gini = 1.5 * (1 - np.square(exact).sum(axis=2))
    for one in found.soft_confusion:
        s = one.settings
        sums = classification.soft_cells(one)
        for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
            wanted = soft_weights(
                p[counted][:, s.class_index],
                c[counted][:, s.class_index],
                s.thresholds[i],
                s.sigmas[k],
                u=gini[counted] if s.uncertainty else None,
                damping=s.dampings[m],
                distribution=s.distribution,
                reference_threshold=s.reference_threshold or s.thresholds[i],
                reference_certainty=s.reference_certainty,
            )
            for cell, values in wanted.items():
                assert sums[cell][i, k, m] == pytest.approx(values.sum(), abs=1e-9)


def test_hard_counts_take_the_largest_share():
    arrays = scene()
    found = evaluate(**fuzzy(arrays), **WORDS)
    counted = arrays["mask"] & ~np.isnan(arrays["reference"]).any(axis=2)
    truth = arrays["reference"].argmax(axis=2)[counted]
    decided = arrays["probabilities"].argmax(axis=2)[counted]
    wanted = np.zeros((3, 3), int)
    np.add.at(wanted, (truth, decided), 1)
    assert found.decisions.confusion.tolist() == wanted.tolist()
    assert found.ledger.reasons()["reference_nan"] == (arrays["mask"] & ~counted).sum()
    codes = np.where(np.isnan(arrays["reference"]).any(axis=2), 9, arrays["reference"].argmax(axis=2))
    hard = evaluate(
        arrays["probabilities"], codes, mask=arrays["mask"], classes=WORDS["classes"], ignore=[9], measures=["gini"]
    )  # fmt: skip
    assert found.decisions == hard.decisions
    assert found.distributions == hard.distributions


def test_ties_go_to_the_lowest_and_nothing_is_no_reference():
    shares = np.array([[0.4, 0.4, 0.2], [0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    found = evaluate(np.full((4, 3), 1 / 3), Input(shares, fuzzy=True), classes=WORDS["classes"])
    assert found.decisions.confusion.sum(axis=1).tolist() == [2, 1, 0]
    assert found.ledger.reasons()["reference_nan"] == 1


def test_certain_shares_are_codes():
    """Shares of 0 and 1 give what codes give, in soft confusion too."""
    arrays = scene()
    codes = np.random.default_rng(5).integers(0, 3, (11, 9))
    exact = {"thresholds": [0.25, 0.5], "reference_threshold": 0.625, "sweep": False}  # in every dtype
    words = {**WORDS, "soft_confusion": [{**one, **exact} for one in SOFT]}
    hard = evaluate(arrays["probabilities"], codes, **words)
    for dtype in ("bool", "uint8", "float32", "float64"):
        assert evaluate(arrays["probabilities"], Input(np.eye(3, dtype=dtype)[codes], fuzzy=True), **words) == hard


def test_binary_shares_of_the_second_class():
    rng = np.random.default_rng(1)
    p, c = rng.random((12, 10)).astype("float32"), np.round(rng.random((12, 10)) * 8) / 8
    soft = [{"class": "yes", "thresholds": [0.5], "sigmas": [0.1]}, {"class": "no", "sigmas": [0.1]}]
    found = evaluate(p, Input(c, fuzzy=True), **BINARY, soft_confusion=soft)
    matrix = found.decisions.confusion
    assert matrix[1].sum() == (c > 0.5).sum()
    assert matrix[1, 1] == ((c > 0.5) & (p > 0.5)).sum()
    wanted = soft_weights(p.astype("float64"), c, 0.5, 0.1)
    sums = classification.soft_cells(found.soft_confusion[0])
    assert all(sums[cell].item() == pytest.approx(wanted[cell].sum(), abs=1e-9) for cell in wanted)
    other = soft_weights((1 - p).astype("float64"), 1 - c, 0.5, 0.1)
    sums = classification.soft_cells(found.soft_confusion[1])
    assert all(sums[cell].item() == pytest.approx(other[cell].sum(), abs=1e-9) for cell in other)
    both = evaluate(np.stack([1 - p, p], axis=2), Input(np.stack([1 - c, c], axis=2), fuzzy=True),
                    classes=["no", "yes"], measures=["gini"], soft_confusion=soft)  # fmt: skip
    assert both.decisions == found.decisions
    assert both.soft_confusion == found.soft_confusion


def test_a_share_on_the_threshold_as_it_is_stored():
    """A float16 .7 is on the threshold .7, so it is no positive; and has no weight."""
    p = np.array([0.9, 0.9])
    for dtype in ("float16", "float32", "float64"):
        c = np.array([0.7, 0.75], dtype)
        soft = [{"class": "yes", "thresholds": [0.7], "sigmas": [0, 0.1]}]
        (one,) = evaluate(p, Input(c, fuzzy=True), **BINARY, soft_confusion=soft).soft_confusion
        sums = classification.soft_cells(one)
        assert sums["FP"][0].ravel().tolist() == [1.0, 0.0]
        assert sums["TP"][0, 0].tolist() == [1.0]


def test_shares_within_rounding_are_clipped():
    c = np.array([1.00005, -0.00005, 0.5], "float32")
    found = evaluate(np.array([0.9, 0.2, 0.4]), Input(c, fuzzy=True), **BINARY, soft_confusion=[{"sigmas": [0.1]}])
    same = evaluate(
        np.array([0.9, 0.2, 0.4]),
        Input(c.clip(0, 1), fuzzy=True),
        **BINARY,
        soft_confusion=[{"sigmas": [0.1]}],
    )
    assert found == same


def test_any_order_of_dimensions_and_samples_beside(whole):
    arrays = {name: xr.DataArray(values, dims=("y", "x", "class")[: values.ndim]) for name, values in scene().items()}
    arrays["reference"] = arrays["reference"].transpose("class", "x", "y")
    assert evaluate(**arrays, **WORDS) == whole  # a class dimension says it already
    first = {**scene(), "reference": np.moveaxis(scene()["reference"], 2, 0)}
    first["probabilities"] = np.moveaxis(first["probabilities"], 2, 0)
    assert evaluate(**fuzzy(first), **WORDS, axis=0) == whole
    plain = scene()
    plain["samples"] = [plain.pop("probabilities")] * 2
    assert evaluate(**fuzzy(plain), **WORDS).decisions == whole.decisions


def test_class_distances_go_by_the_hard_class():
    arrays = scene()
    arrays["reference"][np.isnan(arrays["reference"]).any(axis=2)] = [1, 0, 0]
    features = np.random.default_rng(2).random((11, 9, 4))
    words = {"classes": WORDS["classes"], "measures": ["homophily"], "class_distances": {"metric": "energy"}}
    found = evaluate(**fuzzy(arrays), features=features, **words)
    arrays["reference"] = arrays["reference"].argmax(axis=2)
    assert evaluate(**arrays, features=features, **words) == found


@settings(max_examples=5)
@given(block=st.tuples(st.integers(1, 11), st.integers(1, 9)))
def test_shares_out_of_range_are_said_whole(block):
    arrays = scene()
    arrays["mask"][:] = True
    arrays["mask"][5, 5] = False
    arrays["reference"][5, 5] = -9999  # not counted
    arrays["reference"][1, 1] = (0.5, 1.25, 0)
    arrays["reference"][9, 8] = (-0.5, 0.2, 0.2)
    message = r"reference: .* holds 2 counted pixels with shares outside \[0, 1\] .*: from -0\.5 to 1\.25"
    with pytest.raises(InputError, match=message):
        evaluate(**fuzzy(arrays), **WORDS, block=block)


REFUSALS = [
    ({"ignore": [9]}, "no codes to ignore"),
    ({"reference": np.ones((11, 9))}, "share of the second of two classes, but the class table has 3"),
    ({"reference": np.ones((11, 9, 4))}, "reference: .* 4 classes along its class dimension"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[m[:30] for _, m in REFUSALS])
def test_refusals_say_what_to_do(changes, message):
    with pytest.raises(InputError, match=message):
        evaluate(**fuzzy({**scene(), **WORDS, **changes}))
    with pytest.raises(InputError, match=r"reference: .* covers"):
        evaluate(**scene(), **WORDS)


def test_jobs_declare_fuzzy_references(tmp_path, whole):
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    for name, values in scene().items():
        group.create_array(name, data=values, chunks=(5, 4, *values.shape[2:]))
    second = scene()["reference"][:, :, 1]
    group.create_array("second", data=second)
    group.create_array("yes", data=scene()["probabilities"][:, :, 1])
    store, dims = str(tmp_path / "scene.zarr"), ["y", "x", "class"]
    job = {
        "version": 1, "kind": "scene", "classes": dict(enumerate(WORDS["classes"])), "measures": ["gini"],
        "soft_confusion": SOFT, "output": str(tmp_path / "out"),
        "inputs": {name: {"store": store, "array": name, "dims": dims[: v.ndim]} for name, v in scene().items()},
    }  # fmt: skip
    assert plan_job(*read_job(job)).compute() == whole
    inputs = {
        "probabilities": {"store": store, "array": "yes", "dims": dims[:2]},
        "reference": {"store": store, "array": "second", "dims": dims[:2], "fuzzy": True},
    }
    soft = {"soft_confusion": [{"sigmas": [0.1]}]}
    binary = {**job, "inputs": inputs, "classes": {0: "no", 1: "yes"}, **soft}
    wanted = evaluate(scene()["probabilities"][:, :, 1], Input(second, fuzzy=True), **BINARY, **soft)
    assert plan_job(*read_job(binary)).compute() == wanted
    with pytest.raises(InputError, match="no codes to ignore"):
        plan_job(*read_job({**binary, "ignore": [7]}))


THREE = {"classes": ["soil", "tree", "water"], "measures": ["gini"]}


def shares_with(row, dtype="f8"):
    """4 x 5 pixels whose shares sum to 1, but for one."""
    shares = np.full((4, 5, 3), [0.25, 0.25, 0.5], dtype)
    shares[2, 1] = row
    return shares


@pytest.mark.parametrize("cut", [None, (1, 2)])
def test_shares_that_sum_to_more_than_one_are_refused(cut):
    """Masks overlap."""
    p = np.full((4, 5, 3), 1 / 3)
    with pytest.raises(
        InputError,
        match=r"1 counted pixel with shares that sum to more than 1 beyond 0.0001 .*: up to 1.1\. .* at dim_0 = 2, dim_1 = 1",
    ):
        evaluate(p, Input(shares_with([0.6, 0.5, 0]), fuzzy=True), **THREE, block=cut)
    assert evaluate(p, Input(shares_with([0.6, 0.5, 0]), fuzzy=True, tolerance=0.2), **THREE).ledger.counted == 20
    mask = np.ones((4, 5), bool)
    mask[2, 1] = False
    assert evaluate(p, Input(shares_with([0.6, 0.5, 0]), fuzzy=True), mask=mask, **THREE).ledger.counted == 19
    for missing in ([np.nan, 0.6, 0.6], [0, 0, 0]):  # no reference at all
        e = evaluate(p, Input(shares_with(missing), fuzzy=True), **THREE)
        assert (e.ledger.reasons()["reference_nan"], int(e.ledger.incomplete)) == (1, 0)


@pytest.mark.parametrize("rest", [0.01, 0.9])
def test_the_rest_of_shares_that_sum_to_less_than_one_is_unlabelled(rest):
    """Maps of fractions whose polygons cover part of a pixel."""
    p = np.full((4, 5, 3), 1 / 3)
    shares, mask = shares_with([rest, 0, 0]), np.ones((4, 5), bool)
    shares[0, 0], mask[0, 0] = [0.1, 0, 0], False  # does not count
    with pytest.warns(
        InputWarning, match=r"^reference: the shares of 1 counted pixel sum to less than 1; the rest is unl"
    ):
        e = evaluate(p, Input(shares, fuzzy=True), mask=mask, **THREE)
    assert (int(e.ledger.counted), int(e.ledger.incomplete)) == (19, 1)
    (remark,) = scene_results(e)["remarks"]
    assert "`complete: true` would refuse them" in remark
    for cut in (None, (1, 2)):
        message = (
            rf"1 counted pixel with shares that sum to less than 1 .* down to {rest:g}\. .* at dim_0 = 2, dim_1 = 1"
        )
        with pytest.raises(InputError, match=message):
            evaluate(p, Input(shares, fuzzy=True, complete=True), mask=mask, **THREE, block=cut)
    full = shares_with([1, 0, 0])
    assert evaluate(p, Input(full, fuzzy=True, complete=True), **THREE) == evaluate(p, Input(full, fuzzy=True), **THREE)
    with pytest.raises(InputError, match="complete belongs to a fuzzy reference"):
        evaluate(p, Input(np.zeros((4, 5), "u1"), complete=True), **THREE)


@pytest.mark.parametrize(("scale", "dtype"), [(1 / 255, "u1"), (0.01, "u1"), (1e-4, "i2")])
def test_shares_of_whole_numbers_are_off_by_their_rounding_only(scale, dtype):
    """Every share is rounded by itself, so that sums are off by half a step a class."""
    p = np.full((200, 3), 1 / 3)
    stored = np.rint(np.random.default_rng(0).dirichlet(np.ones(3), 200) / scale).astype(dtype)
    assert len(set(stored.sum(axis=1).tolist())) > 1
    e = evaluate(p, Input(stored, fuzzy=True, scale=scale), **THREE)
    assert (int(e.ledger.counted), int(e.ledger.incomplete)) == (200, 0)
    stored[0] = [round(0.6 / scale), round(0.5 / scale), 0]
    with pytest.raises(InputError, match="sum to more than 1"):
        evaluate(p, Input(stored, fuzzy=True, scale=scale), **THREE)


def test_shares_that_do_not_sum_to_one_in_a_job(tmp_path, dask_uncert_command):
    np.save(tmp_path / "p.npy", np.full((4, 5, 3), 1 / 3))
    inputs = {name: {"store": f"{name[0]}.npy", "dims": ["y", "x", "class"]} for name in ("probabilities", "reference")}
    words = {"version": 1, "kind": "scene", "output": "out", "inputs": inputs, **THREE}
    (tmp_path / "job.yaml").write_text(json.dumps(words))
    np.save(tmp_path / "r.npy", shares_with([0.6, 0.5, 0]))
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml")
    assert status == 2
    assert "sum to more than 1" in said
    assert "The first is at y = 2, x = 1." in said
    np.save(tmp_path / "r.npy", shares_with([0.01, 0, 0]))
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml")
    assert (status, said.strip().splitlines()[-1][:57]) == (
        0,
        "warning: reference: the shares of 1 counted pixel sum to ",
    )
    status, _, said = dask_uncert_command(
        "run", tmp_path / "job.yaml", "--fresh", "--set", "inputs.reference.complete=true"
    )
    assert status == 2
    assert "sum to less than 1" in said
