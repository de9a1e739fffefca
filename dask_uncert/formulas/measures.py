"""The measures that a job may name, as plain data: one frozen record each, compared field by field.

A measure maps a probability vector (or samples of it) to a number in [0, upper]. The other modules of this
folder define the numbers; this table names them and their parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dask_uncert.errors import suggestion
from dask_uncert.formulas.own_measures import installed, installed_names

SampleKind = Literal["predictive_entropy", "expected_entropy", "mutual_information", "variation_ratio"]
OtherKind = Literal[
    "geometric",
    "renyi",
    "tsallis",
    "t_entropy",
    "variance",
    "max_probability",
    "margin",
    "homophily",
    "confused_classes",
    "uncertainty",
    "own",
]
Kind = SampleKind | OtherKind
OWN: Kind = "own"
"""A user's own measure: a function found by `Measure.function`."""
DISTANCES = ("euclidean", "kullback-leibler", "fisher-rao", "renyi")
LARGEST_UNCERTAINTY = 2.0**20
"""The largest predicted uncertainty that is counted as a measure: powers up to the third stay exact sums."""
LARGEST_POWER = 1000
"""The largest n of a geometric measure."""
SAMPLE_KINDS: tuple[SampleKind, ...] = get_args(SampleKind)


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters; two records are the same measure exactly when they are equal.

    ``function`` and ``upper`` are `module:function` of a user's own measure, and its largest value. ``distances`` is the class-distance table H of homophily, as rows of floats, once it is known.
    """

    name: str
    kind: Kind
    distance: str | None = None
    n: int | None = None
    alpha: float | None = None
    distances: tuple[tuple[float, ...], ...] | None = None
    function: str | None = None
    upper: float | None = None


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("gini", "geometric", distance="euclidean", n=2),
        Measure("entropy", "geometric", distance="kullback-leibler", n=1),
        Measure("fisher_rao", "geometric", distance="fisher-rao", n=2),
        Measure("homophily", "homophily"),
        Measure("renyi", "renyi", alpha=2.0),
        Measure("tsallis", "tsallis", alpha=1.5),
        Measure("t_entropy", "t_entropy"),
        Measure("variance", "variance"),
        Measure("max_probability", "max_probability"),
        Measure("margin", "margin"),
        *(Measure(kind, kind) for kind in SAMPLE_KINDS),
        Measure("confused_classes", "confused_classes"),
        Measure("uncertainty", "uncertainty"),
    )
}


def is_pointwise(measure: Measure) -> bool:
    """Return whether the measure is a function of one probability vector alone."""
    return measure.kind not in (*SAMPLE_KINDS, "confused_classes", "uncertainty", OWN)


def upper_bound(measure: Measure, classes: int) -> float:
    """Return the largest value the measure can take.

    ln C (in nats) for the entropies of samples, C for the number of confused classes, `LARGEST_UNCERTAINTY`
    for a predicted uncertainty, what a user's own measure states, else 1.
    """
    if measure.kind == "uncertainty":
        return LARGEST_UNCERTAINTY
    if measure.upper is not None:
        return measure.upper
    if measure.kind == "confused_classes":
        return float(classes)
    in_nats = measure.kind in SAMPLE_KINDS and measure.kind != "variation_ratio"
    return math.log(classes) if in_nats else 1.0


def parse_measure(entry: str | Mapping[str, Any] | Measure) -> Measure:
    """Return the measure of an entry of a job: a name of the table, or ``{name: {parameter: value}}``.

    >>> parse_measure("gini").distance
    'euclidean'
    >>> parse_measure({"geometric": {"distance": "fisher-rao", "n": 1}}).name
    'geometric(fisher-rao, n=1)'

    Raises ValueError for an unknown name or parameter, with the names that are known.
    """
    if isinstance(entry, Measure):
        return entry
    if isinstance(entry, str):
        if entry == "geometric":
            return _geometric({})
        if entry in MEASURES:
            return MEASURES[entry]
        if (own := _own(entry, {})) is not None:
            return own
        raise ValueError(
            f"unknown measure {entry!r}. {suggestion(entry, (*sorted(MEASURES), 'geometric', *installed_names()), 'Known measures')}"
        )
    if len(entry) != 1:
        raise ValueError(f"a measure with parameters is one name with its parameters, found {dict(entry)!r}")
    ((name, values),) = entry.items()
    parameters = dict(values or {})
    if name == "geometric":
        measure = _geometric(parameters)
    elif name in ("renyi", "tsallis"):
        alpha = _alpha(name, parameters.pop("alpha", MEASURES[name].alpha))
        measure = Measure(f"{name}({alpha:g})", MEASURES[name].kind, alpha=alpha)
    elif name in MEASURES:
        measure = MEASURES[name]
    elif (own := _own(str(name), parameters)) is not None:
        measure = own
    else:
        return parse_measure(str(name))
    if parameters:
        known = {"geometric": ("distance", "n", "alpha"), "renyi": ("alpha",), "tsallis": ("alpha",)}.get(
            name, ("upper",) if measure.kind == OWN else ()
        )
        first = next(iter(parameters))
        raise ValueError(f"measure {name!r} has no parameter {first!r}. {suggestion(first, known, 'Its parameters')}")
    return measure


def _own(name: str, parameters: dict[str, Any]) -> Measure | None:
    """Return a user's own measure by `module:function` or the name of an entry point; None for any other name."""
    reference = name if ":" in name else installed(name)
    if reference is None:
        return None
    upper = parameters.pop("upper", 1.0)
    if isinstance(upper, bool) or not isinstance(upper, int | float) or not 0 < upper <= LARGEST_UNCERTAINTY:
        raise ValueError(
            f"upper of measure {name!r} must be above 0 and at most {LARGEST_UNCERTAINTY:g}, found {upper!r}"
        )
    own = reference.rpartition(":")[2].rpartition(".")[2] if ":" in name else name
    if own in MEASURES or own == "geometric":
        raise ValueError(f"measure {name!r} has the name of another measure; rename the function")
    return Measure(own, OWN, function=reference, upper=float(upper))


def _geometric(parameters: dict[str, Any]) -> Measure:
    distance = parameters.pop("distance", "euclidean")
    if distance not in DISTANCES:
        hint = suggestion(distance, DISTANCES, "Known distances")
        raise ValueError(f"unknown distance {distance!r} of measure 'geometric'. {hint}")
    n = parameters.pop("n", 2)
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= LARGEST_POWER:
        raise ValueError(f"n of measure 'geometric' must be a whole number from 1 to {LARGEST_POWER}, found {n!r}")
    if distance != "renyi":
        return Measure(f"geometric({distance}, n={n})", "geometric", distance=distance, n=n)
    alpha = _alpha("geometric", parameters.pop("alpha", 2.0))
    return Measure(f"geometric(renyi {alpha:g}, n={n})", "geometric", distance=distance, n=n, alpha=alpha)


def _alpha(name: str, alpha: Any) -> float:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not alpha > 0:
        raise ValueError(f"alpha of measure {name!r} must be a number above 0, found {alpha!r}")
    if name == "tsallis" and math.isinf(alpha):
        raise ValueError("alpha of measure 'tsallis' must be finite")
    return float(alpha)
