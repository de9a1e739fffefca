"""What every measure of one probability vector keeps: range, vertex, centre, permutation, order n."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dask_uncert.formulas.array_dispatch import normalise, tolerance
from dask_uncert.formulas.measure_values import measure_maximum, measure_values
from dask_uncert.formulas.measures import MEASURES, is_pointwise, parse_measure
from tests.support.arrays import distance_table

ONE_VECTOR = [m for m in MEASURES.values() if is_pointwise(m)]
DISTANCES = ("euclidean", "kullback-leibler", "fisher-rao")
ONE_VECTOR += map(
    parse_measure,
    (
        *({"geometric": {"distance": distance, "n": n}} for distance in DISTANCES for n in (1, 3)),
        *({"geometric": {"distance": "renyi", "n": 1, "alpha": alpha}} for alpha in (0.3, 1, 40, np.inf)),
        *({"renyi": {"alpha": alpha}} for alpha in (0.01, 0.7, 1 + 3e-6, 1.3, 200.0, np.inf)),
        *({"tsallis": {"alpha": alpha}} for alpha in (0.01, 0.7, 1, 1 + 3e-6, 3, 60.0)),
    ),
)
BY_NAME = {measure.name: measure for measure in ONE_VECTOR}
every_measure = pytest.mark.parametrize("name", BY_NAME)


def ready(name, classes):
    measure = BY_NAME[name]
    if measure.kind == "homophily":
        h = distance_table(np.random.default_rng(0), classes)
        measure = dataclasses.replace(measure, distances=tuple(map(tuple, h.tolist())))
    return measure


@st.composite
def vectors(draw):
    """Float vectors within the tolerance of a probability vector, tiny and subnormal parts among them."""
    dtype = draw(st.sampled_from(["float16", "float32", "float64"]))
    width = {"float16": 16, "float32": 32, "float64": 64}[dtype]
    parts = draw(
        hnp.arrays(dtype, st.integers(2, 8), elements=st.floats(0, 1, width=width, allow_subnormal=True))
    ).astype("float64")
    if not parts.sum() > 0:
        parts[draw(st.integers(0, len(parts) - 1))] = 1.0
    near = (1 + draw(st.floats(-0.9, 0.9)) * tolerance(dtype) / 2) * parts / parts.sum()
    if draw(st.booleans()):
        near[int(np.argmin(near))] -= tolerance(dtype) / 3
    return near.astype(dtype)


@every_measure
@settings(max_examples=15)
@given(p=vectors())
def test_within_0_and_1_for_any_floats(name, p):
    q = normalise(p)
    value = measure_values(ready(name, len(p)), q)
    assert 0 <= value <= 1
    assert not np.signbit(value)
    if np.count_nonzero(q) == 1:
        assert value == 0


@every_measure
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
def test_vertices_are_exactly_zero(name, dtype):
    for classes in (2, 3, 7, 20):
        found = measure_values(ready(name, classes), normalise(np.eye(classes, dtype=dtype)))
        assert (found == 0).all()
        assert not np.signbit(found).any()


@pytest.mark.parametrize(
    "name", [n for n, m in BY_NAME.items() if m.kind not in ("variance", "homophily", "max_probability")]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_centre_is_one_and_never_above(name, dtype):
    """Variance and homophily peak elsewhere; the largest probability leaves 1 - 1/C at most."""
    for classes in range(2, 40):
        found = measure_values(BY_NAME[name], normalise(np.full(classes, 1 / classes, dtype=dtype)))
        assert 1 - 1e-13 <= found <= 1


@every_measure
def test_classes_may_be_permuted(name):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(6, 0.5), size=200)
    order = rng.permutation(6)
    measure = ready(name, 6)
    permuted = measure
    if measure.distances is not None:
        h = np.array(measure.distances)[np.ix_(order, order)]
        permuted = dataclasses.replace(measure, distances=tuple(map(tuple, h.tolist())))
    np.testing.assert_allclose(measure_values(permuted, p[:, order]), measure_values(measure, p), rtol=0, atol=1e-13)


@every_measure
def test_any_axis_and_nan(name):
    p = np.random.default_rng(6).dirichlet(np.ones(4), size=(3, 5))
    measure = ready(name, 4)
    maximum = measure_maximum(measure)
    expected = measure_values(measure, p, maximum=maximum)
    np.testing.assert_allclose(
        measure_values(measure, np.moveaxis(p, -1, 0), axis=0, maximum=maximum), expected, rtol=0, atol=1e-15
    )
    p[1, 1] = np.nan
    found = measure_values(measure, p, maximum=maximum)
    assert np.isnan(found).sum() == 1
    assert np.isnan(found[1, 1])


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match="single probability vector"):
        measure_values(MEASURES["mutual_information"], np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="no class distances"):
        measure_values(MEASURES["homophily"], np.array([0.5, 0.5]))
