"""Types of options: numbers with their ranges, class tables, lists for which a lone value may stand."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from dask_uncert.formulas.measures import parse_measure
from dask_uncert.io.validation import Number, WholeNumber, one_or_more

Inside = Annotated[Number, Field(gt=0, lt=1)]
Side = Annotated[WholeNumber, Field(ge=1, le=2**31 - 1)]
NotNegative = Annotated[Number, Field(ge=0)]
Scale = Annotated[NotNegative, Field(le=1e6)]
Code = Annotated[WholeNumber, Field(ge=-(2**63), le=2**63 - 1)]


def _coded(names: Any) -> Any:
    return dict(enumerate(names)) if isinstance(names, list | tuple | np.ndarray) else names


def different(classes: dict[int, str]) -> dict[int, str]:
    """Refuse a table in which two codes have the same name."""
    names = list(classes.values())
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the names {', '.join(twice)} occur more than once")
    return classes


ClassTable = Annotated[
    dict[Code, str],
    BeforeValidator(_coded, json_schema_input_type=dict[int, str] | list[str]),
    AfterValidator(different),
]
"""Code to name, in the order of the class axis; a list of names has the codes 0, 1, ..."""

FROM_FILE: Final = "from_file"
Classes = Annotated[
    Annotated[ClassTable, Tag("table")] | Annotated[Literal["from_file"], Tag("word")],
    Discriminator(lambda classes: "word" if isinstance(classes, str) else "table"),
]
"""A class table, or the word that says that the reference's file has it."""


def _parsed(measure: Any) -> Any:
    parse_measure(measure)
    return measure


MeasureEntry = Annotated[str | dict[str, dict[str, Any] | None], AfterValidator(_parsed)]
MeasureList = Annotated[list[MeasureEntry], one_or_more(MeasureEntry)]
Codes = Annotated[list[Code], one_or_more(Code)]
Strings = Annotated[list[str], one_or_more(str)]


def once(names: list[str]) -> list[str]:
    """Refuse a map that is asked for twice."""
    if len(set(names)) < len(names):
        raise ValueError("a map is asked for twice")
    return names


MapList = Annotated[list[str], one_or_more(str), AfterValidator(once)]
