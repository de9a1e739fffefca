"""The kernels' own elementary functions against 50 digits."""

from functools import cache

import mpmath
import numba
import numpy as np
import pytest
from scipy import special

from dask_uncert.blocks.kernels import elementary

DRAWN = np.random.default_rng(0)
EDGES = np.array([0.0, 1e-300, 5e-324, 0.4375, 0.5, 0.6875, np.sqrt(0.5), np.nextafter(1, 0), 1.0])
UNIT = np.concatenate([EDGES, DRAWN.random(3000), 10.0 ** DRAWN.uniform(-300, 0, 1000)])
FUNCTIONS = {
    "logarithm": (UNIT[UNIT > 1e-307], mpmath.log),
    "exponential": (
        -np.concatenate([DRAWN.random(3000) * 30, DRAWN.uniform(0, 708, 1000), [0.0]]),
        mpmath.exp,
    ),
    "arcsine": (UNIT, mpmath.asin),
    "arctangent": (UNIT, mpmath.atan),
}


@cache
def compiled(name):
    function = getattr(elementary, name)

    @numba.njit(error_model="numpy")
    def over(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return over


@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_a_few_units_in_the_last_place(name):
    x, exact = FUNCTIONS[name]
    found = np.empty_like(x)
    compiled(name)(x, found)
    with mpmath.workdps(50):
        for value, got in zip(x, found, strict=True):
            wanted = exact(mpmath.mpf(float(value)))
            spacing = np.spacing(abs(float(wanted))) if float(wanted) else 0.0
            assert abs(mpmath.mpf(float(got)) - wanted) <= 2.5 * spacing, (value, got, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits_in_every_place(name):
    """Vector body, remainder and a lone element agree."""
    x, _ = FUNCTIONS[name]
    over = compiled(name)
    whole = np.empty_like(x)
    over(x, whole)
    for start in range(7):
        shifted = np.empty(x.size - start)
        over(x[start:].copy(), shifted)
        assert np.array_equal(shifted, whole[start:])
    alone = np.empty(1)
    for i in range(0, x.size, 97):
        over(x[i : i + 1], alone)
        assert alone[0] == whole[i]


def test_the_error_function_is_within_1e15():
    x = np.concatenate([UNIT, DRAWN.random(3000) * 7, [1e300, np.inf]])
    found = np.empty_like(x)
    compiled("error_function")(x, found)
    np.testing.assert_allclose(found, special.erf(x), rtol=0, atol=1e-15)
    assert found[x == 0].max() == 0
    assert found[x > 6].min() == 1


def test_limits():
    found = np.empty(3)
    compiled("exponential")(np.array([0.0, -709.0, -np.inf]), found)
    assert found.tolist() == [1.0, 0.0, 0.0]
    one = np.empty(1)
    compiled("logarithm")(np.array([1.0]), one)
    assert one[0] == 0.0
