"""Maps of prediction sets: the classes whose stored probability reaches a stated threshold."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import dask_uncert as du
from dask_uncert.errors import InputError
from tests.support.arrays import probability_vectors

SHAPE, NAMES = (12, 14), ["a", "b c", "d"]


def scene(dtype="float32"):
    rng = np.random.default_rng(5)
    p = probability_vectors(rng, SHAPE[0] * SHAPE[1], 3).reshape(*SHAPE, 3)
    p[:3] = [0.3, 0.2, 0.5]  # on a threshold
    p[4, 4] = np.nan
    return p.astype(dtype), rng.integers(0, 3, SHAPE)


def drawn(folder, *arguments, **options):
    evaluation = du.evaluate(*arguments, classes=NAMES, maps_store=folder / "maps.zarr", **options)
    return evaluation, read(folder)


def read(folder):
    return xr.open_zarr(folder / "maps.zarr", consolidated=False, mask_and_scale=False).load()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sets_hold_the_classes_that_reach_the_threshold(dtype, tmp_path):
    p, codes = scene(dtype)
    mask = np.arange(p[..., 0].size).reshape(SHAPE) % 3 > 0  # of those that count; maps show all
    sets = {"maps": [0.3, 0.5], "members": True, "coverages": []}
    evaluation, maps = drawn(tmp_path, p, codes, mask=mask, prediction_sets=sets)
    nothing = np.isnan(p).any(axis=-1)
    for q in (0.3, 0.5):
        inside = p >= np.dtype(dtype).type(q)
        size = maps[f"set_size_{q}"]
        assert size.dtype == np.uint16
        np.testing.assert_array_equal(size, np.where(nothing, 65535, inside.sum(axis=-1)))
        for i, label in enumerate(["a", "b_c", "d"]):
            member = maps[f"in_set_{q}_{label}"]
            assert member.dtype == np.uint8
            np.testing.assert_array_equal(member, np.where(nothing, 255, inside[..., i]))
    assert evaluation == du.evaluate(p, codes, mask=mask, classes=NAMES)  # nothing that is counted
    parts = da.from_array(p, chunks=(5, 6, 3))
    _, again = drawn(tmp_path / "again", parts, codes, mask=mask, prediction_sets=sets, engine="reference")
    xr.testing.assert_identical(again.drop_attrs(), maps.drop_attrs())


def test_a_threshold_that_was_chosen_on_one_part_covers_what_was_reported_of_another(tmp_path):
    rng = np.random.default_rng(2)
    p, codes = rng.dirichlet(np.ones(3), SHAPE), rng.integers(0, 3, SHAPE)  # no value on an edge
    zones = np.where(np.arange(SHAPE[0]) < 6, 1, 2)[:, np.newaxis] + np.zeros(SHAPE, int)
    choice = du.choose(du.evaluate(p, codes, classes=NAMES, zones=zones), {"zone": "1"}, by="coverage", wanted=0.8)
    sets = {"maps": choice.threshold, "members": True}
    where = zones == 2
    _, maps = drawn(tmp_path, p, codes, mask=where, prediction_sets=sets)
    labels, q = np.array(["a", "b_c", "d"]), f"{choice.threshold:g}"
    true = sum(np.where(codes == i, maps[f"in_set_{q}_{label}"], 0) for i, label in enumerate(labels))
    assert true[where].mean() == pytest.approx(choice.reported["coverage"], abs=1e-12)
    assert maps[f"set_size_{q}"].values[where].mean() == pytest.approx(choice.reported["mean_size"], abs=1e-12)


def test_binary_predictions_without_a_class_axis_and_scaled_integers(tmp_path):
    rng = np.random.default_rng(1)
    second = rng.integers(0, 101, SHAPE).astype("uint8")
    given = du.Input(second, dims=["y", "x"], scale=0.01)
    sets = {"prediction_sets": {"maps": 0.3}, "maps_store": tmp_path / "maps.zarr"}
    du.evaluate(given, (second > 50).astype(int), classes=["no", "yes"], **sets)
    maps = read(tmp_path)
    inside = (second >= 30).astype(int) + (100 - second.astype(int) >= 30)
    np.testing.assert_array_equal(maps["set_size_0.3"], inside)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"members": True}, "`members: true` needs thresholds in `maps`"),
        ({"maps": [0.2, 0.2000000001]}, "two maps have the same threshold"),
        ({"maps": [1.2]}, "less than 1"),
        ({"coverages": []}, "neither a coverage nor a missed share nor a map"),
    ],
)
def test_refusals_say_what_is_wrong(sets, message, tmp_path):
    with pytest.raises(InputError, match=message):
        drawn(tmp_path, *scene(), prediction_sets=sets)
