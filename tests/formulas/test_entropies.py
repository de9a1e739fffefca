"""Entropies against SciPy and mpmath, the published table, and their poles."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dask_uncert.formulas.entropies import (
    binary_variance,
    confused_classes,
    renyi_entropy,
    t_entropy,
    tsallis_entropy,
)

ROWS = np.array([[0.51, 0.49, 0, 0], [0.51, 0.19, 0.15, 0.15], [0.35, 0.25, 0.25, 0.15], [0.65, 0.35, 0, 0]])
RNG = np.random.default_rng(7)
DRAWN = [*RNG.dirichlet(np.full(6, 0.4), size=10), *RNG.dirichlet(np.full(3, 50.0), size=5)]


def test_published_table():
    for measure, expected in (
        (renyi_entropy, [0.499712, 0.775655, 0.944484, 0.437836]),
        (tsallis_entropy, [0.585574, 0.873557, 0.969685, 0.537781]),
        (t_entropy, [0.595135, 0.859578, 0.967284, 0.542020]),
        (binary_variance, [0.9996, 0.9996, 0.91, 0.91]),
    ):
        np.testing.assert_allclose(measure(ROWS), expected, atol=5e-7)
    assert binary_variance(np.full(4, 0.25)) == 0.75


@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.999, 1 - 2e-6, 1, 1 + 2e-6, 1.2, 2, 7.5, 150])
def test_renyi_and_tsallis_agree_with_mpmath(alpha):
    with mpmath.workdps(50):
        for drawn in DRAWN:
            p = [mpmath.mpf(float(x)) for x in drawn]
            p = [x / mpmath.fsum(p) for x in p]
            classes, a = len(p), mpmath.mpf(alpha)
            if alpha == 1:
                renyi = tsallis = -sum(x * mpmath.log(x) for x in p) / mpmath.log(classes)
            else:
                power = sum(x**a for x in p)
                renyi = mpmath.log(power) / (1 - a) / mpmath.log(classes)
                tsallis = (1 - power) / (1 - mpmath.mpf(classes) ** (1 - a))
            assert renyi_entropy(drawn, alpha) == pytest.approx(float(renyi), rel=0, abs=1e-12)
            assert tsallis_entropy(drawn, alpha) == pytest.approx(float(tsallis), rel=0, abs=1e-12)
            single = drawn.astype("float32")
            assert renyi_entropy(single, alpha) == pytest.approx(float(renyi), rel=0, abs=2e-6)
            assert tsallis_entropy(single, alpha) == pytest.approx(float(tsallis), rel=0, abs=2e-6)


def test_shannon_and_t_entropy_agree_with_others():
    for p in DRAWN:
        assert renyi_entropy(p, 1, normalised=False) == pytest.approx(stats.entropy(p), rel=0, abs=1e-12)
        with mpmath.workdps(40):
            q = [mpmath.mpf(float(x)) / mpmath.fsum(map(float, p)) for x in p]
            top = mpmath.atan(len(p)) - mpmath.pi / 4
            expected = float((sum(x * mpmath.atan(1 / x) for x in q) - mpmath.pi / 4) / top)
        assert t_entropy(p) == pytest.approx(expected, rel=0, abs=1e-12)


def test_zero_probabilities():
    assert renyi_entropy([0, 0.5, 0.5], 1, normalised=False) == pytest.approx(math.log(2), abs=1e-15)
    for hot in (np.array([1, 0, 0], dtype="float32"), np.array([1, 0, 0], dtype="uint8")):
        for found in (renyi_entropy(hot, 1), renyi_entropy(hot, 1, normalised=False), tsallis_entropy(hot)):
            assert found == 0
            assert not np.signbit(found)


def test_orders_near_the_poles():
    p = [0.5, 0.25, 0.25]
    for alpha, expected in ((1, 1.0397207708), (2, 0.9808292530), (np.inf, 0.6931471806)):
        assert renyi_entropy(p, alpha, normalised=False) == pytest.approx(expected, rel=0, abs=5e-11)
    for alpha in (1 - 1e-12, 1 + 1e-12, 1 - 1e-6, 1 + 1e-6):
        assert renyi_entropy(p, alpha) == pytest.approx(renyi_entropy(p, 1), rel=0, abs=1e-6)
        assert tsallis_entropy(p, alpha) == pytest.approx(tsallis_entropy(p, 1), rel=0, abs=1e-6)
    for wrong in (0, -1, np.nan):
        with pytest.raises(ValueError, match="above 0"):
            renyi_entropy(p, wrong)
    with pytest.raises(ValueError, match="finite"):
        tsallis_entropy(p, np.inf)


def test_confused_classes_counts_what_exceeds_chance():
    assert confused_classes(ROWS).tolist() == [2, 1, 1, 2]
    for dtype in ("float16", "float32", "float64"):
        for classes in range(2, 60):
            assert confused_classes(np.full(classes, 1 / classes, dtype=dtype)) == 0
    # a third as stored, in a vector that is not uniform, is not above a third
    assert confused_classes(np.array([1 / 3, 0.5, 1 / 6], dtype="float32")) == 1
    assert confused_classes(np.array([1 / 3 + 1e-9, 0.5, 1 / 6 - 1e-9])) == 2
