"""From a caller's or a job file's words to a Request; everything is checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.formulas.measures import SAMPLE_KINDS, Measure, parse_measure, upper_bound
from dask_uncert.io.maps import MAPS
from dask_uncert.spec.request import Request
from dask_uncert.spec.soft_confusion import soft_from
from dask_uncert.spec.tiles import tiles_from
from dask_uncert.summaries.evaluation import Class

UNCERTAINTY_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def request_of(
    *,
    classes: Mapping[int, str] | Sequence[str],
    ignore: Iterable[int] = (),
    measures: Sequence[str | Mapping[str, Any] | Measure] = ("gini", "entropy", "fisher_rao"),
    soft_confusion: Sequence[Mapping[str, Any]] = (),
    uncertainty_confusion: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    maps: Sequence[str] = (),
    confidence: Mapping[str, Any] | None = None,
    has_uncertainty: bool = False,
    has_samples: bool = False,
    fuzzy: bool = False,
    raters: int | None = None,
    leave_out_off: bool = False,
) -> Request:
    """The Request these words ask for; InputError where a word is unknown or words contradict each other."""
    table = class_table(classes)
    ignored = tuple(int(code) for code in ignore)
    both = sorted(set(ignored) & {one.code for one in table})
    if both:
        raise InputError(f"ignore: codes {both} are in the class table too; a code is a class or ignored.")
    chosen = _measures(measures, has_uncertainty, has_samples)
    names = [one.name for one in chosen]
    soft = soft_from(soft_confusion, table, names, has_uncertainty)
    thresholds = _thresholds(uncertainty_confusion, chosen, len(table))
    bins = dict(calibration or {}).get("bins", 15)
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InputError(f"calibration: bins must be a positive whole number, found {bins!r}.")
    _check_maps(maps, names)
    if raters is not None and (isinstance(raters, bool) or not isinstance(raters, int) or raters < 1):
        raise InputError(f"reference: raters must be a positive whole number, found {raters!r}.")
    request = Request(
        classes=table,
        ignore=ignored,
        measures=chosen,
        maxima=(1.0,) * len(chosen),
        thresholds=thresholds,
        calibration_bins=bins,
        soft=soft.settings,
        maps=tuple(maps),
        leave_out_off=leave_out_off,
        reference="share" if fuzzy else "codes",
        soft_maps=soft.maps,
        raters=raters,
        sweeps=soft.sweeps,
        tiles=None if confidence is None else tiles_from(confidence),
    )
    if len(request.layers) < len(maps) + 5 * len(soft.maps):
        raise InputError("soft_confusion: maps of two classes have the same name; rename one of the classes.")
    return request


def class_table(classes: Mapping[int, str] | Sequence[str]) -> tuple[Class, ...]:
    """Classes in the order of the class axis: {code: name}, or names whose codes are 0, 1, ..."""
    pairs = classes.items() if isinstance(classes, Mapping) else enumerate(classes)
    table = []
    for code, name in pairs:
        if isinstance(code, bool) or not isinstance(code, int):
            raise InputError(f"classes: the code {code!r} of {name!r} is no whole number.")
        table.append(Class(code, str(name)))
    names = [one.name for one in table]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"classes: the names {', '.join(twice)} occur more than once.")
    return tuple(table)


def _measures(
    words: Sequence[str | Mapping[str, Any] | Measure], has_uncertainty: bool, has_samples: bool
) -> tuple[Measure, ...]:
    try:
        chosen = tuple(parse_measure(word) for word in words)
    except ValueError as error:
        raise InputError(f"measures: {error}.") from None
    names = [one.name for one in chosen]
    if len(set(names)) < len(names):
        raise InputError(
            f"measures: {', '.join(sorted({n for n in names if names.count(n) > 1}))} asked twice."
        )
    for one in chosen:
        if one.kind == "uncertainty" and not has_uncertainty:
            raise InputError("measures: `uncertainty` needs an input of that name.")
        if one.kind in SAMPLE_KINDS and not has_samples:
            raise InputError(f"measures: `{one.name}` needs the input `samples`; one prediction has none.")
    return chosen


def _thresholds(
    words: Mapping[str, Any] | None, chosen: tuple[Measure, ...], classes: int
) -> tuple[tuple[float, ...], ...]:
    """For each measure the thresholds asked for; none where it is not among those asked.

    Thresholds for all measures go to those whose range holds them; measures that are named must hold them. Those
    that nobody stated go wherever they fit: the entropies of two classes end at ln 2.
    """
    given = dict(words or {})
    names = [one.name for one in chosen]
    asked = given.pop("measures", None)
    levels = given.pop("thresholds", UNCERTAINTY_THRESHOLDS)
    if given:
        raise InputError(f"uncertainty_confusion: unknown word {', '.join(map(repr, given))}.")
    for name in asked or ():
        if name not in names:
            raise InputError(
                f"uncertainty_confusion: {name!r} is not among the measures asked for: {', '.join(names)}."
            )
    for t in levels:
        if isinstance(t, bool) or not isinstance(t, int | float) or not t > 0:
            raise InputError(f"uncertainty_confusion: thresholds must be numbers above 0, found {t!r}.")
    stated = tuple(levels) != UNCERTAINTY_THRESHOLDS
    uppers = {one.name: upper_bound(one, classes) for one in chosen}
    for t in levels:
        short = [name for name in asked or names if t > uppers[name]]
        if short and stated and (asked is not None or len(short) == len(names)):
            raise InputError(
                f"uncertainty_confusion: the threshold {t:g} is above {uppers[short[0]]:g}, the largest value of "
                f"{short[0]}."
            )
    unique = sorted({float(t) for t in levels})
    return tuple(
        tuple(t for t in unique if t <= uppers[name]) if asked is None or name in asked else ()
        for name in names
    )


def _check_maps(maps: Sequence[str], names: list[str]) -> None:
    for name in maps:
        if name not in names and name not in MAPS:
            raise InputError(
                f"maps: {name!r} is neither a measure asked for ({', '.join(names)}) nor one of {', '.join(MAPS)}."
            )
    if len(set(maps)) < len(maps):
        raise InputError("maps: a map is asked twice.")
