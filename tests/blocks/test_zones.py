"""Zones: each is what an evaluation of its pixels alone gives, and all together are the scene, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError

SIDE = 13
TILES = {"unit": "tile", "size": 5, "replicates": 20}
NAMES = {7: "south", 2: "north", 300: "island", 5: "empty"}


def scene(seed: int, kind: str) -> tuple[dict, dict]:
    """Inputs with pixels that are masked, unlabelled and without a value; and options."""
    rng = np.random.default_rng(seed)
    shape, options = (SIDE, SIDE), {"ignore": [9], "axis": -1}
    p = rng.dirichlet([0.4] * 3, shape).astype("f4")
    reference = rng.choice([0, 1, 2, 9], shape)
    inputs = {"probabilities": p, "reference": reference, "mask": rng.random(shape) < 0.9}
    p[rng.random(shape) < 0.1] = np.nan
    if kind == "binary":  # counted without vectors, but where p is repaired
        p = np.where(rng.random(shape) < 0.1, 1 + 1e-8, p[..., 0]).astype("f4")
        options |= {"axis": None, "measures": []}
        inputs |= {"probabilities": p, "reference": np.where(reference == 2, 1, reference)}
    elif kind == "codes":
        inputs |= {"probabilities": None, "prediction": rng.integers(0, 3, shape)}
        options |= {"measures": [], "classes": ["a", "b", "c"]}
    elif kind == "samples":
        options |= {"measures": ["mutual_information", "entropy"], "sample_axis": 0}
        inputs |= {"probabilities": None, "samples": rng.dirichlet([0.4] * 3, (2, *shape))}
    elif kind == "soft":
        soft = {
            "class": "1",
            "sigmas": [0, 0.1],
            "dampings": [0, 1],
            "uncertainty": "uncertainty",
            "thresholds": [0.3, 0.5],
            "sweep": {"error": 0.1},
        }
        options |= {"measures": ["gini", "uncertainty"], "soft_confusion": [soft]}
        inputs |= {"uncertainty": rng.random(shape), "weight": rng.random(shape)}
    return inputs, options


def evaluated(inputs, options, zones=None, where=..., **more):
    kept = {name: a if a is None else a[:, where] if name == "samples" else a[where] for name, a in inputs.items()}
    return du.evaluate(**kept, zones=zones, **options, **more)


@pytest.mark.parametrize("kind", ["classes", "binary", "samples", "codes", "soft"])
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), block=st.sampled_from([(5, 4), (13, 6)]))
def test_a_zone_is_the_evaluation_of_its_pixels_and_all_together_are_the_scene(kind, seed, block):
    inputs, options = scene(seed, kind)
    codes = np.random.default_rng(seed + 1).choice([7, 2, 300], (SIDE, SIDE), p=[0.6, 0.3, 0.1])
    found = evaluated(inputs, options, du.Input(codes, names=NAMES), block=block)
    assert replace(found, zones=None) == evaluated(inputs, options)
    assert not found.zone("empty").ledger.pixels
    for code, name in ((2, "north"), (300, "island")):
        assert found.zone(name) == evaluated(inputs, options, where=codes == code)
    assert found.zone(*NAMES.values()) == replace(found, zones=None) == du.zones(found).total()
    assert du.zones(found).names == tuple(sorted(NAMES.values()))


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_pixels_without_a_zone_are_left_out_for_that_first(seed):
    inputs, options = scene(seed, "classes")
    rng = np.random.default_rng(seed)
    codes = rng.choice([1, 2, -1], (SIDE, SIDE)).astype("f8")
    codes[rng.random(codes.shape) < 0.1] = np.nan
    found = evaluated(inputs, options, du.Input(codes, nodata=-1), block=(4, 7))
    inside = np.isin(codes, [1, 2])
    alone = evaluated(inputs, options, where=inside)
    reasons = found.ledger.reasons()
    assert (reasons.pop("zones_nodata"), reasons.pop("zones_nan")) == ((codes == -1).sum(), np.isnan(codes).sum())
    assert reasons == alone.ledger.reasons()
    assert found.ledger.pixels == codes.size
    assert found.zone("1", "2") == alone == found.zone("1") + found.zone("2")
    # Pixels of no zone are out by choice, so bounds are of the others alone.
    lost = evaluated(inputs, options, du.Input(np.where(inside, codes, -1), nodata=-1)).ledger.lost()
    assert np.array_equal(lost, alone.ledger.lost())


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(5, 5), (4, 13), (13, 6)]))
def test_tiles_are_cut_by_zones_and_add_up(seed, block):
    inputs, options = scene(seed, "soft")
    codes = np.random.default_rng(seed).integers(0, 3, (SIDE, SIDE))
    found = evaluated(inputs, options, codes, block=block, confidence=TILES)
    whole = evaluated(inputs, options, confidence=TILES)
    assert found.zone("0", "1", "2") == replace(found, zones=None) == whole
    for code in range(3):
        masked = evaluated(inputs | {"mask": inputs["mask"] & (codes == code)}, options, confidence=TILES)
        assert np.array_equal(found.zone(str(code)).tiles.positions[:, 1:], masked.tiles.positions[:, 1:])
        assert (found.zone(str(code)).tiles.rows != masked.tiles.rows).nnz == 0
    assert len((found.zone("0") + found.zone("1")).tiles.scenes) == 2


def test_scenes_with_zones_add_save_and_subtract(tmp_path):
    first, second = (
        evaluated(*scene(seed, "classes"), np.full((SIDE, SIDE), seed), confidence=TILES) for seed in (3, 4)
    )
    both = first + second
    assert both == first.plus_all([second])
    assert [zone.name for zone in both.zones.table] == ["3", "4"]
    assert both.zone("4").alone() == second.alone()
    assert both - second == first
    du.save(both, tmp_path / "both.zarr")
    assert du.load(tmp_path / "both.zarr") == both
    with pytest.raises(ValueError, match="zones"):
        first + evaluated(*scene(4, "classes"), confidence=TILES)


def test_maps_do_not_depend_on_zones(tmp_path):
    inputs, options = scene(5, "classes")
    codes = np.where(np.arange(SIDE) < 3, np.nan, np.arange(SIDE) % 3) + np.zeros((SIDE, 1))
    for name, zones in (("with", codes), ("without", None)):
        evaluated(inputs, options, zones, maps=["entropy", "predicted"], maps_store=tmp_path / name, block=(4, 5))
    stores = [zarr.open_group(tmp_path / name) for name in ("with", "without")]
    for name in ("entropy", "predicted"):
        np.testing.assert_array_equal(*(store[name][...] for store in stores))


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        (du.Input([1, 1, 3], names={1: "a", 2: "b"}), r"codes without a name: 3 \(1 pixel\).*Names are given for 1, 2"),
        ([1, 1, 0.5], r"numbers that are not whole: 0.5 \(1 pixel\)"),
        (du.Input([1, 1, 1], names={1: "a", 2: "a"}), "a occur more than once"),
        ([1, 1], "zones: .*has .* = 2, but `probabilities` has"),
        ([[1, 1, 1]], "zones"),
    ],
)
def test_zones_that_cannot_be_used(zones, message):
    with pytest.raises(InputError, match=message):
        du.evaluate([[0.9, 0.1]] * 3, [0, 1, 1], zones=zones)


def test_too_many_zones_are_another_array():
    p, many = np.full((1001, 2), 0.5), np.arange(1001)
    for block in ((1001,), (100,)):  # in a block, and in the sum of several
        with pytest.raises(InputError, match="more than 1000 codes, from 0 to 1000"):
            du.evaluate(p, np.zeros(1001, int), zones=many, block=block, measures=[])
    with pytest.raises(InputError, match="there is no zone x; the zones are 0"):
        du.evaluate(p, np.zeros(1001, int), zones=many * 0).zone("x")
    with pytest.raises(InputError, match="without zones"):
        du.evaluate(p, np.zeros(1001, int)).zone("x")
