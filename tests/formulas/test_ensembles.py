"""Uncertainty of samples: against plain formulas, identities, kinds."""

import math

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dask_uncert.formulas.ensembles import sample_uncertainty


def drawn(seed=0, shape=(7, 4, 5), classes=6):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.4), size=shape)


def test_agrees_with_scipy_and_adds_up():
    p = drawn()
    found = sample_uncertainty(p)
    mean = p.mean(axis=0)
    np.testing.assert_allclose(found["mean"], mean, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found["predictive_entropy"], stats.entropy(mean, axis=-1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["expected_entropy"], stats.entropy(p, axis=-1).mean(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        found["mutual_information"],
        found["predictive_entropy"] - found["expected_entropy"],
        rtol=0,
        atol=1e-12,
    )
    np.testing.assert_allclose(found["variance"], p.var(axis=0), rtol=0, atol=1e-15)
    votes = np.moveaxis(p.argmax(axis=-1), 0, -1)
    share = [[np.bincount(v).max() / 7 for v in row] for row in votes]
    np.testing.assert_allclose(found["variation_ratio"], 1 - np.array(share), rtol=0, atol=1e-15)
    scaled = sample_uncertainty(p, normalised=True)
    for name in ("predictive_entropy", "expected_entropy", "mutual_information"):
        np.testing.assert_allclose(scaled[name], found[name] / math.log(6), rtol=0, atol=1e-15)
    single = sample_uncertainty(p.astype("float32"))
    for name, values in found.items():
        assert single[name].dtype == np.float32
        np.testing.assert_allclose(single[name], values, rtol=0, atol=2e-6)


def test_ties_and_agreement():
    found = sample_uncertainty([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    assert found["variation_ratio"] == pytest.approx(1 / 3)
    same = sample_uncertainty(np.tile(drawn(shape=(1, 9)), (3, 1, 1)))
    assert (same["mutual_information"] >= 0).all()
    assert (same["mutual_information"] < 1e-15).all()
    hot = sample_uncertainty(np.eye(3, dtype="uint8")[[0, 0]])
    assert [float(hot[name]) for name in ("predictive_entropy", "expected_entropy", "mutual_information")] == [0, 0, 0]
    assert not np.signbit(hot["mutual_information"])


@settings(max_examples=25, deadline=None)
@given(p=hnp.arrays("float64", st.tuples(st.integers(1, 4), st.integers(2, 5)), elements=st.floats(0, 1)))
def test_ranges_for_any_floats(p):
    p[:, 0] += p.sum(axis=-1) == 0
    p = p / p.sum(axis=-1, keepdims=True)
    found = sample_uncertainty(p)
    for name in ("predictive_entropy", "expected_entropy", "mutual_information"):
        assert 0 <= found[name] <= math.log(p.shape[1])
    assert 0 <= found["variation_ratio"] < 1
    assert (found["variance"] >= 0).all()


@pytest.mark.parametrize("axes", [(0, 1, 2, 3), (3, 1, 2, 0), (1, 3, 0, 2)])
def test_kinds_and_axes(axes):
    p = drawn().transpose(axes)
    across, along = axes.index(0), axes.index(3)
    expected = sample_uncertainty(drawn())
    names = [("sample", "y", "x", "class")[axis] for axis in axes]
    labelled = xr.DataArray(p, dims=names)
    for array in (p, da.from_array(p, chunks=3), labelled, labelled.chunk(3)):
        named = isinstance(array, xr.DataArray)
        found = sample_uncertainty(array, *(("sample", "class") if named else (across, along)))
        for name, values in found.items():
            assert isinstance(values, type(array))
            want = expected[name]
            if name in ("mean", "variance"):
                kept = [axis for axis in axes if axis != 0]
                want = want.transpose([[1, 2, 3].index(axis) for axis in kept])
                assert not named or values.dims == tuple(n for n in names if n != "sample")
            elif axes.index(1) > axes.index(2):
                want = want.T
            np.testing.assert_allclose(np.asarray(values), want, rtol=0, atol=1e-14)


def test_nan_and_refusals():
    p = drawn()
    p[2, 1, 1, 0] = np.nan
    for values in sample_uncertainty(p).values():
        place = np.isnan(values)
        assert place[1, 1].all()
        assert place.sum() == place[1, 1].size
    with pytest.raises(ValueError, match="the same, number 1"):
        sample_uncertainty(drawn()[:, 0, 0], 1, -1)
    with pytest.raises(ValueError, match="tolerance"):
        sample_uncertainty(2 * drawn())
