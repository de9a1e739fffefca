"""Masked arrays of every kind: what is masked has no value, whatever number lies behind the mask."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import dask_uncert as du

ROWS = np.zeros((10, 10), bool)
ROWS[:3] = True
Y = np.random.default_rng(0).integers(0, 3, (10, 10)).astype("u1")
P = np.eye(3)[Y]
WRONG = np.where(ROWS, 0, Y).astype("u1")  # 0 behind the mask


def behind(values, number=0):
    """Masked in the first three rows, with another number there."""
    values = np.array(values)
    values[:3] = number
    mask = ROWS.reshape(10, 10, *[1] * (values.ndim - 2))
    return np.ma.masked_array(values, np.broadcast_to(mask, values.shape).copy())


def chunked(values):
    return da.from_array(values, chunks=(4, 5, *values.shape[2:]), asarray=False)


def labelled(values):
    return xr.DataArray(values, dims=("y", "x", "class")[: values.ndim])


KINDS = {"numpy": lambda v: v, "dask": chunked, "xarray": labelled, "xarray of dask": lambda v: labelled(chunked(v))}


@pytest.mark.parametrize("kind", KINDS)
def test_masked_pixels_do_not_count(kind):
    """numpy#26669: 70 of 100 count, with accuracy 1."""
    given = KINDS[kind]
    nan = "nan" if "xarray" in kind else "nodata"  # xarray makes NaN of what is masked
    one = behind(P)
    one.mask = False
    one[:3, :, 1] = np.ma.masked  # one class of three
    ones = np.ones((10, 10))
    for name, values in (
        ("reference", behind(Y)), ("probabilities", behind(P)), ("probabilities", one), ("samples", behind(P)),
        ("uncertainty", behind(ones, -5)), ("weight", behind(ones, -5)), ("mask", behind(ones.astype("u1"))),
    ):  # fmt: skip
        if "xarray" in kind and name == "mask":
            continue  # xarray itself makes floats of it, which are no mask
        inputs = {"probabilities": P, "reference": Y, name: values}
        inputs = {n: given(v) if n == name or "xarray" in kind else v for n, v in inputs.items()}
        inputs["samples"] = [given(P), inputs["samples"]] if name == "samples" else None
        e = du.evaluate(**inputs)
        assert e.ledger.reasons() == {"masked": 0, "ignored": 0, f"{name}_{nan}": 30}, name
        assert (int(e.ledger.counted), du.accuracy(e)) == (70, 1), name


def test_masked_features_are_left_out_of_class_distances():
    rng = np.random.default_rng(1)
    f = rng.normal(size=(10, 10, 2)) + Y[..., None]
    options = {"measures": ["homophily"], "class_distances": {"metric": "energy"}}
    wanted = du.evaluate(P, np.where(ROWS, 9, Y), features=f, ignore=[9], **options).measures["homophily"].measure
    for values in (behind(f, 1e6), chunked(behind(f, 1e6))):
        assert du.evaluate(P, Y, features=values, **options).measures["homophily"].measure == wanted
    as_int = np.rint(8 * f).astype("i2")
    wanted = du.evaluate(P, np.where(ROWS, 9, Y), features=as_int, ignore=[9], **options).measures["homophily"].measure
    assert du.evaluate(P, Y, features=behind(as_int), **options).measures["homophily"].measure == wanted


@pytest.mark.parametrize("name", ["mean", "reference", "variance", "mask"])
@pytest.mark.parametrize("given", [lambda v: v, chunked])
def test_masked_pixels_of_a_regression(name, given):
    inputs = {
        "mean": np.zeros((10, 10)),
        "reference": np.ones((10, 10)),
        "variance": np.ones((10, 10)),
        "mask": ~np.zeros_like(ROWS),
    }
    inputs[name] = given(behind(inputs[name], 0))
    e = du.evaluate_regression(**inputs)
    assert e.ledger.reasons() == {"masked": 0, "ignored": 0, f"{name}_nodata": 30}


@pytest.mark.parametrize("given", KINDS.values())
def test_pointwise_functions_give_nan(given):
    inputs = given(behind(np.full((10, 10, 3), [0.2, 0.3, 0.5])))
    for function in (du.renyi_entropy, du.binary_variance, du.geometric_uncertainty, du.t_entropy):
        assert np.array_equal(np.isnan(np.asarray(function(inputs))), ROWS), function
    c = given(behind(np.ones((10, 10))))
    weights = du.soft_weights(given(np.ma.masked_array(np.full((10, 10), 0.7))), c, 0.5)
    assert np.array_equal(np.isnan(np.asarray(weights["TP"])), ROWS)


def test_chunks_that_are_masked_though_the_dask_array_does_not_say_so():
    hidden = da.from_array(WRONG, chunks=5).map_blocks(
        lambda chunk: np.ma.masked_equal(chunk, 0), dtype="u1", meta=np.empty((0, 0), "u1")
    )
    with pytest.raises(du.InputError, match=r"^reference: a chunk of the dask array is a masked array"):
        du.evaluate(P, hidden)
    said = hidden.map_blocks(np.ma.asarray, meta=np.ma.masked_array([], dtype="u1"))
    assert int(du.evaluate(P, said).ledger.counted) == np.count_nonzero(WRONG)
