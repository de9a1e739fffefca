"""Class distances against SciPy, in any order of samples, with the refusals."""

import math
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from dask_uncert.formulas.class_distances import (
    METRICS,
    SEGMENT,
    band_distances,
    class_distances,
    combine_bands,
)


def scene(dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, size=(12, 15))
    features = rng.normal(size=(12, 15, 4)) * 200 + 100 * labels[..., None] + 1000
    return features.astype(dtype), labels


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint16"])
def test_agrees_with_scipy(dtype):
    features, labels = scene(dtype)
    classes = [1, 2, 4]
    energy, wasserstein, mean, largest = (class_distances(features, labels, classes, metric) for metric in METRICS)
    assert METRICS == ("energy", "wasserstein", "mean", "infinity")
    for i, first in enumerate(classes):
        for j, second in enumerate(classes):
            a, b = (features[labels == code].astype(float) for code in (first, second))
            bands = [stats.energy_distance(a[:, k], b[:, k]) / math.sqrt(2) for k in range(4)]
            assert energy[i, j] == pytest.approx(np.mean(bands) + np.std(bands), rel=1e-12, abs=1e-12)
            bands = [stats.wasserstein_distance(a[:, k], b[:, k]) for k in range(4)]
            assert wasserstein[i, j] == pytest.approx(np.mean(bands) + np.std(bands), rel=1e-12, abs=1e-12)
            apart = a.mean(axis=0) - b.mean(axis=0)
            assert mean[i, j] == pytest.approx(np.linalg.norm(apart), rel=1e-12, abs=1e-12)
            assert largest[i, j] == pytest.approx(np.abs(apart).max(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_order_does_not_matter_to_the_last_bit(metric):
    features, labels = scene("float32", 3)
    expected = class_distances(features, labels, [0, 1, 2, 3], metric)
    flat, codes = features.reshape(-1, 4), labels.reshape(-1)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        order, bands = rng.permutation(len(codes)), rng.permutation(4)
        found = class_distances(flat[order][:, bands], codes[order], [0, 1, 2, 3], metric)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(expected, expected.T)
    assert not expected.diagonal().any()


def test_pieces_join_to_the_whole():
    features, labels = scene()
    index = labels.reshape(-1)
    for metric in METRICS:
        bands = np.stack([band_distances(features[..., k].reshape(-1), index, 5, metric) for k in range(4)])
        np.testing.assert_array_equal(combine_bands(bands, metric), class_distances(features, labels, range(5), metric))


def test_labelled_arrays_and_integers_do_not_wrap():
    features = xr.DataArray(np.array([[0], [65535], [1]], dtype="uint16"), dims=("sample", "band"))
    labels = xr.DataArray(np.array([1, 2, 0], dtype="uint8"), dims="sample")
    assert class_distances(features, labels, [1, 2], "mean")[0, 1] == 65535
    assert class_distances(features, labels, [2, 1], "wasserstein")[0, 1] == 65535


def test_refusals():
    features, labels = scene()
    with pytest.raises(ValueError, match="no labelled sample of class 9"):
        class_distances(features, labels, [1, 9])
    with pytest.raises(ValueError, match="different class codes"):
        class_distances(features, labels, [1, 1])
    with pytest.raises(ValueError, match="features"):
        class_distances(features[:-1], labels, [1, 2])
    with pytest.raises(ValueError, match="unknown metric"):
        class_distances(features, labels, [1, 2], "cosine")
    with pytest.raises(ValueError, match="whole numbers"):
        class_distances(features, labels + 0.4, [1, 2])
    with pytest.raises(TypeError, match="in memory"):
        class_distances(xr.DataArray(features).chunk(), labels, [1, 2])
    broken = features.copy()
    broken[labels == 0] = np.nan  # unlabelled: no harm
    np.testing.assert_array_equal(class_distances(broken, labels, [1, 2]), class_distances(features, labels, [1, 2]))
    broken[labels == 1] = np.nan
    with pytest.raises(ValueError, match=rf"{(labels == 1).sum()} of .* not finite"):
        class_distances(broken, labels, [1, 2])


def test_many_different_values_in_little_memory():
    """More values than are worked at once: SciPy's distances still, in 60 bytes a sample at most."""
    rng = np.random.default_rng(7)
    x, index = rng.normal(size=3 * SEGMENT + 5), rng.integers(0, 4, 3 * SEGMENT + 5)
    x += index
    tracemalloc.start()
    energy = band_distances(x, index, 4, "energy")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * x.size + 4 * 4 * 8 * SEGMENT
    wasserstein = band_distances(x, index, 4, "wasserstein")
    for i in range(4):
        for j in range(4):
            a, b = x[index == i], x[index == j]
            assert energy[i, j] == pytest.approx(stats.energy_distance(a, b) / np.sqrt(2), abs=1e-12)
            assert wasserstein[i, j] == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-12)
