"""Look at a user's files and write a job for them, with a comment at each guess."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from dask_uncert.errors import InputError, OutputError, listed, plural
from dask_uncert.inputs.cube import CLASS
from dask_uncert.io.open import FORMATS, arrays_in
from dask_uncert.jobs.look import Finding, Source, give_roles, open_finding

ZARR_FILES = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
MARK = "# GUESS"
FROM_FILE = "names from the file"
ORDER = ("probabilities", "samples", "reference", "mask", "features", "uncertainty", "weight")
HEAD = """\
# Written by `dask-uncert init`. Each line marked {mark} is a guess: check it, correct it, and delete the mark.
#
#   dask-uncert plan {name}    # what would be read and written
#   dask-uncert run {name}
#
# `dask-uncert schema KEY` explains a key.
version: 1
kind: {kind}
"""
TAIL = """
measures: [gini, entropy]              # how uncertain the prediction is; `dask-uncert schema measures` lists all
calibration: {{bins: 15}}
{confidence}
maps: {maps}

output: {output}
"""
ENDINGS = tuple(ending for form in FORMATS for ending in form.endings)


def init(*files: str | Path, out: str | Path = "job.yaml") -> Path:
    """Look at files and write a job that evaluates them, in which each guess is marked.

    Parameters
    ----------
    *files : str or path
        Files and stores of a scene: predictions, reference, and others. Or folders with one file a case, for a cohort:
        one folder for each input, with files whose names begin or end alike.
    out : str or path, default "job.yaml"
        The job file. For a cohort the manifest is written beside it, ``manifest.csv``.

    Returns
    -------
    pathlib.Path
        The job file.

    Raises
    ------
    InputError
        If a file cannot be read, if no reference is found, or if a file to be written exists; nothing is written then.
    OutputError
        If the job cannot be written.

    Notes
    -----
    Reads the header of each file and a sample of its values. Guesses stand in the job alone: nothing is evaluated until you
    have run it. The command is ``dask-uncert init``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.init("nothing.tif")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: init: there is nothing at nothing.tif.
    """
    job, paths = Path(out), [Path(file) for file in files]
    for path in paths:
        if not path.exists():
            raise InputError(f"init: there is nothing at {path}.")
    if not paths:
        raise InputError("init: name the files of a scene, or one folder for each input of a cohort.")
    folders = [path for path in paths if _is_folder_of_cases(path)]
    if folders and len(folders) < len(paths):
        other = next(path for path in paths if path not in folders)
        raise InputError(f"init: {folders[0]} is a folder of cases, but {other} is one file. Name files, or folders.")
    cohort = bool(folders)
    manifest = job.parent / "manifest.csv"
    for path in (job, manifest) if cohort else (job,):
        if os.path.lexists(path):
            raise InputError(f"init: {path} exists, and nothing is overwritten. Name another with --out.")
    sources = _folder_sources(folders) if cohort else _file_sources(paths)
    findings = [finding for source in sources if (finding := open_finding(source)) is not None]
    give_roles(findings)
    used = sorted((f for f in findings if f.role), key=lambda f: ORDER.index(f.role))
    if used[0].role not in ("probabilities", "samples"):
        raise InputError(
            f"init: {listed([f.source.label for f in findings], 5)} hold no prediction: probabilities that sum to 1 along "
            f"an axis, or one number in [0, 1] a pixel for two classes. Name the file of the probabilities, too."
        )
    texts = {job: _job(used, [f for f in findings if not f.role], job, cohort)}
    if cohort:
        used = [finding for finding in used if finding.role != "features"]
        texts[manifest] = _manifest(used, manifest)
    try:
        job.parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
    except OSError as error:
        raise OutputError(f"init: {path} cannot be written: {error.strerror}.") from None
    return job


def guesses(job: Path) -> list[str]:
    """Return the lines of a job that are marked as guesses."""
    return [line.strip() for line in job.read_text(encoding="utf-8").splitlines() if f"{MARK}:" in line]


def _is_folder_of_cases(path: Path) -> bool:
    return path.is_dir() and not any((path / name).exists() for name in ZARR_FILES)


def _file_sources(paths: Iterable[Path]) -> list[Source]:
    return [Source(path.name, {"": path}, array) for path in paths for array in arrays_in(str(path), path.name)]


def _folder_sources(folders: Sequence[Path]) -> list[Source]:
    """Return each array of the folders' files, by case: the part of a name that differs in its folder."""
    by_case = {folder: _cases(folder) for folder in folders}
    common = set.intersection(*({*cases} for cases in by_case.values()))
    if not common:
        shown = "; ".join(f"{folder} has {listed(cases, 3)}" for folder, cases in by_case.items())
        raise InputError(f"init: the folders have no case in common, by the names of their files: {shown}.")
    sources = []
    for folder, cases in by_case.items():
        paths = {case: cases[case] for case in sorted(common)}
        first = next(iter(paths.values()))
        sources += [Source(folder.name, paths, array) for array in arrays_in(str(first), folder.name)]
    return sources


def _cases(folder: Path) -> dict[str, Path]:
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.name.lower().endswith(ENDINGS) or (path.is_dir() and not _is_folder_of_cases(path))
    ]
    if not files:
        raise InputError(f"init: {folder} holds no file of a readable format, such as {', '.join(ENDINGS[:5])}.")
    stems = [_stem(path) for path in files]
    start, end = _common_start(stems), _common_start([stem[::-1] for stem in stems])
    return {stem[len(start) : len(stem) - len(end)]: path for stem, path in zip(stems, files, strict=True)}


def _common_start(stems: Sequence[str]) -> str:
    """Return how all of several names begin, up to a character that is no letter or digit."""
    if len(stems) == 1:
        return ""
    same = takewhile(lambda letters: len({*letters}) == 1, zip(*stems, strict=False))
    return re.sub(r"[^\W_]+$", "", "".join(letter for letter, *_ in same))


def _stem(path: Path) -> str:
    ending = max((e for e in (*ENDINGS, ".zarr") if path.name.lower().endswith(e)), key=len, default="")
    return path.name[: len(path.name) - len(ending)]


def _manifest(used: Sequence[Finding], manifest: Path) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["patient", *(finding.role for finding in used)])
    for case in used[0].source.paths:
        rows.writerow([case, *(_relative(finding.source.paths[case], manifest.parent) for finding in used)])
    return text.getvalue()


def _job(used: Sequence[Finding], others: Sequence[Finding], job: Path, cohort: bool) -> str:
    """Return the text of the job."""
    by_role = {finding.role: finding for finding in used}
    prediction = used[0]
    lines = [HEAD.format(name=job.name, kind="cohort" if cohort else "scene", mark=MARK)]
    if cohort:
        lines.append("manifest: manifest.csv")
        cases = list(prediction.source.paths)
        lines.append(_guess(f"# {plural(len(cases), 'case')}: {listed(cases, 3)}", "each is a patient of its own; for several "
                            "visits of a patient see `dask-uncert schema visits`"))  # fmt: skip
        lines.append("")
    lines.append("inputs:" + ("                                # columns of the manifest" if cohort else ""))
    for finding in used:
        if cohort and finding.role == "features":
            continue
        where = {} if cohort else {"store": _relative(next(iter(finding.source.paths.values())), job.parent)}
        about: dict[str, Any] = {**where, **({"array": finding.source.array} if finding.source.array else {})}
        about |= {"dims": list(finding.dims)} if finding.dims else {}
        why = f"{finding.why}; dims: {finding.why_dims}" if finding.why_dims else finding.why
        lines.append(_guess(f"  {finding.role}: {_flow(about | finding.options)}", why))
    for finding in others:
        name = f"{finding.source.label}{f':{finding.source.array}' if finding.source.array else ''}"
        lines.append(f"# not used: {name}, shape {finding.stored.shape}{f' ({finding.why})' if finding.why else ''}")
    lines += ["", *_classes(by_role["reference"], prediction)]
    confidence = "confidence: {replicates: 1000}         # intervals, from drawing patients" if cohort else (
        "confidence: {unit: tile}               # intervals, from drawing tiles of the scene")  # fmt: skip
    maps = (
        "[]                              # or [entropy, correct]: a folder of maps a case"
        if cohort
        else "[entropy, predicted, correct]"
    )
    output = "results" if job.stem == "job" else f"{job.stem}_results"
    lines.append(TAIL.format(confidence=confidence, maps=maps, output=output))
    return "\n".join(lines)


def _classes(reference: Finding, prediction: Finding) -> list[str]:
    """Return the lines of the class table: names as the files have them, codes as the reference holds them."""
    dims = prediction.dims or prediction.stored.dims or ()
    number = prediction.stored.shape[dims.index(CLASS)] if CLASS in dims else 2
    codes, names = reference.codes, reference.names
    labels = [str(label) for label in prediction.labels or ()]
    unlabelled = {0} if len(names) == number + 1 or len(codes) == number + 1 else set()
    first = next((first for first in (0, 1) if {*codes} - unlabelled <= {*range(first, first + number)}), None)
    if len({*names} - unlabelled) == number:
        table, why = {code: name for code, name in names.items() if code not in unlabelled}, FROM_FILE
    elif first is not None and not unlabelled & {*range(first, first + number)}:
        table = {code: f"class {code}" for code in range(first, first + number)}
        why = f"{number} classes; the reference holds the codes {listed(codes, 8)}"
    else:
        kept = [code for code in codes if code not in unlabelled][:number]
        kept += [code for code in range(256) if code not in (*kept, 0)][: number - len(kept)]
        table = {code: f"class {code}" for code in sorted(kept)}
        why = f"{number} classes, but the reference holds the codes {listed(codes, 8)}"
    ignore = [code for code in codes if code not in table]
    if len(labels) == number and not labels[0].replace(".", "").isdigit() and why != FROM_FILE:
        table, why = dict(zip(table, labels, strict=True)), f"{why}; names from the prediction's file"
    lines = [_guess("classes:", f"code in the reference: name, in the order of the class axis; {why}")]
    lines += [f"  {code}: {_flow(name)}" for code, name in table.items()]
    reason = "reference codes of pixels that nobody labelled"
    return [*lines, _guess(f"ignore: {ignore}", reason) if ignore else f"ignore: []{' ' * 28}# {reason}"]


def _guess(line: str, why: str) -> str:
    return f"{line:38} {MARK}: {why}"


def _flow(value: Any) -> str:
    return (
        str(yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)).removesuffix("...\n").strip()
    )


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
