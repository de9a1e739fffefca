"""Strip plots: axes include all values, dots are at their values and overlap little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde

from dask_uncert.reports.figures.strips import MOST_DOTS, WIDTH, axis_of, positions_across, strip, violin

values = st.lists(st.floats(-1, 1) | st.just(float("nan")), min_size=1, max_size=60)


def value_at(axis, percent):
    span = axis.high - axis.low
    return pytest.approx(axis.low + percent / 100 * span, abs=1e-4 * span + 1e-9)


@given(values, st.sampled_from([(-np.inf, np.inf), (-1.0, 1.0)]))
def test_an_axis_includes_its_values(numbers, ends):
    axis = axis_of(numbers, *ends)
    known = [v for v in numbers if np.isfinite(v)]
    assert axis.low < axis.high
    assert all(axis.low - 1e-9 <= v <= axis.high + 1e-9 for v in known)
    assert ends[0] <= axis.low < axis.high <= ends[1]
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(0 <= tick.x <= 100 for tick in ticks)
    for tick in ticks:  # a tick is at the value of its label
        assert value_at(axis, tick.x) == float(tick.label)
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(values, st.sampled_from([36.0, 58.0]))
def test_a_strip_has_a_dot_per_defined_case_at_its_value(numbers, height):
    array = np.array(numbers)
    axis = axis_of(numbers)
    cases = [10 + i for i in range(len(numbers))]
    drawn = strip(axis, cases, array, np.full(5, np.nan), (None,) * 3, (0.0, None, None), height)
    assert {dot.case for dot in drawn.dots} == {c for c, v in zip(cases, numbers, strict=True) if v == v}
    rising = [dot.value for dot in drawn.dots]
    assert rising == sorted(rising)
    for dot in drawn.dots:
        assert dot.value == numbers[dot.case - 10]
        assert value_at(axis, dot.x) == dot.value
        assert drawn.radius <= dot.y <= height - drawn.radius
    assert drawn.quantiles is None
    assert drawn.mean == (None, None, None)


@given(st.lists(st.floats(0, 100), max_size=40), st.sampled_from([36.0, 58.0]))
def test_dots_overlap_only_where_all_lanes_are_full(positions, height):
    rising = sorted(positions)
    lanes = positions_across(rising, 3.5, height)
    number = len(set(positions_across([50.0] * 40, 3.5, height)))
    for i, (x, y) in enumerate(zip(rising, lanes, strict=True)):
        near = [j for j in range(i) if (x - rising[j]) * WIDTH / 100 < 7 - 1e-9]
        if len({lanes[j] for j in near}) < number:
            assert all(lanes[j] != y for j in near)


def test_the_lowest_and_highest_of_many_cases_are_drawn():
    many = np.random.default_rng(0).random(3 * MOST_DOTS)
    drawn = strip(axis_of(many), range(len(many)), many, np.quantile(many, [0.05, 0.25, 0.5, 0.75, 0.95]),
                  (0.5, 0.4, 0.6), (0.5, 0.4, 0.6), 58.0)  # fmt: skip
    assert len(drawn.dots) == drawn.drawn == MOST_DOTS
    assert (drawn.dots[0].value, drawn.dots[-1].value) == (many.min(), many.max())
    assert drawn.quantiles == sorted(drawn.quantiles)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([36.0, 58.0]))
def test_a_violin_spans_the_values_and_is_as_wide_as_their_density(numbers, height):
    rising, axis = np.sort(numbers), axis_of(numbers)
    outline = violin(axis, rising, height)
    if len(numbers) < 5 or axis.percent(rising[0]) == axis.percent(rising[-1]):
        assert outline is None
        return
    upper, lower = outline[: len(outline) // 2], outline[len(outline) // 2 :][::-1]
    assert [x for x, _ in upper] == [x for x, _ in lower]
    assert [y + mirrored for (_, y), (_, mirrored) in zip(upper, lower, strict=True)] == pytest.approx(
        [height] * len(upper)
    )
    assert (value_at(axis, upper[0][0]), value_at(axis, upper[-1][0])) == (rising[0], rising[-1])
    widths = np.array([b - a for (_, a), (_, b) in zip(upper, lower, strict=True)])
    density = gaussian_kde(rising)(np.linspace(rising[0], rising[-1], len(upper)))
    np.testing.assert_allclose(widths / (height - 2), density / density.max(), atol=1e-3)
