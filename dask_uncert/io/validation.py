"""Strict option models, and their errors as one paragraph that says what, where and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from dask_uncert.errors import InputError, listed, one_line, suggestion

MOST_PROBLEMS = 5  # that one message lists
SHORT = {"missing": "is missing", "too_short": "is empty", "string_too_short": "is empty"}
"""By pydantic's type of an error, what to say instead of its message."""
AnyModel = TypeVar("AnyModel", bound=BaseModel)
Content = TypeVar("Content")


def _not_bool(value: Any) -> Any:
    """Refuse true and false, which Python counts among the whole numbers."""
    if isinstance(value, bool | np.bool_):
        raise ValueError("should be a number")
    return value


Number = Annotated[float, BeforeValidator(_not_bool)]
WholeNumber = Annotated[int, BeforeValidator(_not_bool)]
AboveZero = Annotated[Number, Field(gt=0)]
Finite = Annotated[Number, Field(allow_inf_nan=False)]
Counting = Annotated[WholeNumber, Field(ge=1, le=10**6)]


def one_or_more(kind: Any) -> Any:
    """Return what lets a list field take a lone value for a list of one, or an array; kind: of a value, for the schema."""

    def as_list(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        return [value] if isinstance(value, str | int | float | np.generic | Mapping) else value

    return BeforeValidator(as_list, json_schema_input_type=kind | list[kind])


def names_in(value: Any) -> Any:
    """Return the names in a text such as "class, y, x" as a list; anything else unchanged."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


NameList = Annotated[list[str], BeforeValidator(names_in, json_schema_input_type=str | list[str])]
"""Names as a list, or as one text with commas."""


def unknown_keys(keys: Iterable[object], known: Sequence[str]) -> str | None:
    """Return an error message about the first unknown key; None if all keys are known.

    >>> unknown_keys(["measurs"], ["maps", "measures"])
    'unknown key `measurs`. Did you mean `measures`?'
    >>> unknown_keys(["bands"], ["maps", "measures"])
    'unknown key `bands`. Known keys: maps, measures.'
    """
    for key in keys:
        if key not in known:
            return f"unknown key `{key}`. {suggestion(key, known, 'Known keys')}"
    return None


class StrictModel(BaseModel):
    """Options that refuse unknown keys and do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if isinstance(values, Mapping) and (problem := unknown_keys(values, known)):
            raise ValueError(problem)
        return values


def validated(model: type[AnyModel], options: Mapping[str, Any], where: str = "", hint: str = "") -> AnyModel:
    """Return the options as a model.

    where: the file that holds them, for the message; hint: ends the message. Raises InputError.
    """
    try:
        return model.model_validate(options)
    except ValidationError as error:
        raise InputError(f"{where}{problems(error, options)}{hint}") from None


def read_json(kind: type[Content], text: bytes, path: object, hint: str) -> Content:
    """Return the content of a JSON file that dask-uncert wrote; hint: ends the message. Raises InputError."""
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = f"`{'.'.join(map(str, first['loc']))}`: " if first["loc"] else ""
        problem = one_line(f"{where}{first['msg']}", 200)
        raise InputError(f"{path} is not as dask-uncert writes it ({problem}). {hint}") from None


def problems(error: ValidationError, options: Any) -> str:
    """Return what is wrong with options, problem by problem, as one sentence or more."""
    messages: dict[tuple[str, ...], str] = {}
    # Each type that a value may have reports its own problem: wrong types last, and only the deepest ones.
    for problem in sorted(error.errors(), key=lambda entry: entry["type"].endswith(("_type", "_parsing"))):
        message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
        path = _path(problem["loc"], options, problem["type"] == "missing")
        if problem["type"] in SHORT:
            message = SHORT[problem["type"]]
        elif message.startswith("should "):
            value = problem["input"]
            message += f", found {value!r}" if isinstance(value, str | int | float | None) else ""
            if problem["type"] == "literal_error" and isinstance(value, str):
                near = suggestion(value, re.findall("'([^']*)'", problem["ctx"]["expected"]))
                message += f". {near}" if near.startswith("Did") else ""
        else:
            message = f": {message}" if path else message.replace("unknown", "Unknown", 1)
        messages.setdefault(path, f"`{'.'.join(path)}` {message}".replace("` :", "`:") if path else message)
    relevant = [
        text
        for path, text in messages.items()
        if not any(other != path and other[: len(path)] == path for other in messages)
    ]
    text = listed(relevant, MOST_PROBLEMS, "; ")
    return text if text.endswith((".", "?")) else f"{text}."


def _path(parts: Sequence[str | int], options: Any, missing: bool) -> tuple[str, ...]:
    """Return the keys and indices that lead to a value, without pydantic's names of types."""
    path: list[str] = []
    value: Any = options
    for number, part in enumerate(parts):
        within = range(len(value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
        if isinstance(within, Mapping | range) and part in within:
            value = value[part]
        elif not (missing and number == len(parts) - 1):
            continue
        path.append(str(part))
    return tuple(path)
