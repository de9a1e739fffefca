"""Maps of soft confusion: four weights a pixel, and the picture that merges them."""

import json

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.soft_confusion import CELLS, soft_weights
from dask_uncert.jobs.report import report
from dask_uncert.jobs.run import run
from dask_uncert.spec.inputs import Input

ENTRY = {
    "class": ["Corn, no till", "tree"], "thresholds": [0.4, 0.8], "sigmas": [0.2, 0], "dampings": [1, 0],
    "uncertainty": "gini", "maps": True,
}  # fmt: skip
WORDS = {"classes": {1: "soil", 2: "Corn, no till", 7: "tree"}, "ignore": [0], "measures": ["gini"]}
COLOURS = np.array([(0, 255, 0), (0, 0, 255), (255, 0, 0), (160, 32, 240)])


def scene(seed=0, shape=(11, 9)):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.6), shape).astype("float32")
    p[4, 4] = np.nan
    return {
        "probabilities": p,
        "reference": np.array([0, 1, 2, 7])[rng.integers(0, 4, shape)].astype("uint8"),
        "mask": rng.random(shape) < 0.8,
    }


def drawn(store):
    return xr.open_zarr(store, consolidated=False).load()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = tmp_path_factory.mktemp("whole") / "maps.zarr"
    evaluate(**scene(), **WORDS, soft_confusion=[ENTRY], maps=["gini"], maps_store=store)
    return drawn(store)


def counted(arrays):
    present = ~np.isnan(arrays["probabilities"]).any(axis=2)
    return arrays["mask"] & (arrays["reference"] != 0) & present


def weights(arrays, index, code):
    p = arrays["probabilities"].astype("float64")
    exact = p / p.sum(axis=2, keepdims=True)
    gini = 1.5 * (1 - np.square(exact).sum(axis=2))
    c = (arrays["reference"] == code).astype("float64")
    return soft_weights(p[:, :, index], c, float(np.float32(0.4)), 0.2, u=gini, damping=1)


def test_the_maps_are_those_of_the_formulas(whole):
    arrays = scene()
    inside = counted(arrays)
    cells = ("TP_", "TN_", "FP_", "FN_", "")
    assert set(whole) == {"gini"} | {f"soft_{cell}{label}" for label in ("Corn_no_till", "tree") for cell in cells}
    for index, code, label in ((1, 2, "Corn_no_till"), (2, 7, "tree")):
        wanted = weights(arrays, index, code)
        for cell in CELLS:
            found = whole[f"soft_{cell}_{label}"]
            assert found.dtype == np.float32
            assert found.dims == ("dim_0", "dim_1")
            np.testing.assert_array_equal(np.isnan(found.values), ~inside)
            np.testing.assert_allclose(found.values[inside], wanted[cell][inside], atol=1e-7)
        picture = whole[f"soft_{label}"]
        assert picture.dims == ("dim_0", "dim_1", "rgb")
        assert picture.dtype == np.uint8
        stack = np.stack([wanted[cell] for cell in CELLS], axis=2)
        colours = np.where(inside[:, :, None], np.nan_to_num(stack) @ COLOURS, 0)
        np.testing.assert_allclose(picture.values, colours, atol=0.501)


def test_colours(tmp_path):
    """Green, blue, red, purple at full weight; black where nothing counts."""
    p = np.array([0.9, 0.1, 0.9, 0.1, 0.9])
    evaluate(
        p, np.array([1, 0, 0, 1, 5]), axis=None, classes=["no", "yes"], ignore=[5],
        soft_confusion=[{"class": "yes", "maps": True}], maps_store=tmp_path / "maps.zarr",
    )  # fmt: skip
    found = drawn(tmp_path / "maps.zarr")
    assert found["soft_yes"].values.tolist() == [*COLOURS.tolist(), [0, 0, 0]]
    assert found["soft_TP_yes"].values[:4].tolist() == [1, 0, 0, 0]


@settings(max_examples=5)
@given(block=st.tuples(st.integers(3, 11), st.integers(3, 9)))
def test_same_bits_for_every_cut(whole, block, tmp_path_factory):
    store = tmp_path_factory.mktemp("cut") / "maps.zarr"
    evaluate(**scene(), **WORDS, soft_confusion=[ENTRY], maps=["gini"], maps_store=store, block=block)
    xr.testing.assert_identical(drawn(store), whole)


def test_maps_change_nothing_that_is_counted(tmp_path):
    plain = {name: value for name, value in ENTRY.items() if name != "maps"}
    found = evaluate(**scene(), **WORDS, soft_confusion=[ENTRY], maps_store=tmp_path / "maps.zarr")
    assert found == evaluate(**scene(), **WORDS, soft_confusion=[plain])


def test_fuzzy_references_and_samples_are_drawn_too(tmp_path):
    rng = np.random.default_rng(3)
    samples, c = rng.random((3, 6, 5)), rng.random((6, 5))
    evaluate(
        samples=samples, reference=Input(c, fuzzy=True), axis=None, classes=["no", "yes"], measures=["mutual_information"],
        soft_confusion=[{"class": "yes", "sigmas": [0.1], "maps": True}], maps_store=tmp_path / "maps.zarr",
    )  # fmt: skip
    wanted = soft_weights(samples.mean(axis=0), c, 0.5, 0.1)
    found = drawn(tmp_path / "maps.zarr")
    for cell in CELLS:
        np.testing.assert_allclose(found[f"soft_{cell}_yes"].values, wanted[cell], atol=1e-7)


def test_names_that_would_be_one_get_their_code(tmp_path):
    arrays = scene()
    words = {**WORDS, "classes": {1: "a b", 2: "a/b", 7: "c"}}
    evaluate(**arrays, **words, soft_confusion=[{"maps": True}], maps_store=tmp_path / "maps.zarr")
    assert {"soft_a_b_1", "soft_a_b_2", "soft_c"} <= set(drawn(tmp_path / "maps.zarr"))


REFUSALS = [
    ({"maps_store": None}, "maps_store go together"),
    ({"soft_confusion": [ENTRY, {**ENTRY, "class": "tree"}]}, "maps of tree are asked for twice"),
    ({"soft_confusion": [{**ENTRY, "maps": "yes"}]}, r"`soft_confusion.0.maps` should be a valid boolean"),
    ({"soft_confusion": [{**ENTRY, "sweep": "yes"}]}, r"`soft_confusion.0.sweep` should be a valid boolean"),
    (
        {"classes": {1: "TP_x", 2: "x", 7: "y"}, "soft_confusion": [{"maps": True}]},
        "maps of two classes have the same name",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[m[:30] for _, m in REFUSALS])
def test_refusals_say_what_to_do(changes, message, tmp_path):
    words = {"soft_confusion": [ENTRY], "maps_store": tmp_path / "maps.zarr", **WORDS, **changes}
    with pytest.raises(InputError, match=message):
        evaluate(**scene(), **words)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_job_draws_them(tmp_path, whole):
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    dims = ["dim_0", "dim_1", "class"]
    inputs = {}
    for name, values in scene().items():
        group.create_array(name, data=values, chunks=(5, 4, *values.shape[2:]))
        inputs[name] = {"store": str(tmp_path / "scene.zarr"), "array": name, "dims": dims[: values.ndim]}
    output = str(tmp_path / "out")
    run(
        {
            "version": 1,
            "kind": "scene",
            "inputs": inputs,
            **WORDS,
            "soft_confusion": [ENTRY],
            "output": output,
        }
    )

    def pictures():
        return {path.name: path.read_bytes() for path in (tmp_path / "out" / "figures").iterdir()}

    labels, shown = ("Corn_no_till", "tree"), pictures()
    assert {f"soft_maps_{label}.png" for label in labels} <= set(shown)
    report(tmp_path / "out", all_figures=True)  # reads the names of the maps from run.json
    everything = pictures()
    assert shown.items() <= everything.items()
    assert {f"{stem}_{label}.png" for stem in ("map_soft", "soft_f1") for label in labels} <= set(everything)
    found = drawn(tmp_path / "out" / "maps.zarr")
    xr.testing.assert_equal(found, whole.drop_vars("gini"))
    assert json.loads((tmp_path / "out" / "run.json").read_text())["counted"] == counted(scene()).sum()
