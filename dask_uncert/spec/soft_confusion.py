"""What is asked of soft confusion, from a caller's words: settings, maps of them, joint histograms for sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dask_uncert.errors import InputError
from dask_uncert.formulas.soft_confusion import DAMPING_FORMS
from dask_uncert.formulas.threshold_distributions import DISTRIBUTIONS
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.spec.request import SoftMaps, SweepWish
from dask_uncert.summaries.evaluation import Class
from dask_uncert.summaries.soft_confusion import SoftSettings

SOFT_WORDS = (
    "class",
    "thresholds",
    "sigmas",
    "dampings",
    "uncertainty",
    "distribution",
    "df",
    "damping_form",
    "reference_threshold",
    "reference_certainty",
    "maps",
    "sweep",
)
ERROR, MEMORY = 5e-5, 8e6
"""Of a joint histogram where nothing else is said: wanted error, and bytes of counts at most."""


class Soft(NamedTuple):
    """What is asked: a SoftSettings for each entry and class, maps, and joint histograms."""

    settings: tuple[SoftSettings, ...]
    maps: tuple[SoftMaps, ...]
    sweeps: tuple[SweepWish, ...]


def soft_from(
    entries: Sequence[Mapping[str, Any]], table: tuple[Class, ...], names: list[str], has_uncertainty: bool
) -> Soft:
    """What the entries of `soft_confusion` ask for; InputError where a word is unknown or out of range."""
    settings: list[SoftSettings] = []
    drawn: list[SoftSettings] = []
    wishes: list[SweepWish] = []
    for words in entries:
        found = _soft(words, table, names, has_uncertainty)
        settings += found
        drawn += found if words.get("maps") else []
        finer = _sweep(words.get("sweep", True))
        if finer is not None:
            wishes += [
                SweepWish(one.class_index, one.uncertainty, one.thresholds, one.reference_threshold, *finer)
                for one in found
            ]
    return Soft(tuple(settings), _soft_maps(drawn, table), tuple(wishes))


def _sweep(words: Any) -> tuple[float, float] | None:
    """The wanted error and the memory of a joint histogram; None where none is wanted."""
    if words is False:
        return None
    given = {} if words is True else words
    if not isinstance(given, Mapping) or not set(given) <= {"error", "memory"}:
        raise InputError(f"soft_confusion: sweep is true, false or error and memory, found {words!r}.")
    wanted = {"error": ERROR, "memory": MEMORY, **given}
    for word, value in wanted.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise InputError(f"soft_confusion: {word} of sweep must be a number above 0, found {value!r}.")
    return float(wanted["error"]), float(wanted["memory"])


def _soft(
    words: Mapping[str, Any], table: tuple[Class, ...], names: list[str], has_uncertainty: bool
) -> list[SoftSettings]:
    """One record a class; `class` is a name, a list of names, or left out for all."""
    unknown = [word for word in words if word not in SOFT_WORDS]
    if unknown:
        raise InputError(
            f"soft_confusion: unknown word {', '.join(map(repr, unknown))}; known: {', '.join(SOFT_WORDS)}."
        )
    known = [one.name for one in table]
    asked = words.get("class", known)
    indices = []
    for name in [asked] if isinstance(asked, str) else asked:
        if name not in known:
            raise InputError(f"soft_confusion: there is no class {name!r}; there are {', '.join(known)}.")
        indices.append(known.index(name))
    uncertainty = words.get("uncertainty")
    if (
        uncertainty is not None
        and uncertainty not in names
        and not (uncertainty == "uncertainty" and has_uncertainty)
    ):
        raise InputError(
            f"soft_confusion: the uncertainty {uncertainty!r} is not among the measures asked for: "
            f"{', '.join(names)}."
        )
    thresholds = _numbers("thresholds", words.get("thresholds", (0.5,)), 0.0, 1.0, inside=True)
    sigmas = _numbers("sigmas", words.get("sigmas", (0.0,)), 0.0, float("inf"))
    dampings = _numbers("dampings", words.get("dampings", (0.0,)), 0.0, float("inf"))
    if uncertainty is None and any(d > 0 for d in dampings):
        raise InputError("soft_confusion: a damping above 0 needs `uncertainty: <measure>`.")
    level = words.get("reference_threshold")
    if level is not None:
        (level,) = _numbers("reference_threshold", (level,), 0.0, 1.0, inside=True)
    for word, given, allowed in (
        ("distribution", words.get("distribution", "gaussian"), DISTRIBUTIONS),
        ("damping_form", words.get("damping_form", "exponential"), DAMPING_FORMS),
        ("reference_certainty", words.get("reference_certainty", "paper"), ("paper", "none")),
    ):
        if given not in allowed:
            raise InputError(f"soft_confusion: {word} {given!r} is not one of {', '.join(allowed)}.")
    if not isinstance(words.get("maps", False), bool):
        raise InputError(f"soft_confusion: maps is true or false, found {words['maps']!r}.")
    df = words.get("df")
    if (words.get("distribution") == "student-t") != (df is not None):
        raise InputError(
            "soft_confusion: df (degrees of freedom) goes with `distribution: student-t`, and it with df."
        )
    if df is not None:
        (df,) = _numbers("df", (df,), 0.0, float("inf"), inside=True)
    return [
        SoftSettings(
            class_index=index,
            thresholds=thresholds,
            sigmas=sigmas,
            dampings=dampings,
            uncertainty=uncertainty,
            distribution=words.get("distribution", "gaussian"),
            df=df,
            damping_form=words.get("damping_form", "exponential"),
            reference_threshold=level,
            reference_certainty=words.get("reference_certainty", "paper"),
        )
        for index in indices
    ]


def _soft_maps(drawn: Sequence[SoftSettings], table: tuple[Class, ...]) -> tuple[SoftMaps, ...]:
    """With labels that are array names: what is no letter, digit, `_` or `-` becomes `_`, doubles get their code."""
    indices = [one.class_index for one in drawn]
    twice = {table[i].name for i in indices if indices.count(i) > 1}
    if twice:
        raise InputError(
            f"soft_confusion: maps of {', '.join(sorted(twice))} are asked twice; one entry a class may say maps."
        )
    labels = soft_labels(table)
    return tuple(SoftMaps(one, labels[one.class_index]) for one in drawn)


def _numbers(word: str, values: Any, low: float, high: float, inside: bool = False) -> tuple[float, ...]:
    listed = values if isinstance(values, list | tuple) else [values]
    for v in listed:
        number = isinstance(v, int | float) and not isinstance(v, bool)
        if not (number and (low < v < high if inside else low <= v <= high)):
            raise InputError(
                f"soft_confusion: {word} must lie in {'(' if inside else '['}{low:g}, {high:g}"
                f"{')' if inside else ']'}, found {v!r}."
            )
    if not listed:
        raise InputError(f"soft_confusion: {word} is empty.")
    return tuple(float(v) for v in listed)
