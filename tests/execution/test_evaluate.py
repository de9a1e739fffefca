"""One scene, evaluated through Python: right numbers, the same bits for every cut, clear refusals."""

import json

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.io.summary_store import load, save
from dask_uncert.reports.results.scene import scene_results, to_json
from tests.support.unreadable import Unreadable

WORDS = {
    "classes": {1: "soil", 2: "tree", 7: "water"},
    "ignore": [0],
    "measures": ["gini", "entropy", "fisher_rao", "renyi", "tsallis", "t_entropy", "variance", "homophily"],
    "class_distances": {"metric": "energy"},
    "soft_confusion": [
        {
            "class": "tree",
            "thresholds": [0.3, 0.5],
            "sigmas": [0, 0.1],
            "dampings": [0, 1],
            "uncertainty": "entropy",
            "sweep": {"memory": 1e5},  # there are many blocks here, of few pixels
        }
    ],
}


def scene(seed=0, shape=(11, 9), bands=4):
    rng = np.random.default_rng(seed)
    codes = np.array([0, 1, 2, 7])
    return {
        "probabilities": rng.dirichlet(np.full(3, 0.5), shape).astype("float32"),
        "reference": codes[rng.integers(0, 4, shape)].astype("uint8"),
        "mask": rng.random(shape) < 0.8,
        "features": rng.integers(0, 5000, (*shape, bands)).astype("uint16"),
    }


@pytest.fixture(scope="module")
def whole():
    return evaluate(**scene(), **WORDS)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    block=st.tuples(st.integers(1, 11), st.integers(1, 9)),
    chunks=st.tuples(st.integers(1, 11), st.integers(1, 9)),
    split_every=st.integers(2, 20),
)
def test_same_bits_for_every_cut(whole, block, chunks, split_every):
    inputs = {name: da.from_array(values, chunks=(*chunks, *values.shape[2:])) for name, values in scene().items()}
    found = evaluate(**inputs, **WORDS, block=block, split_every=split_every)
    assert found == whole
    assert to_json(scene_results(found)) == to_json(scene_results(whole))


@pytest.mark.slow
@given(cut=st.integers(1, 10))
def test_parts_add_up_to_the_whole(whole, cut):
    """With the distances given, tiles evaluated apart sum to the scene."""
    table = [[0, 1, 2], [1, 0, 0.5], [2, 0.5, 0]]
    words = {**WORDS, "class_distances": {"table": table}}
    arrays = {name: values for name, values in scene().items() if name != "features"}
    upper = evaluate(**{name: values[:cut] for name, values in arrays.items()}, **words)
    lower = evaluate(**{name: values[cut:] for name, values in arrays.items()}, **words)
    both = evaluate(**arrays, **words)
    assert upper + lower == both
    assert sum([lower, upper]) == both
    assert both - lower == upper


def test_every_kind_of_array_gives_the_same(whole, tmp_path):
    arrays = scene()
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    stored = {
        name: group.create_array(name, data=values, chunks=(4, 5, *values.shape[2:])) for name, values in arrays.items()
    }
    assert evaluate(**stored, **WORDS) == whole
    dims = {"probabilities": ("y", "x", "class"), "features": ("y", "x", "band")}
    labelled = {name: xr.DataArray(v, dims=dims.get(name, ("y", "x"))) for name, v in arrays.items()}
    labelled["reference"] = labelled["reference"].transpose("x", "y")
    labelled["features"] = labelled["features"].transpose("band", "y", "x")
    labelled["probabilities"] = labelled["probabilities"].transpose("y", "class", "x").rename({"class": "kind"})
    assert evaluate(**labelled, **WORDS, axis="kind", band_axis="band") == whole
    first = {**arrays, "probabilities": np.moveaxis(arrays["probabilities"], 2, 0)}
    assert evaluate(**first, **WORDS, axis=0) == whole


@pytest.mark.slow
def test_inputs_are_left_alone():
    arrays = scene()
    before = {name: values.copy() for name, values in arrays.items()}
    for values in arrays.values():
        values.setflags(write=False)
    evaluate(**arrays, **WORDS)
    assert all(np.array_equal(arrays[name], before[name]) for name in arrays)


def test_nothing_is_read_before_compute():
    p = da.from_array(Unreadable((64, 64, 3), "float32"), chunks=(8, 8, 3), meta=np.empty((0, 0, 0), "float32"))
    r = da.from_array(Unreadable((64, 64), "uint8"), chunks=(8, 8), meta=np.empty((0, 0), "uint8"))
    lazy = evaluate(p, r, compute=False)
    with pytest.raises(AssertionError, match="read"):
        lazy.compute(scheduler="synchronous")


def test_lazy_gives_the_same_when_computed(whole):
    assert evaluate(**scene(), **WORDS, compute=False).compute() == whole


class CountingStore(zarr.storage.MemoryStore):
    """Counts how often each chunk is fetched."""

    def __init__(self):
        super().__init__()
        self.fetched = {}

    async def get(self, key, prototype, byte_range=None):
        if "/c/" in key or key.startswith("c/"):
            self.fetched[key] = self.fetched.get(key, 0) + 1
        return await super().get(key, prototype, byte_range)


def test_every_chunk_is_read_once():
    arrays = {name: values for name, values in scene(shape=(64, 48)).items() if name != "features"}
    store = CountingStore()
    group = zarr.open_group(store, mode="w")
    stored = {
        name: group.create_array(name, data=values, chunks=(8, 8, *values.shape[2:])) for name, values in arrays.items()
    }
    store.fetched.clear()
    words = {k: v for k, v in WORDS.items() if k not in ("measures", "class_distances", "soft_confusion")}
    found = evaluate(**stored, **words)
    assert found == evaluate(**arrays, **words)
    assert len(store.fetched) == 3 * 8 * 6
    assert set(store.fetched.values()) == {1}


def test_maps_hold_every_pixel_that_has_a_prediction(tmp_path):
    arrays = scene()
    arrays["probabilities"][2, 3] = np.nan
    store = tmp_path / "maps.zarr"
    words = {k: v for k, v in WORDS.items() if k not in ("class_distances", "soft_confusion", "measures")}
    names = ["gini", "correct", "predicted", "confused_classes"]
    for block in ((11, 9), (3, 2)):
        evaluate(**arrays, **words, maps=names, maps_store=store, block=block)
        maps = xr.open_zarr(store, consolidated=False)
        assert maps["gini"].dims == ("dim_0", "dim_1")
        p = arrays["probabilities"].astype(np.float64)
        gini = 1.5 * (1 - np.square(p / p.sum(axis=2, keepdims=True)).sum(axis=2))
        np.testing.assert_allclose(maps["gini"].values, gini, atol=1e-7)
        usable = ~np.isnan(gini)
        counted = usable & arrays["mask"] & (arrays["reference"] != 0)
        decided = np.array([1, 2, 7])[p.argmax(axis=2)]
        wanted = np.where(counted, decided == arrays["reference"], np.nan)
        np.testing.assert_array_equal(maps["correct"].values, wanted)
        np.testing.assert_array_equal(maps["predicted"].values, np.where(usable, decided, np.nan))


def test_saved_and_loaded(whole, tmp_path):
    save(whole, tmp_path / "one.zarr")
    assert load(tmp_path / "one.zarr") == whole
    save(whole, tmp_path / "one.zarr")
    with pytest.raises(InputError, match="no summary"):
        load(tmp_path / "two.zarr")
    other = zarr.open_group(str(tmp_path / "other.zarr"), mode="w")
    other.create_array("precious", data=np.ones(3))
    with pytest.raises(InputError, match="no summary of dask_uncert"):
        save(whole, tmp_path / "other.zarr")
    assert "precious" in zarr.open_group(str(tmp_path / "other.zarr"), mode="r")


def test_binary_prediction_without_a_class_axis():
    p = np.array([[0.2, 0.9, 0.5], [0.7, 0.1, 0.6]])
    c = np.array([[0, 1, 0], [0, 1, 1]])
    found = evaluate(p, c, axis=None, classes={0: "background", 1: "lesion"})
    assert found.decisions.confusion.tolist() == [[2, 1], [1, 2]]
    both = evaluate(np.stack([1 - p, p], axis=2), c, classes={0: "background", 1: "lesion"})
    assert both == found


REFUSALS = [
    ({"probabilities": np.ones((3, 4)), "reference": np.ones((3, 4), int)}, "reference: .* covers"),
    ({"reference": np.ones((9, 11), int)}, "dim_0 = 9"),
    (
        {"classes": {1: "a", 2: "b"}, "soft_confusion": []},
        "3 classes along its class dimension, but the class table has 2",
    ),
    ({"classes": {1: "a", 2: "a", 7: "b"}, "soft_confusion": []}, "more than once"),
    ({"ignore": [1]}, "codes \\[1\\] are in the class table"),
    (
        {"measures": ["ginny"], "soft_confusion": [], "class_distances": None},
        "unknown measure 'ginny'. Did you mean `gini`\\?",
    ),
    ({"measures": ["homophily"], "class_distances": None, "soft_confusion": []}, "`homophily` needs either"),
    ({"features": None}, "needs the input `features`"),
    ({"features": np.full((11, 9, 3), 7)}, "features: .* the same numbers for every class"),
    (
        {"features": np.where(np.arange(3) < 2, np.nan, np.arange(297.0).reshape(11, 9, 3))},
        r"features: .* not finite at labelled pixels: \d+ in band 0, \d+ in band 1 \(the first is 0\)",
    ),
    ({"class_distances": {"table": [[0, 0.33, 1], [0.36, 0, 1], [1, 1, 0]]}}, "0.33.*0.36"),
    ({"class_distances": {"table": [[0, 1], [1, 0]]}}, "for 2 classes, but there are 3"),
    ({"maps": ["gini"]}, "maps_store"),
    ({"calibration": {"bins": 0}}, "`calibration.bins` should be greater than or equal to 1, found 0"),
    ({"soft_confusion": [{"class": "rock"}]}, "no class 'rock'. Classes: soil"),
    ({"soft_confusion": [{"thresholds": [1.0]}]}, "`soft_confusion.0.thresholds.0` should be less than 1"),
    ({"soft_confusion": [{"dampings": [1]}]}, "needs `uncertainty"),
    ({"uncertainty_confusion": {"measures": ["variation_ratio"]}}, "not among the measures"),
    ({"block": (0, 3)}, "positive sizes"),
    ({"mask": np.ones((11, 9))}, "true and false"),
    ({"probabilities": np.ones((11, 9, 3), "uint8")}, "declared `scale`"),
    ({"engine": "quick"}, "`engine` should be 'compiled'"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[m[:30] for _, m in REFUSALS])
def test_refusals_say_what_to_do(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        evaluate(**{**scene(), **WORDS, **changes})
    assert "\n" not in str(caught.value)


@settings(max_examples=8)
@given(block=st.tuples(st.integers(1, 11), st.integers(1, 9)))
def test_unusable_input_is_said_whole_for_every_cut(block):
    arrays = scene()
    arrays["reference"][[1, 5, 9], [2, 2, 8]] = 9
    arrays["reference"][4, 4] = 3
    with pytest.raises(InputError, match=r"3 \(1 pixel\), 9 \(3 pixels\)\. The class table has 1, 2, 7"):
        evaluate(**arrays, **WORDS, block=block)
    arrays = scene()
    arrays["mask"][:] = True
    arrays["reference"][:] = 7
    arrays["probabilities"][[3, 7], [1, 0]] = (-1.2, 2.0, 0.2)
    arrays["features"] = None
    words = {**WORDS, "measures": ["gini", "entropy"], "class_distances": None}
    message = r"2 counted pixels .* from -1\.2 to 2, sums .* to 1\.2; the first at dim_0 = 3, dim_1 = 1"
    with pytest.raises(InputError, match=message):
        evaluate(**arrays, **words, block=block)


def test_classes_without_a_sample_are_named():
    arrays = scene()
    arrays["reference"][arrays["reference"] == 2] = 1
    with pytest.raises(InputError, match="no labelled pixel of tree"):
        evaluate(**arrays, **WORDS)


def test_results_are_plain_json(whole):
    text = to_json(scene_results(whole))
    assert json.loads(text)["counted"] == int(whole.ledger.counted)
    assert "NaN" not in text
    assert "Infinity" not in text
