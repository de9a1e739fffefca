"""Strip plots: a dot per case along an axis, their density, quantiles over patients, and means with intervals.

Positions along the axis are in percent, so that a strip fits any window while dots and text keep their size; positions
across it are in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dask_uncert.formulas.distributions import gaussian_density
from dask_uncert.formulas.typing import Floats

WIDTH = 660.0  # pixels, the width for which dots are placed
MOST_DOTS = 1200
"""Dots of a strip; of more cases, the lowest, the highest and evenly spaced ones between them are drawn."""
RADII = ((150, 3.6), (600, 2.6), (MOST_DOTS, 1.8))
"""Up to how many dots have which radius, in pixels."""
LEAST_FOR_VIOLIN, VIOLIN_POINTS = 5, 61  # values that a density says anything about; points of its outline
TICKS = 4  # least number of steps between ticks


class Dot(NamedTuple):
    """A case: its number, position and value."""

    case: int
    x: float
    y: float
    value: float


class Tick(NamedTuple):
    """A tick: its position and label."""

    x: float
    label: str


class Mark(NamedTuple):
    """A number and the ends of its interval, as positions; None where undefined."""

    x: float | None
    low: float | None
    high: float | None


class Axis(NamedTuple):
    """An axis from `low` to `high` with ticks at multiples of `step`."""

    low: float
    high: float
    step: float

    def percent(self, value: float | None) -> float | None:
        """Return the position of a value in percent, clipped to the axis; None where undefined."""
        if value is None or math.isnan(value):
            return None
        return round(100 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 2)

    def ticks(self) -> list[Tick]:
        """Return the ticks; their labels have as many decimals as the step.

        >>> [tick.label for tick in axis_of([0.81, 0.93]).ticks()]
        ['0.80', '0.85', '0.90', '0.95']
        """
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        if abs(self.step * 10**digits % 1) > 1e-6:  # a step of 0.25 needs a digit more than one of 0.2
            digits += 1
        values = [k * self.step for k in range(first, last + 1)]
        return [Tick(self.percent(v) or 0.0, f"{0.0 if abs(v) < 1e-12 else v:.{digits}f}") for v in values]


class Strip(NamedTuple):
    """A strip plot: its dots and their radius, five quantiles, the mean and the pooled number.

    drawn: number of dots; None if all cases are drawn. violin: outline of the density of all values, as positions along
    and across the strip; None for few or equal values.
    """

    axis: Axis
    dots: list[Dot]
    radius: float
    quantiles: list[float] | None
    mean: Mark
    pooled: Mark
    drawn: int | None
    violin: list[tuple[float, float]] | None


def axis_of(values: Iterable[float], low: float = -math.inf, high: float = math.inf) -> Axis:
    """Return an axis that includes these values, from tick to tick within [low, high]; NaN is ignored.

    >>> axis_of([0.97, 0.99], 0.0, 1.0)[:2], axis_of([], 0.0, 1.0)[:2], axis_of([1.0], 0.0, 1.0)[:2]
    ((0.97, 0.99), (0.0, 1.0), (0.94, 1.0))
    """
    known = [value for value in values if math.isfinite(value)]
    if not known:
        known = [0.0 if math.isinf(low) else low, 1.0 if math.isinf(high) else high]
    least, most = min(known), max(known)
    if most - least < 1e-9 * max(1.0, abs(most)):
        least, most = max(least - 0.05, low), min(most + 0.05, high)
    step = _step((most - least) / TICKS)
    least, most = math.floor(least / step + 1e-9) * step, math.ceil(most / step - 1e-9) * step
    return Axis(round(max(least, low), 12), round(min(most, high), 12), step)


def _step(rough: float) -> float:
    """Return the next larger number that is 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next((k * power for k in (1.0, 2.0, 2.5, 5.0) if k * power >= rough * (1 - 1e-9)), 10.0 * power)


def strip(
    axis: Axis,
    cases: Sequence[int],
    values: Floats,
    quantiles: Floats,
    mean: Sequence[float | None],
    pooled: Sequence[float | None],
    height: float,
) -> Strip:
    """Return the strip of these cases' values, `height` pixels across; mean, pooled: value and ends of the interval."""
    defined = np.flatnonzero(~np.isnan(values))
    order = defined[np.argsort(values[defined], kind="stable")]
    number = min(len(order), MOST_DOTS)
    chosen = order[np.round(np.linspace(0, len(order) - 1, number)).astype(int)]
    radius = next(radius for most, radius in RADII if number <= most)
    along = [axis.percent(float(values[i])) or 0.0 for i in chosen]
    across = positions_across(along, radius, height)
    known = [axis.percent(float(q)) for q in quantiles]
    return Strip(
        axis,
        [Dot(cases[i], x, y, float(values[i])) for i, x, y in zip(chosen, along, across, strict=True)],
        radius,
        None if any(q is None for q in known) else [q for q in known if q is not None],
        Mark(*(axis.percent(value) for value in mean)),
        Mark(*(axis.percent(value) for value in pooled)),
        number if number < len(order) else None,
        violin(axis, values[order], height),
    )


def violin(axis: Axis, values: Floats, height: float) -> list[tuple[float, float]] | None:
    """Return the outline of the density of rising values, from the lowest to the highest, `height` across ([A22] figure 2).

    >>> violin(Axis(0.0, 1.0, 0.25), np.array([0.2, 0.4, 0.5, 0.6]), 58.0) is None
    True
    """
    if values.size < LEAST_FOR_VIOLIN or axis.percent(float(values[0])) == axis.percent(float(values[-1])):
        return None
    at = np.linspace(values[0], values[-1], VIOLIN_POINTS)
    density = gaussian_density(values, at)
    half = (height / 2 - 1) * density / density.max()
    along = [axis.percent(float(x)) or 0.0 for x in at]
    upper = [(x, round(height / 2 - float(y), 2)) for x, y in zip(along, half, strict=True)]
    return [*upper, *((x, round(height - y, 2)) for x, y in reversed(upper))]


def positions_across(along: Sequence[float], radius: float, height: float) -> list[float]:
    """Return positions across the strip so that dots at these rising positions along it overlap little.

    Lanes are filled from the middle; where all are full, a dot takes the lane with the most room.

    >>> positions_across([10.0, 10.1, 10.2, 50.0], 3.5, 30.0)
    [15.0, 22.5, 7.5, 15.0]
    """
    lane = 2 * radius + 0.5
    half = (max(1, int(height // lane)) - 1) // 2
    offsets = sorted((k * lane for k in range(-half, half + 1)), key=lambda offset: (abs(offset), offset < 0))
    last = [-math.inf] * len(offsets)
    across = []
    for percent in along:
        x = percent / 100 * WIDTH
        free = next((i for i, before in enumerate(last) if x - before >= 2 * radius), None)
        chosen = int(np.argmin(last)) if free is None else free
        last[chosen] = x
        across.append(round(height / 2 + offsets[chosen], 2))
    return across


def with_interval(values: Any, interval: Any, i: int) -> list[float | None]:
    """Return the value of the i-th metric and the ends of its interval, None without intervals."""
    ends = (None, None) if interval is None else (float(interval.low[i]), float(interval.high[i]))
    return [float(values[i]), *ends]
