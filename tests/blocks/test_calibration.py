"""Calibration and proper scores of a pass against scikit-learn and plain numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, confusion_matrix, log_loss, roc_auc_score

from dask_uncert import Input
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas import selective
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.metrics import classification, distributions


def drawn(seed, classes, n=500):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.7), n)
    y = np.array([rng.choice(classes, p=row) for row in p])
    return p, y


@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(2, 6))
def test_scores_against_scikit_learn(seed, classes):
    p, y = drawn(seed, classes)
    found = evaluate(p, y, measures=["gini"])
    wanted = np.square(p - np.eye(classes)[y]).sum(axis=1).mean()
    assert calibration_metrics.brier(found)["score"] == pytest.approx(wanted, abs=1e-12)
    nll = calibration_metrics.negative_log_likelihood(found)
    assert nll["value"] == pytest.approx(log_loss(y, p, labels=range(classes)), abs=1e-12)
    parts = calibration_metrics.brier(found)
    whole = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within_bins"]
    assert whole == pytest.approx(parts["score"], abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(seed=st.integers(0, 2**32 - 1), block=st.integers(25, 500))
def test_without_spread_and_damping_soft_is_scikit_learns_confusion(dtype, seed, block):
    rng = np.random.default_rng(seed)
    p, y = rng.random(500).astype(dtype), rng.integers(0, 2, 500)
    t = float(rng.choice([0.3, 0.5, 0.7]))
    soft = [{"class": "yes", "thresholds": [t]}]
    found = evaluate(p, y, axis=None, classes=["no", "yes"], soft_confusion=soft, block=(block,))
    cells = classification.soft_cells(found.soft_confusion[0])
    (tn, fp), (fn, tp) = confusion_matrix(y, p > np.dtype(dtype).type(t))
    assert {k: v.item() for k, v in cells.items()} == {"TP": tp, "TN": tn, "FP": fp, "FN": fn}


def test_binary_brier_is_scikit_learns_twice():
    p, y = drawn(1, 2)
    found = evaluate(p[:, 1], y, axis=None, classes=["no", "yes"])
    assert calibration_metrics.brier(found)["score"] == pytest.approx(2 * brier_score_loss(y, p[:, 1]), abs=1e-12)


def test_one_against_the_rest_is_scikit_learns_curve():
    p, y = drawn(2, 3, n=3000)
    found = evaluate(p, y, calibration={"bins": 10})
    one = found.calibration
    number, positives, sums = one.binned(one.fine_by_class)
    for k in range(3):
        share, mean = calibration_curve(y == k, p[:, k], n_bins=10)
        filled = number[k] > 0
        assert number[k].sum() == 3000
        np.testing.assert_allclose(positives[k][filled] / number[k][filled], share, atol=1e-12)
        decoded = sums[k, filled, 0] * 2.0**-22 + sums[k, filled, 1] * 2.0**-44
        np.testing.assert_allclose(decoded / number[k][filled], mean, atol=1e-12)


def test_a_true_class_given_zero_is_counted_not_hidden():
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    found = calibration_metrics.negative_log_likelihood(evaluate(p, np.array([1, 0, 1])))
    assert found == {"value": np.inf, "infinite": 1, "finite": pytest.approx(np.log(2) / 2, abs=1e-12)}


def test_forty_million_voxels():
    """Counts of 4e7, by adding one evaluation to itself: ECE .20, where float32 bins give 0 or .53."""
    right = evaluate(np.tile([0.05, 0.95], (3, 1)), np.array([1, 1, 1]))
    wrong = evaluate(np.array([[0.05, 0.95]]), np.array([0]))
    total, parts = right + wrong, []
    for bit in range(24):
        if 10_000_000 >> bit & 1:
            parts.append(total)
        total = total + total
    whole = sum(parts)
    assert int(whole.ledger.counted) == 40_000_000
    assert calibration_metrics.expected_calibration_error(whole) == pytest.approx(0.2, abs=1e-12)
    assert classification.accuracy(whole) == 0.75


@given(seed=st.integers(0, 2**32 - 1))
def test_error_detection_is_bounded_by_bins(seed):
    p, y = drawn(seed, 4)
    found = evaluate(p, y, measures=["entropy"])
    u = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1) / np.log(4)
    wrong = p.argmax(axis=1) != y
    histograms = [distributions.histogram(found, "entropy", outcome) for outcome in ("correct", "wrong")]
    low, high = selective.bounds(selective.error_auroc, *histograms)
    exact = roc_auc_score(wrong, u)
    assert low - 1e-12 <= exact <= high + 1e-12
    assert float(high - low) < 0.01


def test_equal_mass_bins_follow_the_quantiles():
    p, y = drawn(5, 2, n=4000)
    found = evaluate(p, y, calibration={"bins": 10})
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    order = np.argsort(confidence)
    groups = np.array_split(order, 10)
    wanted = sum(len(g) * abs(right[g].mean() - confidence[g].mean()) for g in groups) / 4000
    assert calibration_metrics.equal_mass_calibration_error(found) == pytest.approx(wanted, abs=5e-3)


STORAGE = {
    "float16": None,
    "float32": None,
    "float64": None,
    "uint8": 0.01,
    "uint16": 1 / 65535,
    "float32 percent": 0.01,
}


@pytest.mark.parametrize("stored", STORAGE)
def test_one_prediction_in_two_forms(stored):
    """Without a class axis 1 - p is what the other class would be stored as: all counts are those of [1 - p, p]."""
    dtype, scale = stored.split()[0], STORAGE[stored]
    steps = np.arange(101) / 100 / (scale or 1)
    p = (np.rint(steps) if dtype.startswith("u") else steps).astype(dtype)
    whole = np.dtype(dtype).type(round(1 / (scale or 1)))
    pair, y = np.stack([whole - p, p], axis=1), np.arange(101) % 2
    options = {
        "classes": ["no", "yes"], "measures": ["gini", "entropy", "variance"], "calibration": {"bins": 10},
        "soft_confusion": [{"class": name, "thresholds": [0.3, 0.9], "sigmas": [0, 0.1]} for name in ("no", "yes")],
    }  # fmt: skip
    given_scale = {} if scale is None else {"scale": scale}
    for engine in ("compiled", "reference"):
        binary = evaluate(Input(p, **given_scale), y, axis=None, engine=engine, **options)
        both = evaluate(Input(pair, **given_scale), y, engine=engine, **options)
        for name in ("ledger", "decisions", "distributions", "calibration", "soft_confusion"):
            assert getattr(binary, name) == getattr(both, name), name
        if stored != "uint16":  # which has no .9; each decimal is in the bin of which it is the upper edge
            winning = binary.calibration.binned(binary.calibration.fine).number
            assert winning.tolist() == [0, 0, 0, 0, 1, 20, 20, 20, 20, 20]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
def test_a_calibrated_prediction_in_two_forms(dtype):
    scale = {"scale": 0.01} if dtype == "uint8" else {}
    p = (np.repeat([0.9, 0.1], 10) / scale.get("scale", 1) + (0.5 if scale else 0)).astype(dtype)
    whole, y = np.dtype(dtype).type(100 if scale else 1), np.repeat([1, 0, 1], [10, 8, 2])
    for values, axis in ((p, None), (np.stack([whole - p, p], axis=1), 1)):
        found = evaluate(Input(values, **scale), y, axis=axis, classes=["no", "yes"], calibration={"bins": 10})
        error = calibration_metrics.expected_calibration_error(found)
        assert error == pytest.approx(0, abs=2e-4 if dtype == "float16" else 1e-7)
