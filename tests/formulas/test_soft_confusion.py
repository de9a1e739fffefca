"""Soft weights: the published table, distributions against SciPy, thresholds in the data's dtype."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from scipy import stats
from sklearn import metrics as sk

from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.soft_confusion import CELLS, DAMPING_FORMS, certainty, damping_factor, soft_weights

P = np.array([0.95, 0.85, 0.80, 0.75, 0.10, 0.90, 0.30, 0.80])
C = np.array([1, 1, 1, 1, 0, 0, 0, 0])
U = np.array([0.1, 0.4, 0.2, 0.6, 0.05, 0.8, 0.3, 0])


@pytest.mark.parametrize(
    ("sigma", "damping", "expected", "accuracy"),
    [
        (0, 0, (3, 3, 1, 1), 0.75),
        (0.1, 0, (1.1924665617, 1.9999994267, 0.6826894921, 0.3655017375), 0.7528234008),
        (0.1, 2, (0.8412920503, 1.4536487395, 0.1378326313, 0.1100870078), 0.9025036387),
        (0.3, 1, (0.2154371769, 1.5902895801, 0.1164287562, 0.0359603171), 0.9221756594),
    ],
)
def test_published_table(sigma, damping, expected, accuracy):
    found = soft_weights(P, C, 0.8, sigma, U, damping)
    assert list(found) == list(CELLS) == ["TP", "TN", "FP", "FN"]
    cells = [w.sum() for w in found.values()]
    np.testing.assert_allclose(cells, expected, rtol=0, atol=6e-11)
    assert (np.count_nonzero(list(found.values()), axis=0) <= 1).all()
    metrics = cell_metrics(*cells)
    np.testing.assert_allclose(metrics["accuracy"], accuracy, atol=6e-11)
    for name, reference in (
        ("matthews", sk.matthews_corrcoef), ("kappa", sk.cohen_kappa_score), ("f1", sk.f1_score),
    ):  # fmt: skip
        wanted = reference([1, 0, 0, 1], [1, 0, 1, 0], sample_weight=cells)
        np.testing.assert_allclose(metrics[name], wanted, rtol=1e-12)


def test_no_spread_and_no_damping():
    found = soft_weights([0.2, 0.5, 0.8], [0, 1, 1], 0.5)
    assert [w.sum() for w in found.values()] == [2, 1, 0, 0]
    assert damping_factor(np.array([0, 0.5]), np.inf).tolist() == [1, 0]
    for form in DAMPING_FORMS:
        assert damping_factor(np.array([0.0, 0.5]), np.inf, form).tolist() == [1, 0]
        assert damping_factor(np.array([0.0, 0.5, np.inf]), 0.0, form).tolist() == [1, 1, 1]
    np.testing.assert_allclose(
        [damping_factor(np.array(0.5), 3, form) for form in DAMPING_FORMS],
        [np.exp(-1.5), 1 / 2.5, np.exp(-2.25)],
        rtol=1e-15,
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("t", [0.7, np.float64(0.7), np.float32(0.7)])
def test_a_threshold_has_the_dtype_of_the_data(dtype, t):
    t = float(np.float32(0.7)) if isinstance(t, np.float32) and dtype == "float32" else 0.7
    p = np.array([0.7], dtype=dtype)
    for sigma in (0, 0.1):
        found = soft_weights(p, [1], t, sigma)
        assert found["TP"][0] == (sigma == 0)
        assert found["FN"][0] == 0
        fuzzy = soft_weights(p, p, t, sigma)
        assert fuzzy["TN"][0] == (sigma == 0)


def test_distributions_agree_with_scipy():
    x = np.concatenate([np.random.default_rng(1).random(200), [0.0, 0.3, 1.0]])
    t, sigma = 0.3, 0.17
    for name, df, frozen in (
        ("gaussian", None, stats.norm(t, sigma)),
        ("logistic", None, stats.logistic(t, sigma)),
        ("laplace", None, stats.laplace(t, sigma)),
        ("uniform", None, stats.uniform(t - sigma, 2 * sigma)),
        ("triangular", None, stats.triang(0.5, t - sigma, 2 * sigma)),
        ("cauchy", None, stats.cauchy(t, sigma)),
        ("student-t", 3.5, stats.t(3.5, t, sigma)),
    ):
        expected = np.abs(2 * frozen.cdf(x) - 2 * frozen.cdf(t))
        np.testing.assert_allclose(certainty(x, t, sigma, name, df), expected, rtol=0, atol=1e-12)
        tiny = certainty(x[x != t], t, 1e-320, name, df)
        np.testing.assert_allclose(tiny, 1, atol=1e-12)
    own = certainty(x, t, sigma, stats.norm(5, 2))  # its median moves to t, sigma stretches its own units
    np.testing.assert_allclose(own, certainty(x, t, 2 * sigma), rtol=0, atol=1e-12)


def test_reference_threshold_and_certainty():
    a = certainty(np.array([0.0, 1.0]), 0.8, 0.3)
    np.testing.assert_allclose(a, [0.992339, 0.495015], atol=5e-7)
    plain = soft_weights(P, C, 0.8, 0.3, reference_certainty="none")
    paper = soft_weights(P, C, 0.8, 0.3)
    np.testing.assert_allclose(paper["TP"], plain["TP"] * a[1], rtol=1e-14)
    np.testing.assert_allclose(paper["FP"], plain["FP"] * a[0], rtol=1e-14)
    raters = np.array([0.3, 0.7] * 4)
    found = soft_weights(P, raters, 0.8, reference_threshold=0.5)
    assert sum(found["TP"] + found["FN"]) == 4


def test_kinds_and_dtypes():
    p = P.reshape(2, 4)
    c, u = C.reshape(2, 4), U.reshape(2, 4)
    for dtype in ("float32", "float64"):
        expected = soft_weights(p.astype(dtype), c, 0.8, 0.1, u.astype(dtype), 2)
        assert all(w.dtype == dtype for w in expected.values())
        lazy = soft_weights(da.from_array(p.astype(dtype), chunks=(1, 3)), c, 0.8, 0.1, u.astype(dtype), 2)
        labelled = xr.DataArray(p.astype(dtype), dims=("y", "x"))
        for found in (lazy, soft_weights(labelled.chunk(x=2), c, 0.8, 0.1, u.astype(dtype), 2)):
            for name, weight in found.items():
                assert weight.dtype == dtype
                assert hasattr(weight, "dask") or weight.chunks
                np.testing.assert_array_equal(np.asarray(weight), expected[name])
    found = soft_weights(labelled, xr.DataArray(c, dims=("y", "x")), 0.8)
    assert found["TP"].dims == ("y", "x")
    frozen = soft_weights(da.from_array(p), c, 0.8, 0.1, distribution=stats.norm())
    np.testing.assert_allclose(np.asarray(frozen["TP"]), soft_weights(p, c, 0.8, 0.1)["TP"], rtol=0, atol=1e-14)


def test_nan_spreads_to_all_four():
    p, c, u = P.copy(), C.astype(float), U.copy()
    p[0] = c[1] = u[2] = np.nan
    for sigma in (0, 0.1):
        for weight in soft_weights(p, c, 0.8, sigma, u, 1.0, reference_certainty="none").values():
            assert np.isnan(weight).tolist() == [True] * 3 + [False] * 5


def test_refusals():
    for change, words in (
        ({"threshold": 1.0}, "threshold must lie in"),
        ({"sigma": -1}, "sigma"),
        ({"sigma": np.inf}, "sigma"),
        ({"damping": -1}, "damping"),
        ({"damping": np.nan}, "damping"),
        ({"damping_form": "linear"}, "unknown damping form"),
        ({"distribution": "beta"}, "unknown distribution"),
        ({"distribution": "student-t"}, "degrees of freedom"),
        ({"df": 3.0}, "df belongs"),
        ({"distribution": stats.expon()}, "symmetric"),
        ({"distribution": stats.binom(4, 0.5)}, "frozen continuous"),
        ({"u": -U}, "0 or above; 7 values are not"),
        ({"u": U[:3]}, "shape"),
        ({"probabilities": P + 1}, "8 values do not"),
        ({"reference": C * 255}, "4 values do not"),
        ({"reference_certainty": "full"}, "reference_certainty"),
    ):
        given = {"probabilities": P, "reference": C, "threshold": 0.8, "sigma": 0.1} | change
        with pytest.raises(ValueError, match=words):
            soft_weights(**given)
    one = xr.DataArray(P, dims="x", coords={"x": np.arange(8)})
    with pytest.raises(ValueError, match="dimensions"):
        soft_weights(one, xr.DataArray(C, dims="y"), 0.8)
    with pytest.raises(ValueError, match="coordinate 'x'"):
        soft_weights(one, xr.DataArray(C, dims="x", coords={"x": np.arange(8) + 0.5}), 0.8)
    lazy = soft_weights(da.from_array(P + np.array([1] + [0] * 7)), C, 0.8)
    assert np.isnan(np.asarray(lazy["TP"])).sum() == 1
