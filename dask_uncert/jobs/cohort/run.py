"""A cohort's job, run: a stream of cases over a cluster, each leaving its file; then the output folder, from those."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters import connect
from dask_uncert.clusters.monitor import LOG, LOST, guarded, logged, logs, reported
from dask_uncert.clusters.task_pool import KilledError, stream
from dask_uncert.errors import ClusterError, InputError
from dask_uncert.io.output_folder import Report, being_written, peak_memory, versions, write_record
from dask_uncert.io.paths import AnyPath, absolute, is_remote, remove
from dask_uncert.io.saving import load
from dask_uncert.jobs.cohort.case import MAIN, CasePass, Outcome
from dask_uncert.jobs.cohort.manifest import ManifestRow
from dask_uncert.jobs.cohort.output import (
    Finished,
    Gathered,
    earlier_output,
    map_pictures,
    stacks_of,
    who,
    write_maps,
    write_summaries,
)
from dask_uncert.jobs.cohort.plan import CohortPlan, asked, files_of
from dask_uncert.jobs.cohort_schema import CohortJob
from dask_uncert.reports.results.cohort import Cohort
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Case

if TYPE_CHECKING:
    from distributed import Client

SHOWN = 5  # failed cases that a message names
FILES = ".cases"  # ends the name of the folder beside the output that holds what finished cases left


def run_cohort(
    words: CohortJob,
    folder: Path,
    output: AnyPath,
    cluster: str | Path | Client,
    fresh: bool = False,
    report: Report | None = None,
    page: Path | None = None,
) -> tuple[Evaluation, dict[str, str]]:
    """Run a cohort's job and write its output folder; returns the pooled Evaluation, and who failed and why.

    Cases that the finished output or case files of an earlier run hold are not computed again. page: as
    `performance_report` of `run`.
    """
    todo, output = asked(words, folder), absolute(output)  # workers may be elsewhere
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    earlier = earlier_output(output, todo.cases.asked, fresh)
    files = files_of(output)
    if fresh:
        remove(files.place)
    started, clock = datetime.now(UTC), time.perf_counter()
    # A case may end its process: on this machine processes of their own bear that, threads would end with it.
    alone = {"processes": True} if cluster == "local" else {}
    with connect.connect(cluster, **alone) as client, logged(client, files.place), reported(page):
        outcomes = _outcomes(
            todo.at(output, connect.memory_per_thread(client)), todo.lines, earlier, client, report
        )
        workers = connect.describe(client)
        memory = max(client.run(peak_memory, on_error="ignore").values(), default=0)
        said = logs(client)
    failed = {name: one.reason for name, one in outcomes.items() if one.status == "failed"}
    cases = [
        (replace(one.case, mark=outcomes[one.case.name].mark), outcomes[one.case.name]) for one in todo.lines
    ]
    gathered = Gathered(tuple(one for one in cases if one[1].status != "failed"), files, earlier)
    gathered, failed = _of_one_frame(gathered, failed)
    if not gathered.cases:
        name, reason = next(iter(failed.items()))
        raise InputError(f"none of the {len(failed)} cases could be evaluated; the first, {name}: {reason}")
    if earlier is not None and _is_the_same(gathered, failed, earlier, words):
        remove(files.place)
        return load_evaluation(output), failed
    computed = time.perf_counter()
    with being_written(output, elsewhere) as working:
        evaluation = write_summaries(gathered, working)
        if todo.cases.request.layers:
            write_maps(gathered.map_folders(), working, elsewhere)
        confidence, about = words.confidence.model_dump(mode="json"), _about(words, todo)
        lost = {line.case.name: line.case for line in todo.lines if line.case.name in failed}
        stacks = stacks_of(working)
        pictures = map_pictures(dict(gathered.map_folders()), list(todo.cases.request.layers))
        stack = stacks.pop(MAIN)
        cohort = Cohort(stack, failed, confidence, lost, pictures, raters=stacks)
        write_all(evaluation, working, about=about, cohort=cohort)
        if said:
            (working / LOG).write_text(said, encoding="utf-8")
        seconds = {"cases": computed - clock, "report": time.perf_counter() - computed}
        record = {
            "job": words.model_dump(mode="json", by_alias=True, exclude_none=True),
            "about": about,
            "asked": todo.cases.asked,
            "fingerprint": _fingerprint(todo.cases.asked, gathered, failed),
            "versions": versions(),
            "started": started.isoformat(timespec="seconds"),
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "cases": _said(gathered, failed, lost, earlier),
            "failed": failed,
            "maps": list(todo.cases.request.layers),
            "workers": workers,
            "peak_memory_bytes": memory,
            "counted": int(evaluation.ledger.counted),
            "excluded": evaluation.ledger.reasons(),
        }
        write_record(working, record)
    remove(files.place)  # what is finished keeps its cases itself
    return evaluation, failed


def failure(failed: Mapping[str, str], output: AnyPath) -> str:
    """One paragraph about the cases that failed."""
    shown = "; ".join(f"{name}: {reason}" for name, reason in list(failed.items())[:SHOWN])
    more = f"; and {len(failed) - SHOWN} more, named in {output / 'run.json'}" if len(failed) > SHOWN else ""
    return f"{len(failed)} case{'s' if len(failed) > 1 else ''} failed and {'are' if len(failed) > 1 else 'is'} left out: {shown}{more}"


def _outcomes(
    cases: CasePass,
    lines: Sequence[ManifestRow],
    earlier: Finished | None,
    client: Client,
    report: Report | None,
) -> dict[str, Outcome]:
    """What became of every case, by name; large ones last, each over the whole cluster."""
    known = {} if earlier is None else earlier.marks(with_maps=bool(cases.request.layers))
    tell = report or (lambda what, done, total: None)
    tell("cases", 0, len(lines))
    found: dict[str, Outcome] = {}
    large: list[ManifestRow] = []
    items = ((line, known.get(line.case.name, "")) for line in lines)
    for (line, _), outcome in stream(
        client, cases.one, items, "evaluate-case", named=lambda item: item[0].case.name
    ):
        if isinstance(outcome, Exception):
            outcome = Outcome("failed", reason=_reason(outcome))
        if outcome.status == "large":
            large.append(line)
            continue
        found[line.case.name] = outcome
        tell("cases", len(found), len(lines))
    for line in sorted(large, key=lambda one: one.case.name):
        try:
            with guarded(client):
                found[line.case.name] = cases.large(line)
        except ClusterError:
            raise
        except Exception as error:
            if client.status != "running":
                raise ClusterError(LOST) from error
            found[line.case.name] = Outcome("failed", reason=_reason(error))
        tell("cases", len(found), len(lines))
    return found


def _reason(error: Exception) -> str:
    """Why a case failed, in one paragraph."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, KilledError) or type(error).__name__ == "KilledWorker":
        return f"its worker process ended every time it was evaluated: by a crash, or for want of memory ({text})."
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def _of_one_frame(gathered: Gathered, failed: dict[str, str]) -> tuple[Gathered, dict[str, str]]:
    """Without cases whose Evaluations do not add to those of most; they failed."""
    failed = dict(failed)
    for label in gathered.labels() if gathered.cases else ():
        digests = gathered.digests(label)
        numbers = Counter(
            digests.values()
        )  # in the order of the cases: of equal numbers the first one's wins
        wanted = max(numbers, key=numbers.__getitem__, default="")
        for name, digest in digests.items():
            if digest != wanted:
                failed[name] = (
                    "its bins are not those of most cases, so it does not add to them: its inputs are stored in "
                    "another way, such as another dtype. Store all alike, or leave out what needs it (`sweep: false`)."
                )
    kept = tuple(one for one in gathered.cases if one[0].name not in failed)
    return replace(gathered, cases=kept), dict(sorted(failed.items()))


def _is_the_same(gathered: Gathered, failed: Mapping[str, str], earlier: Finished, words: CohortJob) -> bool:
    """Whether the finished output is what would be written now."""
    asked_then = earlier.record.get("job", {})
    return (
        not failed
        and not earlier.record.get("failed")
        and all(outcome.status == "output" for _, outcome in gathered.cases)
        and tuple(case for case, _ in gathered.cases) == earlier.stacks[MAIN].cases
        and asked_then.get("confidence") == words.confidence.model_dump(mode="json")
    )


def _fingerprint(digest: str, gathered: Gathered, failed: Mapping[str, str]) -> str | None:
    """Of what was asked and of the cases; None where inputs cannot tell whether they changed."""
    cases: list[Case] = [case for case, _ in gathered.cases]
    if any(not case.mark for case in cases):
        return None
    text = json.dumps([digest, [[case.name, case.mark, case.groups] for case in cases], sorted(failed)])
    return hashlib.sha256(text.encode()).hexdigest()


def _said(
    gathered: Gathered, failed: Mapping[str, str], lost: Mapping[str, Case], earlier: Finished | None
) -> dict[str, Any]:
    """What `run.json` says of each case."""
    before: dict[str, Any] = {} if earlier is None else earlier.record.get("cases", {})
    found: dict[str, Any] = {
        name: {"status": "failed", "reason": reason, **who(lost[name])} for name, reason in failed.items()
    }
    for case, outcome in gathered.cases:
        facts = before.get(case.name, {}) if outcome.status == "output" else outcome.facts
        status = "computed" if outcome.status == "computed" else "kept"
        found[case.name] = {**facts, "status": status}
    return dict(sorted(found.items()))


def _about(words: CohortJob, todo: CohortPlan) -> dict[str, str]:
    """What the report says of where its numbers come from."""
    inputs = ", ".join(one.column for one in todo.cases.columns)
    return {
        "manifest": words.manifest,
        "inputs": inputs,
        "dask-uncert": version("dask-uncert"),
    }


def load_evaluation(folder: AnyPath) -> Evaluation:
    """The pooled Evaluation of a finished folder."""
    found = load(folder)
    assert isinstance(found, Evaluation)
    return found
