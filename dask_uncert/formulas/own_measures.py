"""A user's own measure of uncertainty: found by its name, checked once, and computed for a block.

It is a function from probability vectors (n, C), normalised float64, to values (n,) in [0, upper]: 0 where one class has
probability 1, the same for every order of the classes, and of each vector by itself.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

import numpy as np

from dask_uncert.errors import InputError, exception_text
from dask_uncert.formulas.typing import Floats

GROUP = "dask_uncert.measures"
"""Entry points of this group name measures of installed packages."""
TILE = 1024  # vectors at a time, always: what a function makes of one does not depend on how a scene is cut
ROUNDING = 1e-9  # of the upper bound: how far values may be off by rounding
Function = Callable[[Any], Any]


class Functions(dict[str, Function]):
    """Functions given in Python, by what names them in the request; travels to workers with it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def reference_to(function: Function) -> str:
    """Return what names a function, `module:function`, whether it can be imported or not."""
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


def installed(name: str) -> str | None:
    """Return `module:function` of the entry point of this name; None without one."""
    return next((entry.value for entry in entry_points(group=GROUP) if entry.name == name), None)


def installed_names() -> tuple[str, ...]:
    """Return the names of the measures of installed packages."""
    return tuple(sorted(entry.name for entry in entry_points(group=GROUP)))


@lru_cache(maxsize=64)
def imported(reference: str) -> Function:
    """Return the function at `module:function`; InputError where there is none."""
    try:
        found: Any = resolve_name(reference)
    except Exception as error:  # the module may raise anything
        raise InputError(
            f"measures: {reference} cannot be imported ({exception_text(error)}). Install the package that has it, or put "
            f"the folder of the module on PYTHONPATH, on every worker."
        ) from None
    if not callable(found):
        raise InputError(f"measures: {reference} is no function.")
    return found  # type: ignore[no-any-return]


def source_digest(reference: str) -> str:
    """Return a digest of the source file of `module:function`, so that a changed one is computed again."""
    try:
        text = inspect.getsource(inspect.getmodule(inspect.unwrap(imported(reference))))  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def check(reference: str, function: Function, classes: int, upper: float) -> None:
    """Check that a function keeps what holds for a measure, on vectors of so many classes; raises InputError."""
    rng = np.random.default_rng(0)
    near = np.eye(classes)[rng.integers(0, classes, TILE // 8)] * (1 - 1e-9) + 1e-9 / classes
    drawn = [rng.dirichlet(np.full(classes, alpha), TILE // 4) for alpha in (0.1, 1.0, 10.0)]
    p = np.concatenate([np.eye(classes)[:TILE], np.full((1, classes), 1 / classes), near, *drawn])
    values = own_values(reference, function, p, upper)
    certain = min(classes, TILE)
    if not (np.abs(values[:certain]) <= ROUNDING * upper).all():
        worst = int(np.abs(values[:certain]).argmax())
        raise _broken(reference, "0 where one class has probability 1", f"{values[worst]:g} for class {worst}")
    order, classes_order = rng.permutation(len(p)), np.roll(np.arange(classes), 1)
    if not np.array_equal(own_values(reference, function, p[order], upper), values[order]):
        raise _broken(reference, "of each vector by itself", "other values where vectors stand in another order")
    turned = own_values(reference, function, np.ascontiguousarray(p[:, classes_order]), upper)
    worst = int(np.abs(turned - values).argmax())
    if not np.abs(turned - values).max() <= 1e3 * ROUNDING * upper:
        raise _broken(
            reference,
            "the same for every order of the classes",
            f"{values[worst]:g} for {np.array2string(p[worst], precision=4)}, and {turned[worst]:g} with the classes moved "
            f"on by one",
        )


def own_values(reference: str, function: Function, p: Floats, upper: float) -> Floats:
    """Return a function's values (n,) of normalised float64 vectors (n, C), without rounding outside [0, upper].

    Raises InputError for values of another shape, or further outside.
    """
    values = np.empty(len(p))
    for start in range(0, len(p), TILE):
        part = p[start : start + TILE]
        tile = np.zeros((TILE, p.shape[1]))
        tile[: len(part)] = part
        tile[len(part) :, 0] = 1.0
        values[start : start + TILE] = _called(reference, function, tile)[: len(part)]
    off = ~((values >= -ROUNDING * upper) & (values <= upper * (1 + ROUNDING)))
    if off.any():
        first = int(off.argmax())
        what = f"finite and in [0, {upper:g}] (declare another `upper` if it reaches further)"
        raise _broken(reference, what, f"{values[first]:g} for {np.array2string(p[first], precision=4)}")
    return np.clip(values, 0.0, upper) + 0.0


def _called(reference: str, function: Function, tile: Floats) -> Floats:
    tile.flags.writeable = False
    try:
        values = np.asarray(function(tile))
    except Exception as error:  # a user's function may raise anything
        raise InputError(
            f"measures: {reference} raised {exception_text(error)} for probabilities of shape {tile.shape}."
        ) from error
    if values.shape != tile.shape[:1] or values.dtype.kind not in "fiu":
        raise _broken(
            reference, f"a number for each vector: shape {tile.shape[:1]}", f"shape {values.shape} of {values.dtype}"
        )
    return values.astype(np.float64)


def _broken(reference: str, wanted: str, found: str) -> InputError:
    return InputError(
        f"measures: {reference} does not keep to what holds for a measure: {wanted}. It returned {found}."
    )


def with_references(measures: Any) -> tuple[Any, Mapping[str, Function]]:
    """Return entries of measures with functions named as `module:function`, and the functions by these names."""
    functions: dict[str, Function] = {}

    def named(word: Any) -> Any:
        if not callable(word) or isinstance(word, type):
            return word
        if getattr(word, "__name__", "<lambda>") == "<lambda>":
            raise InputError("measures: give a function of your own a name, by `def`: results and maps carry it.")
        functions[reference_to(word)] = word
        return reference_to(word)

    def entry(measure: Any) -> Any:
        return {named(key): value for key, value in measure.items()} if isinstance(measure, Mapping) else named(measure)

    if isinstance(measures, list | tuple):
        return [entry(measure) for measure in measures], functions
    return entry(measures), functions
