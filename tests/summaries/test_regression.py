"""A RegressionEvaluation: what it refuses to add, and the numbers read off it."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.formulas.fixed_point import encode
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.regression import (
    LEVELS,
    RegressionEvaluation,
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
    regression_side,
)
from dask_uncert.summaries.summary import UnequalFramesError

ZERO = RegressionEvaluation.zero(3)


@pytest.mark.parametrize(
    "other", [RegressionEvaluation.zero(2), RegressionEvaluation.zero(3, (0.5,))], ids=["outputs", "levels"]
)
def test_unequal_frames_do_not_add(other):
    with pytest.raises(UnequalFramesError, match="unequal"):
        ZERO + other
    with pytest.raises(TypeError):
        ZERO + Ledger.zero()


def test_levels_are_edges():
    assert len(ZERO.edges) == 1002
    assert set(LEVELS) < set(ZERO.edges)
    assert list(ZERO.edges) == sorted(ZERO.edges)


def with_values(values):
    """The evaluation that counts these predicted probabilities."""
    places = np.maximum(np.searchsorted(ZERO.edges, values) - 1, 0)
    return dataclasses.replace(
        ZERO,
        ledger=dataclasses.replace(Ledger.zero(), counted=np.asarray(len(values))),
        histogram=np.bincount(places, minlength=len(ZERO.edges) - 1),
        predicted=encode(values).sum(axis=0),
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_readings_are_those_of_the_values(values):
    found, values = with_values(values), np.array(values)
    predicted, observed = regression_curve(found)
    np.testing.assert_array_equal(observed[1:], [(values <= e).mean() for e in predicted[1:]])
    assert observed[0] == 0
    assert regression_area(found) == pytest.approx(1 - values.mean(), abs=1e-12)
    assert regression_coverage(found) == {level: (values <= level).mean() for level in LEVELS}
    # The ECDF itself, integrated piece by piece.
    steps = np.concatenate([[0.0], np.sort(values), [1.0]])
    heights = np.arange(len(values) + 1) / len(values)
    exact = sum(((h - a) ** 3 - (h - b) ** 3) / 3 for h, a, b in zip(heights, steps, steps[1:], strict=False))
    assert regression_distance(found) == pytest.approx(exact, abs=0.002)


def test_sides():
    assert regression_side(with_values([0.9, 1.0])) == "overconfident"
    assert regression_side(with_values([0.1, 0.0])) == "underconfident"
    assert regression_side(with_values([0.25, 0.75])) == "neither"
    assert regression_side(ZERO) is None
    assert all(math.isnan(share) for share in regression_coverage(ZERO).values())
