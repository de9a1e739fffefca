"""One function, every kind of array: values, dtypes, kinds, refusals."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import dask_uncert as du
from dask_uncert.formulas import entropies, homophily, simplex_distances, top_probabilities
from dask_uncert.formulas.array_dispatch import normalise, result_dtype, tolerance

H = np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]])
PUBLIC = {
    "geometric": simplex_distances.geometric_uncertainty,
    "renyi": entropies.renyi_entropy,
    "tsallis": entropies.tsallis_entropy,
    "t_entropy": entropies.t_entropy,
    "variance": entropies.binary_variance,
    "max_probability": top_probabilities.max_probability,
    "margin": top_probabilities.margin,
    "confused": entropies.confused_classes,
    "homophily": lambda p, axis=-1: homophily.homophily_uncertainty(p, H, axis=axis),
}


def cube(dtype="float64"):
    return np.random.default_rng(1).dirichlet(np.ones(3), size=(4, 5)).transpose(2, 0, 1).astype(dtype)


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_every_kind_of_array_gives_the_same(name, dtype):
    p, measure = cube(dtype), PUBLIC[name]
    expected = measure(p, axis=0)
    assert expected.shape == (4, 5)
    assert expected.dtype == (np.int64 if name == "confused" else result_dtype(dtype))
    lazy = measure(da.from_array(p, chunks=(1, 2, 5)), axis=0)
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == expected.dtype
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
    labelled = xr.DataArray(p, dims=("class", "y", "x"), coords={"class": list("abc"), "y": np.arange(4)})
    for array in (labelled, labelled.chunk({"class": 1, "x": 2})):
        found = measure(array, axis="class")
        assert isinstance(found, xr.DataArray)
        assert found.dims == ("y", "x")
        assert "class" not in found.coords
        assert (found.chunks is None) == (array.chunks is None)
        np.testing.assert_array_equal(found.compute(scheduler="sync").values, expected)


@pytest.mark.parametrize("name", PUBLIC)
def test_inputs_are_left_alone_and_one_hot_integers_pass(name):
    p = cube()
    p.flags.writeable = False
    PUBLIC[name](p, axis=0)
    hot = np.eye(3, dtype="uint8")
    found = PUBLIC[name](hot)
    assert (found == (1 if name == "confused" else 0)).all()
    assert not np.signbit(found).any()


def test_normalise_repairs_within_the_tolerance():
    thirds = np.full(3, 1 / 3, dtype="float16")
    assert thirds.astype(float).sum() == pytest.approx(0.99976, abs=1e-5)
    np.testing.assert_allclose(normalise(thirds), 1 / 3, rtol=0, atol=1e-16)
    np.testing.assert_array_equal(normalise(np.array([1.0000001, -1e-7], dtype="float32")), [1, 0])
    assert tolerance("float16") == 5e-3
    assert tolerance("int64") == tolerance("float32") == 1e-4


def test_normalise_refuses_what_is_further_off():
    p = np.tile([0.5, 0.5], (2, 3, 1))
    p[1, 2] = [0.2, 0.3]
    p[0, 0] = [1.1, -0.1]
    with pytest.raises(ValueError, match=r"2 of 6 .* from \[0, 1\] 0\.1, .* from 1 is 0\.5, at index \(1, 2\)"):
        normalise(p)
    with pytest.raises(ValueError, match="1 of 1"):
        normalise(np.array([85, 85, 85], dtype="uint8"))
    with pytest.raises(ValueError, match="1 of 1"):
        normalise([np.inf, -np.inf])
    lazy = np.asarray(normalise(da.from_array(p, chunks=2)))
    assert np.isnan(lazy).all(axis=-1).sum() == 2
    assert np.isnan(lazy).any(axis=-1).sum() == 2


def test_a_nan_spreads_over_its_vector_alone():
    p = np.array([[np.nan, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    assert np.isnan(normalise(p)).tolist() == [[True] * 3, [False] * 3]
    for name, measure in PUBLIC.items():
        found = measure(p)
        assert (found[0] == 0) if name == "confused" else np.isnan(found[0])
        assert not np.isnan(found[1])


def test_axes_and_contents_are_checked():
    with pytest.raises(ValueError, match="no named dimensions"):
        entropies.t_entropy([0.5, 0.5], axis="class")
    with pytest.raises(ValueError, match="no dimension 'band'"):
        entropies.t_entropy(xr.DataArray([0.5, 0.5], dims="class"), axis="band")
    with pytest.raises(ValueError, match="at least 2 classes"):
        entropies.t_entropy([[1.0]])
    with pytest.raises(TypeError, match="numbers expected"):
        entropies.t_entropy(np.array(["a", "b"]))
    assert entropies.t_entropy(np.empty((0, 3))).shape == (0,)


POINTWISE = {
    "geometric_uncertainty": partial(du.geometric_uncertainty, distance="renyi", alpha=2.0),
    "homophily_uncertainty": partial(du.homophily_uncertainty, distances=[[0, 1], [1, 0]]),
    "renyi_entropy": partial(du.renyi_entropy, normalised=False),
    "tsallis_entropy": du.tsallis_entropy,
    "t_entropy": du.t_entropy,
    "binary_variance": du.binary_variance,
    "confused_classes": du.confused_classes,
    "mutual_information": lambda p, axis: du.sample_uncertainty(p, "y", axis)["mutual_information"],
    "TP": lambda p, axis: du.soft_weights(p.isel(band=1), p.isel(band=0) > 0.5, 0.5)["TP"],
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", POINTWISE)
def test_a_labelled_result_has_its_own_name_and_attributes(name, lazy):
    p = xr.DataArray([[0.3, 0.7], [0.8, 0.2]], dims=("y", "band"), name="softmax", attrs={"long_name": "softmax"})
    found = POINTWISE[name](p.chunk() if lazy else p, axis="band")
    units = {"renyi_entropy": "nat", "mutual_information": "nat"}.get(name, "1")
    assert (found.name, found.attrs["long_name"], found.attrs["units"]) == (name, name.replace("_", " "), units)
    assert found.attrs.get("alpha") == {"geometric_uncertainty": 2.0, "renyi_entropy": 2.0, "tsallis_entropy": 1.5}.get(
        name
    )
    assert (p.name, p.attrs) == ("softmax", {"long_name": "softmax"})
