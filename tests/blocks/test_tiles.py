"""Intervals of a scene from its tiles: the same for every cut, each tile a scene of its own, merged tiles apart."""

import csv
import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.bootstrap_intervals import bca_interval
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.inputs.scene import Encoding
from dask_uncert.io.summary_store import load, save
from dask_uncert.jobs import run
from dask_uncert.metrics.resampling_units import jackknife, unit_scalars, weighted_totals
from dask_uncert.metrics.scalars import BRIER_PARTS, scalars
from dask_uncert.metrics.tile_bootstrap import GROUPS, TileUnits, tile_intervals, tile_layout
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.summaries.tiles import MOST, OPEN
from tests.support.requests import request_of

SHAPE, SIZE = (21, 26), 8
CONFIDENCE = {"unit": "tile", "size": SIZE, "replicates": 20, "seed": 3}
WORDS = {
    "classes": {0: "a", 1: "b", 2: "c"},
    "ignore": [7],
    "measures": ["gini", "uncertainty"],
    "soft_confusion": [
        {
            "class": "b",
            "thresholds": [0.3, 0.5],
            "sigmas": [0, 0.1],
            "dampings": [0, 1],
            "uncertainty": "gini",
            "sweep": False,
        },
        {"class": "c", "sweep": False},
    ],
}
NOT_OF_TILES = {
    *(f"calibration/brier/{part}" for part in ("reliability", "resolution", "uncertainty", "within_bins")),
    *(f"calibration/classes/{name}/brier/{part}" for name in "abc" for part in BRIER_PARTS),
    *(f"ranking/{name}/{area}" for name in "abc" for area in ("auroc", "average_precision")),
}


def scene(seed=0, shape=SHAPE, quarters=False):
    """Arrays of a drawn scene whose first tile has no pixel that counts; probabilities in quarters if asked."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(3, 0.6), shape).astype(np.float32)
    if quarters:
        p = np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.25, 0.25], [0, 0.5, 0.5]])[rng.integers(0, 4, shape)]
    y = np.where(rng.random(shape) < 0.6, p.argmax(axis=-1), rng.integers(0, 3, shape))
    y[tuple(slice(0, SIZE) for _ in shape)] = 7
    u = np.round(rng.gamma(1.0, size=shape) * 8) / 8
    return {"probabilities": p, "reference": y, "uncertainty": u}


@pytest.fixture(scope="module")
def whole():
    return evaluate(**scene(), **WORDS, confidence=CONFIDENCE)


def alone(part):
    """A part of the scene as a scene of its own, without dask."""
    arrays = {name: one[part] for name, one in scene().items()}
    return evaluate_block(request_of("uncertainty", **WORDS), arrays, Encoding(2), compiled)[1]


def parts_of(whole):
    """The tiles of the scene, each as a scene of its own."""
    places = whole.tiles.positions[:, 1:].tolist()
    return [alone(tuple(slice(k * SIZE, k * SIZE + SIZE) for k in place)) for place in places]


@given(st.tuples(st.integers(1, 21), st.integers(1, 26)), st.integers(2, 5))
@settings(max_examples=4, deadline=None)
def test_any_cut_and_any_tree_give_the_same_bits(block, split_every):
    few = (max(block[0], 5), max(block[1], 6))
    found = evaluate(**scene(), **WORDS, confidence=CONFIDENCE, block=few, split_every=split_every)
    assert found == evaluate(**scene(), **WORDS, confidence=CONFIDENCE, block=SHAPE)


def test_small_batches_and_dask_arrays_give_the_same_bits(whole, monkeypatch):
    import dask.array as da

    arrays = {k: da.from_array(v, chunks=(9, 7, -1)[: v.ndim]) for k, v in scene().items()}
    assert evaluate(**arrays, **WORDS, confidence=CONFIDENCE, compute=False).compute() == whole
    for step, dense in ((10, 1 << 21), (100, 1), (1 << 14, 12000)):
        monkeypatch.setattr("dask_uncert.blocks.classification.STEP", step)
        monkeypatch.setattr("dask_uncert.blocks.tiles.DENSE", dense)
        assert evaluate(**scene(), **WORDS, confidence=CONFIDENCE) == whole


def test_maps_do_not_depend_on_the_order_of_tiles(tmp_path):
    stores = [str(tmp_path / name) for name in ("plain.zarr", "tiled.zarr")]
    for store, confidence in zip(stores, (None, CONFIDENCE), strict=True):
        evaluate(**scene(), **WORDS, confidence=confidence, maps=["gini", "correct"], maps_store=store)
    for name in ("gini", "correct"):
        plain, tiled = (zarr.open_group(store, mode="r")[name][...] for store in stores)
        np.testing.assert_array_equal(plain, tiled)


def test_a_tile_counts_what_a_scene_of_it_alone_would(whole):
    units = TileUnits(whole)
    found = unit_scalars(units)
    assert len(units.names) == 3 * 4 - 1
    for i, part in enumerate(parts_of(whole)):
        numbers = scalars(part)
        assert set(numbers) - set(found) == NOT_OF_TILES
        off = [k for k in found if not np.array_equal(found[k][i], numbers[k], equal_nan=True)]
        assert not off


def test_tiles_add_up_to_the_scene(whole):
    assert replace(whole, tiles=None) == evaluate(**scene(), **WORDS)
    numbers = scalars(whole)
    found = scalars(whole, weighted_totals(TileUnits(whole), np.ones((1, 11), np.int64)))
    for name, value in found.items():
        assert np.array_equal(value[0], numbers[name], equal_nan=True), name


def test_volumes_and_rows_have_tiles_too():
    for shape in ((30,), (5, 9, 10)):
        found = evaluate(**scene(1, shape), **WORDS, confidence={**CONFIDENCE, "size": 4})
        again = evaluate(**scene(1, shape), **WORDS, confidence={**CONFIDENCE, "size": 4}, block=[3] * len(shape))
        assert found == again
        assert found.tiles.positions.shape[1] == 1 + len(shape)
        counted = TileUnits(found).counts("confusion", 0, len(found.tiles.positions)).sum()
        assert counted == found.ledger.counted


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_both_kernels_keep_the_same(seed):
    """Probabilities in quarters: all arithmetic is exact but for logarithms."""
    arrays, found = scene(seed, (9, 11), quarters=True), []
    words = {**WORDS, "soft_confusion": WORDS["soft_confusion"][1:]}
    request = request_of("uncertainty", shape=(9, 11), **words, confidence={**CONFIDENCE, "size": 4})
    for kernels in (compiled, reference):
        _, one = evaluate_block(request, arrays, Encoding(2), kernels)
        losses = tile_layout(one).marginals["log_loss"][0]
        rows = one.tiles.rows.toarray()
        losses = rows[:, losses : losses + 2].copy(), np.s_[:, losses : losses + 2]
        rows[losses[1]] = 0
        found.append((one.tiles.positions, rows, losses[0] @ [2**22, 1]))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert np.abs(found[0][2] - found[1][2]).max(initial=0) <= 16  # a last place of each pixel's logarithm


def test_intervals_are_those_of_a_plain_loop_over_tiles(whole):
    names = ("overall/accuracy", "classes/b/f1", "calibration/ece", "measures/gini/all/mean")
    parts = parts_of(whole)

    def values(total):
        numbers = scalars(total)
        return [float(numbers[name]) for name in names]

    weights = bootstrap_weights(whole.tiles.names, range(20), 3)
    drawn = [values(sum(p for p, w in zip(parts, row, strict=True) for _ in range(w))) for row in weights]
    without = [values(sum(parts[:i] + parts[i + 1 :])) for i in range(len(parts))]
    low, high, _ = bca_interval(values(sum(parts)), drawn, without)
    found = tile_intervals(whole)
    for i, name in enumerate(names):
        np.testing.assert_allclose([found[name].low, found[name].high], [low[i], high[i]], rtol=1e-12)


def test_two_models_on_one_scene_are_resampled_alike(whole):
    other = evaluate(**{**scene(), "probabilities": scene(9)["probabilities"]}, **WORDS, confidence=CONFIDENCE)
    assert other.tiles.names == whole.tiles.names
    assert other.tiles.scenes != whole.tiles.scenes


def test_tiles_of_merged_scenes_stay_units_of_their_own(whole, tmp_path):
    other, third = (evaluate(**scene(seed), **WORDS, confidence=CONFIDENCE) for seed in (1, 2))
    both = whole + other
    assert (scene_results(both)["confidence"]["units"], scene_results(both)["confidence"]["scenes"]) == (
        22,
        2,
    )
    assert both == other + whole
    assert (both + third) == whole + (other + third) == sum([third, whole, other])
    assert both - other == whole
    assert len(both.tiles.positions) == len(whole.tiles.positions) + len(other.tiles.positions)
    assert len(set(both.tiles.names)) == len(both.tiles.positions)
    with pytest.raises(ValueError, match="count twice"):
        both + whole
    with pytest.raises(ValueError, match="unequal tiles"):
        both + evaluate(**scene(3), **WORDS)
    with pytest.raises(ValueError, match="unequal confidence"):
        whole + evaluate(**scene(3), **WORDS, confidence={**CONFIDENCE, "seed": 4})
    save(both, tmp_path / "both.zarr")
    assert load(tmp_path / "both.zarr") == both
    assert (whole - whole).tiles.scenes == ()


def test_open_tiles_of_one_scene_add():
    request = request_of("uncertainty", shape=SHAPE, **WORDS, confidence=CONFIDENCE)
    arrays = scene()
    halves = [
        evaluate_block(request, {k: v[rows] for k, v in arrays.items()}, Encoding(2), compiled, (rows.start, 0))[1]
        for rows in (slice(0, 12), slice(12, 21))
    ]
    _, whole = evaluate_block(request, arrays, Encoding(2), compiled)
    assert halves[0] + halves[1] == halves[1].plus_all(halves[:1]) == whole
    assert whole.tiles.scenes == (OPEN,)
    assert whole - halves[1] == halves[0]


def test_groups_of_tiles_left_out_together(whole):
    units = TileUnits(whole)
    one, all_ = jackknife(units, 3), jackknife(units, GROUPS)
    assert {len(v) for v in all_.values()} == {11}
    kept = np.ones((3, 11), np.int64)
    for row, gone in zip(kept, (slice(0, 3), slice(3, 7), slice(7, 11)), strict=True):
        row[gone] = 0
    expected = scalars(whole, weighted_totals(units, kept))
    for name, values in one.items():
        assert np.array_equal(values, expected[name], equal_nan=True), name


def test_one_tile_says_nothing_of_how_tiles_differ():
    found = evaluate(**scene(5), **WORDS, confidence={"size": 64, "replicates": 5})
    assert np.isnan(tile_intervals(found)["overall/accuracy"].low)
    assert scene_results(found)["overall"]["accuracy_interval"] == [None, None]
    empty = evaluate(np.full((4, 3), 1 / 3), np.full(4, 9), ignore=[9], confidence={"size": 2})
    assert scene_results(empty)["confidence"]["units"] == 0


def test_sizes_suit_the_grid():
    def size(*shape, **confidence):
        return request_of(shape=shape, classes=["a", "b"], confidence=confidence).tiles.size

    assert size(2048, 2048) == 32
    assert size(2049, 2048) == 64
    assert MOST >= (512 // 64) ** 2 * -(-300 // 64)
    assert size(300, 512, 512) == 32
    with pytest.raises(InputError, match=r"65536 on a grid of 2048 x 2048, at most 4096.*`size: 32` or more"):
        size(2048, 2048, size=8)


@pytest.fixture
def job(tmp_path):
    """A job on a store of its own."""
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    for name, values in scene().items():
        dims = ("y", "x", "class")[: values.ndim]
        group.create_array(name, data=values, chunks=(8, 13, 3)[: values.ndim], dimension_names=dims)
    inputs = {name: {"store": str(tmp_path / "scene.zarr"), "array": name} for name in scene()}
    words = {**WORDS, "measures": ["gini"], "soft_confusion": [], "confidence": CONFIDENCE}
    return {"version": 1, "kind": "scene", "inputs": inputs, "output": str(tmp_path / "out"), **words}


@pytest.mark.slow
def test_a_job_writes_intervals_beside_its_numbers(job, tmp_path):
    evaluation = run.run(job)
    found = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(results_schema()).validate(found)
    low, high = found["overall"]["accuracy_interval"]
    assert low < found["overall"]["accuracy"] < high
    assert found["confidence"] == {
        "unit": "tile", "size": 8, "units": 11, "scenes": 1, "replicates": 20, "level": 0.95, "seed": 3,
        "method": "bca", "undefined_replicates": found["confidence"]["undefined_replicates"],
    }  # fmt: skip
    assert "brier" in found["calibration"]
    assert "reliability_interval" not in found["calibration"]["brier"]
    assert "score_interval" in found["calibration"]["brier"]
    intervals = tile_intervals(evaluation)
    with open(tmp_path / "out" / "tables" / "intervals.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["number", "value", "low (95 %)", "high (95 %)", "undefined replicates"]
    assert sorted(row[0] for row in rows) == sorted(intervals)
    for name, _, low, high, undefined in rows:
        one = intervals[name]
        for text, end in ((low, one.low), (high, one.high)):
            assert (text == "") == (not np.isfinite(end))
            assert text == "" or float(text) == end
        assert int(undefined) == one.undefined
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "95 % confidence interval" in page
