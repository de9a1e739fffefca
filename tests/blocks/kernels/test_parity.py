"""Compiled kernels do what the reference says, on any layout and dtype, and leave their input alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.blocks.kernels.types import Rounding
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.measure_values import measure_maximum
from dask_uncert.formulas.measures import MEASURES, is_pointwise, parse_measure
from dask_uncert.inputs.scene import Encoding
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Class
from dask_uncert.summaries.soft_confusion import SoftSettings
from tests.support.arrays import distance_table, probability_vectors
from tests.support.summaries import powers_of

POINTWISE = [measure for measure in MEASURES.values() if is_pointwise(measure)] + [
    parse_measure(words)
    for words in (
        {"geometric": {"distance": "euclidean", "n": 1}},
        {"geometric": {"distance": "euclidean", "n": 3}},
        {"geometric": {"distance": "kullback-leibler", "n": 2}},
        {"geometric": {"distance": "fisher-rao", "n": 1}},
        {"geometric": {"distance": "renyi", "n": 2, "alpha": 3.0}},
        {"renyi": {"alpha": 0.5}},
        {"renyi": {"alpha": 1}},
        {"renyi": {"alpha": float("inf")}},
        {"tsallis": {"alpha": 2.5}},
        {"tsallis": {"alpha": 1}},
    )
]


def with_distances(measures, classes, rng):
    rows = tuple(map(tuple, distance_table(rng, classes).tolist()))
    made = tuple(replace(m, distances=rows) if m.kind == "homophily" else m for m in measures)
    return made, tuple(measure_maximum(m) or 1.0 for m in made)


def drawn(rng, pixels, classes, dtype):
    return probability_vectors(rng, pixels, classes).astype(dtype)


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 20),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    place=st.sampled_from(["first", "middle", "last"]),
    pixels=st.integers(1, 600),
    every=st.booleans(),  # whole tiles of neighbours are gathered in another way
)
def test_measures_agree(seed, classes, dtype, place, pixels, every):
    rng = np.random.default_rng(seed)
    p = drawn(rng, pixels, classes, dtype)
    p[rng.random(pixels) < 0.05, 0] = np.nan
    p[rng.random(pixels) < 0.05] *= 3
    if place == "first":
        cube, axis = np.ascontiguousarray(p.T), 0
    elif place == "last":
        cube, axis = p, 1
    else:
        whole = p[: pixels // 2 * 2] if pixels > 1 else np.repeat(p, 2, axis=0)
        cube, axis = np.ascontiguousarray(whole.reshape(2, -1, classes).transpose(0, 2, 1)), 1
    cube.setflags(write=False)
    before = cube.copy()
    stored, kept = three_axes(cube, axis, None)
    measures, maxima = with_distances(POINTWISE, classes, rng)
    number = stored.shape[0] * stored.shape[2]
    chosen = np.arange(number) if every else np.flatnonzero(rng.random(number) < 0.8)
    rounding = rounding_of(kept, classes)
    a = reference.measure(stored, chosen, measures, maxima, rounding)
    b = compiled.measure(stored, chosen, measures, maxima, rounding)
    for name in ("state", "predicted", "second", "confused"):
        usable = slice(None) if name == "state" else a.state & 3 == 0
        assert np.array_equal(getattr(a, name)[usable], getattr(b, name)[usable]), name
    np.testing.assert_array_equal(a.confidence[a.state & 3 == 0], b.confidence[a.state & 3 == 0])
    np.testing.assert_allclose(b.values, a.values, rtol=0, atol=2e-12 if dtype == "float64" else 2e-6, equal_nan=True)
    assert np.array_equal(cube, before, equal_nan=True)
    inside = b.values[:, b.state & 3 == 0]
    assert (inside >= 0).all()
    assert (inside <= 1).all()
    assert not np.signbit(inside).any()


def test_a_pixel_does_not_depend_on_its_place():
    rng = np.random.default_rng(3)
    p = drawn(rng, 700, 9, "float32")[:, :, None]
    measures, maxima = with_distances(POINTWISE, 9, rng)
    rounding = Rounding(1e-4, 1e-7, 1 / 9)
    whole = compiled.measure(p, np.arange(700), measures, maxima, rounding).values
    order = rng.permutation(700)
    assert np.array_equal(compiled.measure(p, order, measures, maxima, rounding).values, whole[:, order])
    for i in range(0, 700, 41):
        alone = compiled.measure(p, np.array([i]), measures, maxima, rounding).values
        assert np.array_equal(alone[:, 0], whole[:, i])


@pytest.mark.parametrize("engine", [compiled, reference])
def test_vertices_are_exactly_certain(engine):
    for dtype in ("float16", "float32", "float64"):
        p, kept = three_axes(np.eye(5, dtype=dtype), 1, None)
        measures, maxima = with_distances(POINTWISE, 5, np.random.default_rng(0))
        values = engine.measure(p, np.arange(5), measures, maxima, rounding_of(kept, 5)).values
        assert np.array_equal(values, np.zeros_like(values))
        assert not np.signbit(values).any()


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.integers(2, 6),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_whole_blocks_agree(seed, classes, dtype):
    """Counts are equal; sums differ by no more than the values do."""
    rng = np.random.default_rng(seed)
    pixels = int(rng.integers(1, 300))
    p = drawn(rng, pixels, classes, dtype)
    measures, maxima = with_distances(POINTWISE, classes, rng)
    request = Request(
        classes=tuple(Class(i + 1, f"class {i}") for i in range(classes)),
        ignore=(0,),
        measures=measures,
        maxima=maxima,
        thresholds=((),) * len(measures),
        calibration_bins=int(rng.integers(1, 30)),
        soft=(SoftSettings(0, (0.3, 0.5), (0.0, 0.2), (0.0, 1.0), "gini"),),
        maps=("gini", "correct"),
    )
    arrays = {
        "probabilities": p,
        "reference": rng.integers(0, classes + 1, pixels),
        "mask": rng.random(pixels) < 0.8,
    }
    for values in arrays.values():
        values.setflags(write=False)
    found_maps, found = evaluate_block(request, arrays, Encoding(1), compiled)
    wanted_maps, wanted = evaluate_block(request, arrays, Encoding(1), reference)
    unsorted = replace(request, measures=(), maxima=(), thresholds=(), soft=(), maps=())
    _, without_measures = evaluate_block(unsorted, arrays, Encoding(1), compiled)
    assert found.ledger == wanted.ledger == without_measures.ledger
    assert found.decisions == wanted.decisions == without_measures.decisions
    for name, dims, value in found.calibration.arrays():
        other = getattr(wanted.calibration, name)
        if "tally" in dims:
            assert np.array_equal(value[..., :2], other[..., :2]), name
            value, other = value[..., 2:], other[..., 2:]
        if {"limb", "tally"} & set(dims):  # each value may round either way
            rounding = 2**-20 if name == "squared_error" and dtype != "float64" else 2**-43
            np.testing.assert_allclose(decode(value), decode(other), rtol=0, atol=pixels * classes * rounding)
        else:
            assert np.array_equal(value, other), name
    np.testing.assert_array_equal(found_maps["correct"], wanted_maps["correct"])
    np.testing.assert_allclose(
        found_maps["gini"], wanted_maps["gini"], atol=1e-7 if dtype == "float64" else 2e-6, rtol=0
    )
    stored, kept = three_axes(p, 1, None)
    values = reference.measure(stored, np.arange(pixels), measures, maxima, rounding_of(kept, classes)).values
    counted = arrays["mask"] & (arrays["reference"] > 0)
    off = 1e-11 if dtype == "float64" else 2e-6
    for row, a, b in zip(values[:, counted], found.distributions, wanted.distributions, strict=True):
        # Values differ by rounding: only one that lies on an edge may be counted on its other side.
        moved = np.abs(a.histogram.cumsum(axis=-1) - b.histogram.cumsum(axis=-1)).sum(axis=(0, 1))
        on_edge = (np.abs(row[:, np.newaxis] - np.asarray(a.edges)[1:]) < off).sum(axis=0)
        assert (moved <= on_edge).all()
        np.testing.assert_allclose(powers_of(a.by_pair), powers_of(b.by_pair), rtol=0, atol=pixels * 3 * off)
        np.testing.assert_allclose(powers_of(a.by_confused), powers_of(b.by_confused), rtol=0, atol=pixels * 3 * off)
        assert np.array_equal(a.histogram.sum(axis=-1), b.histogram.sum(axis=-1))
