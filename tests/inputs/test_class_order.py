"""A class axis that says its own order is read in the order of the class table, through every way in."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import rasterio
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.inputs.class_order import in_order
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.lazy_array import Reordered
from dask_uncert.io.open import open_stored
from dask_uncert.jobs.cohort.plan import plan_cohort
from dask_uncert.jobs.load import plan_job, read_job
from tests.io.readers.test_envi import write as write_envi

TABLE = {1: "wheat", 2: "maize", 3: "grass"}
CODES, NAMES = [3, 1, 2], ["grass", "wheat", "maize"]
TRUTH = np.array([[1, 2, 3, 3], [2, 1, 1, 2]], "u1")
P = 0.8 * (TRUTH[..., np.newaxis] == CODES) + 0.1 * (TRUTH[..., np.newaxis] != CODES)  # every decision is right
ORDERS = {"codes": CODES, "names": NAMES, "codes as text": [str(code) for code in CODES]}


def labelled(labels, p=P, dims=("y", "x", "class")):
    return xr.DataArray(p, dims=dims, coords={dims[-1]: labels}, name="p")


def accuracy(p, reference=TRUTH, **words):
    return du.accuracy(du.evaluate(p, reference, classes=TABLE, **words))


@pytest.mark.parametrize("labels", ORDERS.values(), ids=ORDERS)
def test_a_coordinate_in_python(labels):
    p = labelled(labels)
    assert (
        accuracy(p) == accuracy(p.chunk(y=1)) == accuracy(labelled(labels, dims=("y", "x", "kind")), axis="kind") == 1
    )
    assert accuracy(du.Input(labelled(labels, dims=("a", "b", "c")), dims=["y", "x", "class"])) == 1
    assert accuracy(p.transpose("class", "y", "x"), xr.DataArray(TRUTH, dims=("y", "x"))) == 1
    shares = labelled(labels, (P > 0.5).astype(float))
    assert accuracy(p, shares) == accuracy(du.Input(P[..., [1, 2, 0]], dims=p.dims), shares) == 1
    stack = xr.concat([p, p], "sample")
    assert du.accuracy(du.evaluate(reference=TRUTH, samples=stack, classes=TABLE)) == 1
    plain = P[..., [1, 2, 0]]  # members of an ensemble, each in its own order
    members = [p, labelled(["wheat", "maize", "grass"], plain), labelled([2, 3, 1], plain[..., [1, 2, 0]]), plain]
    assert du.evaluate(reference=TRUTH, samples=members, classes=TABLE) == du.evaluate(
        reference=TRUTH, samples=[plain] * 4, classes=TABLE
    )


def stores(folder, labels):
    """The prediction with these labels in every format that has a place for them, as inputs of a job."""
    ds, texts = labelled(labels).to_dataset(), [*map(str, labels)]
    for version in (2, 3):
        ds.to_zarr(folder / f"p{version}.zarr", zarr_format=version, consolidated=False)
        yield {"store": f"p{version}.zarr", "array": "p"}
    ds.to_netcdf(folder / "p.nc", engine="h5netcdf")
    yield {"store": "p.nc", "array": "p"}
    ds.to_netcdf(folder / "p3.nc", engine="scipy")  # text as characters along another dimension
    yield {"store": "p3.nc", "array": "p"}
    with rasterio.open(folder / "p.tif", "w", "GTiff", 4, 2, 3, dtype="float64") as file:
        file.write(np.moveaxis(P, -1, 0))
        file.descriptions = texts
    yield {"store": "p.tif", "dims": ["class", "y", "x"]}
    write_envi(folder, P, more=f"band names = {{{', '.join(texts)}}}", name="p")
    yield {"store": "p.hdr", "dims": ["y", "x", "class"]}
    for version, key in (("0.4", None), ("0.5", "ome")):
        image = {
            "multiscales": [{
                "version": version,
                "axes": [{"name": "c", "type": "channel"}, *({"name": n, "type": "space"} for n in "yx")],
                "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 1]}]}],
            }],
            "omero": {"channels": [{"label": text} for text in texts]},
        }  # fmt: skip
        place = folder / f"p{version}.ome.zarr"
        group = zarr.open_group(place, mode="w", zarr_format=3 if key else 2, attributes={key: image} if key else image)
        group.create_array("0", data=np.moveaxis(P, -1, 0))
        yield {"store": place.name, "dims": ["class", "y", "x"]}


UNSTABLE = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")  # of text, which xarray writes


@UNSTABLE
@pytest.mark.parametrize("labels", ORDERS.values(), ids=ORDERS)
def test_labels_in_every_format(tmp_path, labels):
    np.save(tmp_path / "y.npy", TRUTH)
    reference = {"store": "y.npy", "dims": ["y", "x"]}
    for options in stores(tmp_path, labels):
        inputs = {"probabilities": options, "reference": reference}
        keys = {"version": 1, "kind": "scene", "inputs": inputs, "classes": TABLE, "output": "out"}
        job, _ = read_job(keys)
        assert du.accuracy(plan_job(job, tmp_path).compute_here()) == 1, options
    shutil.copytree(tmp_path / "p3.zarr", tmp_path / "lost.zarr")
    shutil.rmtree(tmp_path / "lost.zarr" / "class" / "c")
    with pytest.raises(InputError, match=r"class, the labels of .*lost.zarr:p, lacks a chunk"):
        accuracy(du.Input(tmp_path / "lost.zarr", array="p"))
    stored = open_stored(str(tmp_path / "p3.zarr"), "p", "p")
    before = stored.fingerprint()
    zarr.open_group(tmp_path / "p3.zarr")["class"].attrs["written"] = "again"
    assert stored.fingerprint() != before
    for version in (2, 3):
        array = zarr.open_group(tmp_path / f"p{version}.zarr", mode="r")["p"]
        assert accuracy(array) == 1


def test_an_array_beside_no_labels(tmp_path):
    store = tmp_path / "p.zarr"
    zarr.create_array(store / "p", data=P[..., [1, 2, 0]], dimension_names=["y", "x", "class"])  # in no group
    p, reference = du.Input(store, array="p"), du.Input(TRUTH, dims=["y", "x"])
    assert accuracy(p, reference) == 1
    (store / "class").mkdir()
    assert accuracy(p, reference) == 1


@UNSTABLE
def test_a_copy_keeps_the_labels(tmp_path):
    for number, options in enumerate(stores(tmp_path, NAMES)):
        goal = tmp_path / f"copy{number}.zarr"
        array, dims = options.get("array", ""), options.get("dims")
        du.convert(tmp_path / options["store"], goal, array=array, dims=dims, name="q")
        assert accuracy(du.Input(goal, array="q"), du.Input(TRUTH, dims=["y", "x"])) == 1, options


def test_members_and_raters_of_a_case_each_in_its_own_order(tmp_path):
    plain, dims = P[..., [1, 2, 0]], ["y", "x", "class"]
    orders = {"a": (CODES, P, "h5netcdf"), "b": (["maize", "wheat", "grass"], plain[..., [1, 0, 2]], "scipy")}
    for name, (labels, p, engine) in orders.items():
        both = xr.Dataset({"p": labelled(labels, p), "shares": labelled(labels, (p > 0.5).astype(float))})
        both.to_netcdf(tmp_path / f"{name}.nc", engine=engine)
    (tmp_path / "cases.csv").write_text("patient,first,second,one,two\nA,a.nc,b.nc,b.nc,a.nc\n")
    job, _ = read_job({
        "version": 1, "kind": "cohort", "manifest": "cases.csv", "classes": TABLE, "output": "out",
        "inputs": {
            "samples": {"array": "p", "dims": dims, "members": ["first", "second"]},
            "reference": {"array": "shares", "dims": dims, "raters": ["one", "two"]},
        },
    })  # fmt: skip
    plan = plan_cohort(job, tmp_path)
    (row,) = plan.rows
    (pass_,) = plan.evaluate.plans(plan.evaluate.open(row)).values()
    shares = labelled(list(TABLE), (plain > 0.5).astype(float))
    same = du.evaluate(reference=shares, samples=[labelled(list(TABLE), plain)] * 2, classes=TABLE)
    assert pass_.compute_here().decisions == same.decisions
    assert du.accuracy(same) == 1


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2], [1, 2, 3], ["0", "1", "2"], ["a", "b", "c"], ["Band 1", "Band 2", "Band 3"], ["wheat", "x", "grass"],
        ["p", "p", "p"], ["", "", ""], [0.1, 0.2, 0.3], [10, 20, 30],
    ],
)  # fmt: skip
def test_labels_that_say_nothing_change_nothing(labels):
    plain = P[..., [1, 2, 0]]
    assert accuracy(labelled(labels, plain)) == 1
    zero_based = du.evaluate(labelled([1, 2, 3], plain), TRUTH - 1, classes=["wheat", "maize", "grass"])
    assert du.accuracy(zero_based) == du.accuracy(du.evaluate(labelled(labels, plain), TRUTH - 1)) == 1


@pytest.mark.parametrize(
    ("labels", "table", "said"),
    [
        ([1, 2, 3], {3: "a", 1: "b", 2: "c"}, "or may only count"),
        ([0, 1, 2], {2: "a", 0: "b", 1: "c"}, "or may only count"),
        ([2, 3, 4], TABLE, "some are classes of the table in other places"),
        (["grass", "wheat", "other"], TABLE, "some are classes of the table in other places"),
        (["wheat", "wheat", "grass"], TABLE, "some are classes of the table in other places"),
        ([2, 1, 5], None, "some are classes of the table in other places"),
    ],
)
def test_labels_that_contradict_the_table_are_refused(labels, table, said):
    with pytest.raises(InputError, match=f"probabilities: the class axis of .* is labelled {labels[0]}, .*{said}"):
        du.evaluate(labelled(labels), TRUTH, classes=table)


@given(st.permutations(range(5)), st.permutations(range(5)), st.booleans(), st.data())
def test_any_order_of_any_table(axis_order, table_order, by_name, data):
    table = [(7 * code + 2, f"class {code}") for code in table_order]
    values = np.arange(30).reshape(2, 5, 3)  # what stands at index i of the axis belongs to class axis_order[i]
    labels = tuple(f" Class {code}" if by_name else 7.0 * code + 2 for code in axis_order)
    cube = in_order(Cube("p", values, ("y", "class", "x"), class_labels=labels), table)
    expected = values[:, [axis_order.index(code) for code in table_order]]
    part = slice(*sorted(data.draw(st.tuples(*[st.integers(0, 5)] * 2))))
    assert np.array_equal(cube.data[:, part], expected[:, part])
    assert (cube.data is values) == (axis_order == table_order)
    assert np.array_equal(Reordered(values, 0, [1, 0])[..., 1], values[::-1][..., 1])
