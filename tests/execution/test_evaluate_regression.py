"""A regression evaluated through Python: right numbers, the same bits for every cut, clear refusals."""

import runpy

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dask_uncert.blocks import regression
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate_regression import evaluate_regression
from dask_uncert.formulas import calibration
from dask_uncert.formulas.residuals import nssr_of_covariances
from dask_uncert.io.summary_store import load, save
from dask_uncert.summaries.regression import (
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
    regression_side,
)
from tests.support import ROOT
from tests.support.unreadable import Unreadable

SHAPE = (13, 9)


def scene(outputs=3, kind="covariance", seed=0, shape=SHAPE, factor=1.0, dtype="float64"):
    """Calibrated Gaussian draws with some pixels left out; `factor` scales the stated sigma."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(*shape, outputs))
    half = rng.normal(size=(*shape, outputs, outputs)) + 2 * np.eye(outputs)
    covariance = half @ np.swapaxes(half, -1, -2)
    if kind == "variance":
        variance = np.einsum("...ii->...i", covariance).copy()
        half = np.sqrt(variance)[..., np.newaxis] * np.eye(outputs)
        covariance = variance
    reference = mean + (half @ rng.normal(size=(*shape, outputs, 1)))[..., 0]
    mean[1, 2, 0] = reference[0, 3, -1] = covariance[2, 4, 0] = np.nan
    reference[5, 5] = np.inf
    return {
        "mean": mean.astype(dtype),
        "reference": reference.astype(dtype),
        kind: (covariance * factor**2).astype(dtype),
        "mask": rng.random(shape) < 0.8,
    }


def plain(arrays, outputs):
    """Predicted probabilities of the counted pixels in plain float64 numpy, one matrix after the other."""
    found = []
    for at in np.ndindex(arrays["mean"].shape[: arrays["mask"].ndim]):
        mean, y, spread = (np.asarray(arrays[k][at], np.float64) for k in list(arrays)[:3])
        if arrays["mask"][at] and not any(np.isnan(v).any() for v in (mean, y, spread)):
            matrix = spread if "covariance" in arrays else np.diag(np.atleast_1d(spread))
            r = np.atleast_1d(y - mean)
            nssr = float(r @ np.linalg.solve(matrix, r)) if np.isfinite(r).all() else np.inf
            found.append(chi2.cdf(nssr, outputs))
    return np.array(found)


@pytest.mark.parametrize("kind", ["variance", "covariance"])
@pytest.mark.parametrize("outputs", [1, 2, 3, 8])
def test_against_scipy_and_plain_numpy(kind, outputs, tmp_path):
    arrays = scene(outputs, kind)
    found = evaluate_regression(
        **arrays, output_axis=-1, maps=["predicted_probability"], maps_store=tmp_path / "maps.zarr"
    )
    wanted = plain(arrays, outputs)
    assert int(found.ledger.counted) == wanted.size
    assert int(found.ledger.excluded.sum()) == np.prod(SHAPE) - wanted.size
    assert int(found.not_finite) == (wanted == 1).sum()
    assert found.histogram[-1] >= int(found.not_finite)
    assert regression_area(found) == pytest.approx(1 - wanted.mean(), abs=1e-12)
    predicted, observed = regression_curve(found)
    np.testing.assert_allclose(observed[1:], [(wanted <= p).mean() for p in predicted[1:]], atol=1e-12)
    distance = calibration.calibration_distance(predicted, observed)
    assert regression_distance(found) == pytest.approx(float(distance), abs=1e-15)
    for level, share in regression_coverage(found).items():
        assert share == (wanted <= level).mean()
    shown = xr.open_zarr(tmp_path / "maps.zarr", consolidated=False)["predicted_probability"].values
    assert np.isnan(shown).sum() == 3
    np.testing.assert_allclose(np.sort(shown[arrays["mask"] & ~np.isnan(shown)]), np.sort(wanted), atol=1e-7)


@given(seed=st.integers(0, 2**32 - 1), outputs=st.integers(1, 8))
def test_own_cholesky_is_the_linear_solve(seed, outputs):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(5, outputs, outputs)) + 3 * np.eye(outputs)
    covariance, residual = half @ np.swapaxes(half, 1, 2), rng.normal(size=(5, outputs))
    nssr, least = nssr_of_covariances(residual.T, np.moveaxis(covariance, 0, -1))
    wanted = (residual * np.linalg.solve(covariance, residual[..., np.newaxis])[..., 0]).sum(axis=1)
    np.testing.assert_allclose(nssr, wanted, rtol=1e-12 * np.linalg.cond(covariance).max())
    assert (least > 0).all()
    alone, _ = nssr_of_covariances(residual[2:3].T, np.moveaxis(covariance[2:3], 0, -1))
    assert alone[0] == nssr[2]
    least_eigenvalues = np.linalg.eigvalsh(covariance - 4 * np.eye(outputs))[:, 0]
    _, least = nssr_of_covariances(residual.T, np.moveaxis(covariance - 4 * np.eye(outputs), 0, -1))
    clear = np.abs(least_eigenvalues) > 1e-9
    assert ((least > 0) == (least_eigenvalues > 0))[clear].all()


@pytest.mark.parametrize(("factor", "side"), [(1.0, None), (2.0, "underconfident"), (0.5, "overconfident")], ids=str)
@pytest.mark.parametrize("outputs", [1, 3])
def test_calibrated_and_not(factor, side, outputs):
    arrays = scene(outputs, "variance", seed=5, shape=(300, 200), factor=factor)
    found = evaluate_regression(**arrays, output_axis=-1)
    error = 1 / np.sqrt(12 * int(found.ledger.counted))
    off = regression_area(found) - 0.5
    if side is None:
        assert abs(off) < 4 * error
        assert regression_distance(found) < 1e-4
        for level, share in regression_coverage(found).items():
            assert abs(share - level) < 5 * np.sqrt(level * (1 - level) / int(found.ledger.counted))
    else:
        assert regression_side(found) == side
        assert abs(off) > 0.1
        predicted, observed = regression_curve(found)
        inside = (observed - predicted)[20:-20]
        assert (inside > 0).all() if side == "underconfident" else (inside < 0).all()


def test_covariance_and_variance_of_the_same_say_the_same():
    arrays = scene(2, "variance")
    covariance = arrays["variance"][..., np.newaxis] * np.eye(2)
    covariance[np.isnan(covariance)] = np.nan
    one = evaluate_regression(**arrays, output_axis=-1)
    arrays["covariance"] = covariance
    del arrays["variance"]
    other = evaluate_regression(**arrays, output_axis=-1)
    assert one.ledger == other.ledger
    assert regression_area(one) == pytest.approx(regression_area(other), abs=1e-13)


@pytest.fixture(scope="module")
def whole():
    return evaluate_regression(**scene(dtype="float32"), output_axis=-1)


@settings(max_examples=5, deadline=None)
@given(
    block=st.tuples(st.integers(2, 13), st.integers(1, 9)),
    chunks=st.tuples(st.integers(2, 13), st.integers(2, 9), st.integers(1, 3)),
    split_every=st.integers(2, 20),
    step=st.integers(1, 200),
)
def test_same_bits_for_every_cut(whole, block, chunks, split_every, step):
    arrays = scene(dtype="float32")
    inputs = {k: da.from_array(v, chunks=(*chunks, 3)[: v.ndim]) for k, v in arrays.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "STEP", step)
        found = evaluate_regression(**inputs, output_axis=-1, block=block, split_every=split_every)
    assert found == whole


@settings(max_examples=5, deadline=None)
@given(cut=st.integers(1, 12))
def test_parts_add_up_to_the_whole(whole, cut):
    arrays = scene(dtype="float32")
    upper, lower = (
        evaluate_regression(**{k: v[part] for k, v in arrays.items()}, output_axis=-1)
        for part in (slice(cut), slice(cut, None))
    )
    assert upper + lower == whole
    assert whole - lower == upper


def test_every_kind_of_array_gives_the_same(whole, tmp_path):
    arrays = scene(dtype="float32")
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    stored = {k: group.create_array(k, data=v, chunks=(4, 5, 3, 3)[: v.ndim]) for k, v in arrays.items()}
    assert evaluate_regression(**stored, output_axis=-1) == whole
    names = ("y", "x", "kind", "other")
    labelled = {k: xr.DataArray(v, dims=names[: v.ndim]) for k, v in arrays.items()}
    labelled["reference"] = labelled["reference"].transpose("kind", "x", "y")
    labelled["covariance"] = labelled["covariance"].transpose("other", "y", "kind", "x")
    assert evaluate_regression(**labelled, output_axis="kind") == whole
    named = {k: v.rename({d: n for d, n in (("kind", "output"), ("other", "output2")) if d in v.dims})
             for k, v in labelled.items()}  # fmt: skip
    assert evaluate_regression(**named) == whole
    first = {k: np.moveaxis(v, 2, 0) if k in ("mean", "reference") else v for k, v in arrays.items()}
    assert evaluate_regression(**first, output_axis=0) == whole
    big = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in arrays.items()}
    assert evaluate_regression(**big, output_axis=-1) == whole
    save(whole, tmp_path / "one.zarr")
    assert load(tmp_path / "one.zarr") == whole


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_one_output_needs_no_output_dimension(dtype):
    arrays = scene(1, "variance", dtype=dtype)
    flat = {k: v[..., 0] if v.ndim == 3 else v for k, v in arrays.items()}
    found = evaluate_regression(**flat)
    assert found == evaluate_regression(**arrays, output_axis=-1)
    wanted = plain(flat, 1)
    assert regression_area(found) == pytest.approx(1 - wanted.mean(), abs=1e-12)
    arrays = {**flat, "covariance": flat["variance"][..., np.newaxis, np.newaxis]}
    del arrays["variance"]
    assert evaluate_regression(**arrays).ledger == found.ledger


def test_inputs_are_left_alone():
    for kind in ("variance", "covariance"):
        arrays = scene(kind=kind)
        before = {name: values.copy() for name, values in arrays.items()}
        for values in arrays.values():
            values.setflags(write=False)
        evaluate_regression(**arrays, output_axis=-1)
        assert all(np.array_equal(arrays[k], before[k], equal_nan=k != "mask") for k in arrays)


def test_nothing_is_read_before_compute(whole):
    mean, reference, variance = (
        da.from_array(Unreadable((64, 64)), chunks=(8, 8), meta=np.empty((0, 0), "float32")) for _ in range(3)
    )
    lazy = evaluate_regression(mean, reference, variance=variance, compute=False)
    with pytest.raises(AssertionError, match="read"):
        lazy.compute(scheduler="synchronous")
    assert evaluate_regression(**scene(dtype="float32"), output_axis=-1, compute=False).compute() == whole


def test_reasons_in_their_order_and_infinities():
    nan, inf = np.nan, np.inf
    found = evaluate_regression(
        np.array([0, nan, 0, nan, 0, inf, 0, inf]),
        np.array([0, 0, nan, nan, nan, 1, 1, inf]),
        variance=np.array([nan, 1, 1, nan, 1, 1, inf, 1]),
        mask=np.array([1, 1, 1, 1, 0, 1, 1, 1]),
    )
    reasons = {name: n for name, n in found.ledger.reasons().items() if n}
    assert reasons == {"masked": 1, "reference_nan": 2, "mean_nan": 1, "variance_nan": 1}
    assert int(found.ledger.counted) == 3
    assert int(found.not_finite) == 2
    assert found.histogram[-1] == 2
    assert found.histogram[0] == 1  # an infinite variance expects anything


REFUSALS = [
    ({"covariance": None}, "either `variance` or `covariance`, found neither"),
    ({"variance": np.ones((*SHAPE, 3))}, "found both"),
    ({"reference": np.ones(SHAPE)}, "reference: .* has output = 9, but the mean has 3 outputs"),
    ({"reference": np.ones((*SHAPE, 2))}, "reference: .* output = 2, but the mean has 3 outputs"),
    ({"reference": np.ones((9, 13, 3))}, "dim_0 = 9, but `mean` has dim_0 = 13"),
    ({"covariance": np.ones((*SHAPE, 3, 2))}, "output2 = 2"),
    ({"covariance": None, "variance": np.ones((*SHAPE, 1))}, "output = 1"),
    ({"mean": np.ones((*SHAPE, 9))}, "9 outputs; expected 1 to 8"),
    ({"mean": np.ones((*SHAPE, 3), complex)}, "complex128; expected real numbers"),
    ({"mask": np.ones(SHAPE)}, "true and false"),
    ({"mask": np.ones((*SHAPE, 3))}, "mask"),
    ({"maps": ["nssr"]}, "maps_store"),
    (
        {"maps": ["nsr"], "maps_store": "nowhere"},
        "maps.* should be 'nssr' or 'predicted_probability', found 'nsr'",
    ),
    ({"output_axis": 3}, "out of range"),
    ({"output_axis": "kind"}, "no dimension 'kind'"),
    ({"block": (0, 3)}, "positive sizes"),
    ({"split_every": 1}, "split_every. should be greater than or equal to 2"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS, ids=[m[:30] for _, m in REFUSALS])
def test_refusals_say_what_to_do(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        evaluate_regression(**{**scene(), "output_axis": -1, **changes})
    assert "\n" not in str(caught.value)


@settings(max_examples=5, deadline=None)
@given(block=st.tuples(st.integers(2, 13), st.integers(2, 9)))
def test_unusable_uncertainty_is_said_whole_for_every_cut(block):
    arrays = scene(kind="variance")
    arrays["mask"][...] = True
    arrays["mask"][0, 0] = False
    arrays["variance"][[0, 4, 11], [0, 7, 1], 1] = (-9.0, 0.0, -0.25)
    message = r"variance: .* holds 2 counted pixels whose variance is not positive: the least value is -0\.25; "
    with pytest.raises(InputError, match=message + r"the first at dim_0 = 4, dim_1 = 7\. ") as caught:
        evaluate_regression(**arrays, output_axis=-1, block=block)
    assert "\n" not in str(caught.value)
    arrays = scene()
    arrays["mask"][...] = True
    arrays["covariance"][3, 8] = np.diag([1.0, -2.0, 3.0])
    arrays["covariance"][6, 0] = np.ones((3, 3))
    arrays["covariance"][9, 2, 0, 1] += 0.5
    message = r"holds 3 counted pixels whose covariance is .*: 1 are not symmetric, the least pivot is -2; "
    with pytest.raises(InputError, match=message + r"the first at dim_0 = 3, dim_1 = 8\."):
        evaluate_regression(**arrays, output_axis=-1, block=block)


def test_rounding_of_the_storage_is_no_asymmetry():
    arrays = scene(dtype="float32")
    arrays["covariance"][7, 7, 0, 1] = np.nextafter(arrays["covariance"][7, 7, 0, 1], np.float32(99))
    assert int(evaluate_regression(**arrays, output_axis=-1).ledger.counted) > 50


def test_maps_hold_every_pixel_with_both_numbers(tmp_path):
    arrays = scene(kind="variance")
    arrays["variance"][8, 3] = -1.0
    arrays["mask"][8, 3] = False
    shown = []
    for block in (SHAPE, (3, 2)):
        evaluate_regression(
            **arrays, output_axis=-1, maps=["nssr", "predicted_probability"],
            maps_store=tmp_path / "maps.zarr", block=block,
        )  # fmt: skip
        shown.append(xr.open_zarr(tmp_path / "maps.zarr", consolidated=False).load())
    xr.testing.assert_identical(*shown)
    found = shown[0]["nssr"].values
    wanted = np.square(arrays["reference"] - arrays["mean"])
    wanted = (wanted / np.where(arrays["variance"] > 0, arrays["variance"], np.nan)).sum(axis=-1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found[5, 5] == np.inf
    np.testing.assert_allclose(shown[0]["predicted_probability"].values, chi2.cdf(wanted, 3), atol=1e-7)


def test_the_example_says_which_is_which(capsys):
    main = runpy.run_path(str(ROOT / "examples" / "jospin_regression.py"))["main"]
    main.__globals__.update(SHAPE=(60, 60, 2), CHUNKS=(30, 60, 2))
    main()
    lines = capsys.readouterr().out.splitlines()
    assert "sigma x 0.5: overconfident" in lines[1]
    assert "sigma x 2: underconfident" in lines[2]
