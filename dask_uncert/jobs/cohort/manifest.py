"""Manifests: tables with one row per case: its patient, the paths of its inputs, and its groups.

A CSV file (UTF-8, commas) or a Parquet file, at a path or a URL. Paths in it are relative to the manifest itself.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dask_uncert.errors import InputError, one_line
from dask_uncert.io.paths import check_not_special, file_system, named_path
from dask_uncert.summaries.case import Case, composed

PATIENT = "patient"
PARQUET = (".parquet", ".pq")
LONGEST_NAME = 200  # bytes; file systems allow 255 a folder


@dataclass(frozen=True)
class ManifestRow:
    """A row: the case, and the path of each of its inputs, by column."""

    case: Case
    paths: dict[str, str]


def read_manifest(
    manifest: str, inputs: Sequence[str], visits: str | None = None, groups: Sequence[str] = ()
) -> list[ManifestRow]:
    """Return the rows of a manifest, sorted by the names of the cases.

    inputs: columns of paths. visits: the column that distinguishes several rows of a patient. groups: columns that cases
    are grouped by. Other columns are ignored. Names, of columns too, are compared in Unicode's composed form (NFC).

    Raises InputError with the row and column of a cell that is missing, empty or repeated, and for patients or visits
    that differ only by case.
    """
    wanted = [PATIENT, *([visits] if visits else []), *inputs, *groups]
    repeated = sorted({column for column in wanted if wanted.count(column) > 1})
    if repeated:
        raise InputError(f"the manifest column {', '.join(repeated)} is used for two things; name two columns.")
    rows: dict[str, tuple[int, ManifestRow]] = {}
    spellings: dict[tuple[str, ...], tuple[int, str]] = {}
    for number, cells in _cells(manifest, wanted):
        for column in wanted:
            if not cells[column]:
                raise InputError(f"manifest {manifest}: row {number}, column {column} is empty; fill it in.")
        for column in {PATIENT, visits or PATIENT, *groups}:
            cells[column] = composed(cells[column])
        for column in (PATIENT, visits) if visits else (PATIENT,):
            name = cells[column]
            _check_name(manifest, number, column, name)
            patient = cells[PATIENT].casefold() if column == visits else ""
            row_before, before = spellings.setdefault((column, patient, name.casefold()), (number, name))
            if name != before:
                raise InputError(
                    f"the manifest {manifest} has {before!r} in row {row_before} and {name!r} in row {number}, column "
                    f"{column}, which differ by case alone. Write one the same way as the other, or rename it."
                )
        grouped = tuple((column, cells[column]) for column in groups)
        case = Case(cells[PATIENT], cells[visits] if visits else "", grouped)
        row = ManifestRow(case, {column: resolve_path(manifest, cells[column]) for column in inputs})
        if case.name in rows:
            raise InputError(_duplicate_message(manifest, visits, rows[case.name], (number, row)))
        rows[case.name] = number, row
    if not rows:
        raise InputError(f"the manifest {manifest} has no row below its header.")
    return [row for _, (_, row) in sorted(rows.items())]


def resolve_path(manifest: str, path: str) -> str:
    """Return a path of a manifest as an absolute path; a URL is unchanged."""
    folder, _, _ = manifest.rpartition("/")
    if "://" in manifest and "://" not in path and not os.path.isabs(path):
        return f"{folder}/{path}"
    return named_path(path, folder)


def _duplicate_message(manifest: str, visits: str | None, *rows: tuple[int, ManifestRow]) -> str:
    case = rows[0][1].case
    where = " and ".join(f"{next(iter(row.paths.values()))} in row {number}" for number, row in rows)
    name = f"visit {case.visit} of patient {case.patient}" if visits else f"patient {case.patient}"
    hint = "" if visits else " If these are visits, add `visits: <the column that distinguishes them>` to the job."
    return f"the manifest {manifest} has {name} twice: {where}.{hint}"


def _check_name(manifest: str, number: int, column: str, name: str) -> None:
    """Raise InputError for a name that cannot be a folder of maps and an argument of commands."""
    odd = not name.strip(".") or name.startswith("__") or any(c in "/\\" or not c.isprintable() for c in name)
    if odd or len(name.encode()) > LONGEST_NAME or name.lower().startswith("zarr.json"):
        raise InputError(
            f"the manifest {manifest} has {one_line(repr(name), 60)} in row {number}, column {column}; a name must not "
            f"contain a slash, a backslash or unprintable characters, start with __ or zarr.json, be dots alone, or be "
            f"longer than {LONGEST_NAME} bytes."
        )


def _cells(manifest: str, wanted: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number (the header is row 1) and the cells by column of each row that is not empty."""
    read = _parquet if manifest.lower().endswith(PARQUET) else _csv
    try:
        header, body = read(manifest)
        asked = {composed(column): column for column in wanted}
        header = [asked.get(composed(column), column) for column in header]
        missing = [column for column in wanted if column not in header]
        if missing:
            raise InputError(
                f"the manifest {manifest} has no column {', '.join(missing)}; it has {', '.join(header) or 'none'}. "
                f"It needs one for each of the job's `inputs`, and `{PATIENT}`."
            )
        if repeated := sorted({column for column in header if header.count(column) > 1}):
            raise InputError(f"the manifest {manifest} has the column {', '.join(repeated)} more than once.")
        for number, cells in body:
            if len(cells) > len(header):
                raise InputError(
                    f"the manifest {manifest} has {len(cells)} cells in row {number}, but {len(header)} columns; put "
                    f"quotes around cells that hold a comma."
                )
            if any(cells):
                yield number, dict(zip(header, [*cells, *[""] * (len(header) - len(cells))], strict=True))
    except FileNotFoundError:
        raise InputError(f"there is no manifest at {manifest}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the manifest {manifest} cannot be read: {one_line(error)}.") from None


def _csv(manifest: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    with io.TextIOWrapper(_open(manifest), encoding="utf-8-sig", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file, strict=True)]
    return rows[0] if rows else [], enumerate(rows[1:], start=2)


def _open(manifest: str) -> Any:
    check_not_special(manifest, "the manifest ")
    system, path = file_system(manifest)
    return system.open(path, "rb")


def _parquet(manifest: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    import pandas

    try:
        with _open(manifest) as file:
            table = pandas.read_parquet(file)
    except ImportError:
        install = "`python -m pip install pyarrow`"
        raise InputError(f"the manifest {manifest} needs the package pyarrow: {install}. Or write CSV.") from None
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"the manifest {manifest} is not a Parquet file: {one_line(error)}.") from None
    columns = [[_text(value) for value in table[column]] for column in table.columns]
    rows = map(list, zip(*columns, strict=True))
    return [str(column) for column in table.columns], enumerate(rows, start=2)


def _text(value: Any) -> str:
    """Return a cell as CSV would hold it; "" where it is missing."""
    return "" if value is None or value != value else str(value).strip()
