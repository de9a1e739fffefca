"""A manifest: one row a case, which says who it is, where its inputs lie and which groups it belongs to.

A CSV file (UTF-8, commas) or a Parquet file, at a path or a URL. Paths in it are relative to the manifest itself.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.paths import file_system
from dask_uncert.summaries.stack import Case

PATIENT = "patient"
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class ManifestRow:
    """One row: who the case is, and the place of each input, by column."""

    case: Case
    places: dict[str, str]


def read_manifest(
    place: str, inputs: Sequence[str], visits: str | None = None, groups: Sequence[str] = ()
) -> list[ManifestRow]:
    """The rows, sorted by the cases' names.

    inputs: the columns that hold places. visits: the column that tells several rows of a patient apart.
    groups: columns whose values cases are grouped by. Other columns are left alone.

    Raises InputError, naming row and column, for what is missing, empty or there twice.
    """
    wanted = [PATIENT, *([visits] if visits else []), *inputs, *groups]
    twice = sorted({column for column in wanted if wanted.count(column) > 1})
    if twice:
        raise InputError(
            f"the manifest column {', '.join(twice)} would serve twice; name another for each use."
        )
    lines: list[ManifestRow] = []
    rows: dict[str, tuple[int, ManifestRow]] = {}
    for number, row in _rows(place, wanted):
        for column in wanted:
            if not row[column]:
                raise InputError(
                    f"the manifest {place} has nothing in row {number}, column {column}; fill it in."
                )
        _check_name(place, number, PATIENT, row[PATIENT])
        if visits:
            _check_name(place, number, visits, row[visits])
        grouped = tuple((column, row[column]) for column in groups)
        case = Case(row[PATIENT], row[visits] if visits else "", grouped)
        lines.append(ManifestRow(case, {column: beside(place, row[column]) for column in inputs}))
        earlier = rows.setdefault(case.name, (number, lines[-1]))
        if earlier[1] is not lines[-1]:
            raise InputError(_said_twice(place, visits, earlier, (number, lines[-1])))
    if not lines:
        raise InputError(f"the manifest {place} has no row below its header.")
    return sorted(lines, key=lambda line: line.case.name)


def beside(manifest: str, place: str) -> str:
    """A place in a manifest, made absolute; a URL as it is."""
    if "://" in place:
        return place
    folder, _, _ = manifest.rpartition("/")
    if "://" in manifest and not os.path.isabs(place):
        return f"{folder}/{place}"
    return os.path.abspath(os.path.join(folder or os.curdir, place))


def _said_twice(
    place: str, visits: str | None, earlier: tuple[int, ManifestRow], later: tuple[int, ManifestRow]
) -> str:
    case = earlier[1].case
    where = " and ".join(f"{next(iter(line.places.values()))} in row {row}" for row, line in (earlier, later))
    what = f"visit {case.visit} of patient {case.patient}" if visits else f"patient {case.patient}"
    hint = "" if visits else " If these are visits, say `visits: <the column that tells them apart>`."
    return f"the manifest {place} has {what} twice: {where}.{hint}"


def _check_name(place: str, number: int, column: str, name: str) -> None:
    """Names become folders of maps and words of commands."""
    if name in (".", "..") or name.startswith("__") or any(c == "/" or not c.isprintable() for c in name):
        raise InputError(
            f"the manifest {place} has {name!r} in row {number}, column {column}; a name may hold no slash and "
            f"nothing unprintable, may not begin with __, nor be a dot or two."
        )


def _rows(place: str, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number (the header is row 1) and cells by column, without blanks around them, of each row that is not empty."""
    read = _parquet if place.lower().endswith(PARQUET) else _csv
    try:
        header, body = read(place)
        missing = [column for column in wanted if column not in header]
        if missing:
            raise InputError(
                f"the manifest {place} has no column {', '.join(missing)}; it has {', '.join(header) or 'none'}. "
                f"It needs one a word of `inputs`, and `{PATIENT}`."
            )
        if len(set(header)) < len(header):
            again = sorted({column for column in header if header.count(column) > 1})
            raise InputError(f"the manifest {place} has the column {', '.join(again)} more than once.")
        for number, cells in body:
            if len(cells) > len(header):
                raise InputError(
                    f"the manifest {place} has {len(cells)} cells in row {number}, but {len(header)} columns; put "
                    f"quotes around cells that hold a comma."
                )
            if any(cells):
                yield number, dict(zip(header, [*cells, *[""] * (len(header) - len(cells))], strict=True))
    except FileNotFoundError:
        raise InputError(f"there is no manifest at {place}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the manifest {place} cannot be read: {' '.join(str(error).split())}.") from None


def _csv(place: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    with io.TextIOWrapper(_opened(place), encoding="utf-8-sig", newline="") as file:
        listed = [[cell.strip() for cell in row] for row in csv.reader(file, strict=True)]
    header = listed[0] if listed else []
    return header, enumerate(listed[1:], start=2)


def _opened(place: str) -> Any:
    system, path = file_system(place)
    return system.open(path, "rb")


def _parquet(place: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    import pandas

    try:
        with _opened(place) as file:
            table = pandas.read_parquet(file)
    except ImportError:
        raise InputError(
            f"the manifest {place} is a Parquet file, which needs the package pyarrow: "
            f"`python -m pip install pyarrow`. Or write it as CSV."
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(
            f"the manifest {place} is no Parquet file: {' '.join(str(error).split())}."
        ) from None
    columns = [[_text(value) for value in table[column]] for column in table.columns]
    return [str(column) for column in table.columns], enumerate(
        map(list, zip(*columns, strict=True)), start=2
    )


def _text(value: Any) -> str:
    """A cell as CSV would hold it; "" where it is missing."""
    return "" if value is None or value != value else str(value).strip()
