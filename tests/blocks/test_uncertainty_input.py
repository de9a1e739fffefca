"""A predicted uncertainty, without a range of its own, as a measure; and the number of confused classes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.metrics import distributions


def drawn(seed, n=400):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6, 0.6, 0.6], n)
    u = np.minimum(rng.lognormal(0, 3, n), 2**20)  # the largest that is counted
    u[rng.random(n) < 0.1] = 0
    return p, rng.integers(0, 3, n), u


@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(["float32", "float64"]))
def test_moments_and_counts_are_exact(seed, dtype):
    p, c, u = drawn(seed)
    u = u.astype(dtype)
    thresholds = [0.37, 2.5, 40]
    asked = {"measures": ["uncertainty"], "uncertainty_confusion": {"thresholds": thresholds}}
    found = evaluate(p, c, uncertainty=u, **asked)
    right = p.argmax(axis=1) == c
    u = u.astype(np.float64)
    for outcome, where in (("correct", right), ("wrong", ~right), ("all", right | True)):
        moments = distributions.moments(found, "uncertainty", outcome)
        assert moments["n"] == where.sum()
        assert moments["mean"] == pytest.approx(u[where].mean(), rel=1e-12)
        assert moments["std"] == pytest.approx(u[where].std(), rel=1e-12)
        assert moments["skewness"] == pytest.approx(stats.skew(u[where]), rel=1e-11)
    table = distributions.uncertainty_confusion(found, "uncertainty")
    for i, tau in enumerate(thresholds):
        assert table["FU"][i] == (right & (u > tau)).sum()
        assert table["TU"][i] == (~right & (u > tau)).sum()
    for q in (0.25, 0.5, 0.9):
        exact = np.quantile(u, q, method="inverted_cdf")
        near = pytest.approx(exact, rel=2.0 ** (1 / 32) - 1)
        assert exact <= 2**-20 or distributions.quantiles(found, "uncertainty", q) == near


@pytest.mark.slow
@given(cut=st.integers(20, 399), seed=st.integers(0, 1000))
def test_same_bits_for_every_cut(cut, seed):
    p, c, u = drawn(seed)
    words = {"measures": ["uncertainty", "confused_classes", "gini"]}
    whole = evaluate(p, c, uncertainty=u, **words)
    parts = [evaluate(p[s], c[s], uncertainty=u[s], **words) for s in (slice(cut), slice(cut, None))]
    assert parts[1] + parts[0] == whole
    plain = evaluate(p, c, uncertainty=u, block=(cut,), engine="reference", **words)
    assert plain.distributions[0] == whole.distributions[0]


def test_the_number_of_confused_classes_as_a_measure():
    p, c, _ = drawn(3)
    measures = ["confused_classes"]
    found = evaluate(p, c, measures=measures, uncertainty_confusion={"thresholds": [1], "measures": measures})
    k = (p > 1 / 3).sum(axis=1)
    moments = distributions.moments(found, "confused_classes")
    assert moments["mean"] == pytest.approx(k.mean(), abs=1e-12)
    assert moments["std"] == pytest.approx(k.std(), abs=1e-12)
    right = p.argmax(axis=1) == c
    table = distributions.uncertainty_confusion(found, "confused_classes")
    assert table["TC"][0] == (right & (k <= 1)).sum()


def test_thresholds_must_lie_in_a_named_measures_range():
    p, c, u = drawn(0)
    inputs = {"probabilities": p, "reference": c, "uncertainty": u, "measures": ["gini", "uncertainty"]}
    with pytest.raises(InputError, match=r"1\.5 is above 1, the largest value of gini"):
        evaluate(**inputs, uncertainty_confusion={"measures": ["gini"], "thresholds": [1.5]})
    found = evaluate(**inputs, uncertainty_confusion={"thresholds": [0.5, 1.5]})
    assert found.measures["gini"].thresholds == (0.5,)
    assert found.measures["uncertainty"].thresholds == (0.5, 1.5)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("centre", "step"), [(1e6, 1.0), (1000, 1e-4), (0, 1e-12)])
def test_moments_of_values_that_hardly_vary(engine, centre, step):
    u = centre + step * np.array([1.0, 2.0, 3.0, 1.0, 2.0, 5.0])
    p = np.tile([0.9, 0.1], (6, 1))
    found = evaluate(p, np.repeat([0, 1], 3), uncertainty=u, measures=["uncertainty"], engine=engine)
    for outcome, part in (("correct", u[:3]), ("wrong", u[3:])):
        moments = distributions.moments(found, "uncertainty", outcome)
        assert moments["mean"] == pytest.approx(part.mean(), rel=1e-9)
        assert moments["std"] == pytest.approx(part.std(), rel=1e-8)
        # Taken in units of the step, so that the difference of near numbers is exact.
        wanted = stats.skew((part - part[0]) / step)
        assert moments["skewness"] == pytest.approx(wanted, abs=1e-5)
