"""Run a cohort's job: evaluate its cases on a cluster, cache each as it finishes, and write the output folder."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.blocks.kernels.cache import ensure_cache
from dask_uncert.clusters import connect
from dask_uncert.clusters.monitor import (
    keep_logs_of_failure,
    lost_message,
    performance_page,
    watchdog,
    worker_logs,
)
from dask_uncert.clusters.task_pool import map_items
from dask_uncert.errors import ClusterError, InputError, listed, plural, without_secrets
from dask_uncert.io.output_folder import Progress, being_written
from dask_uncert.io.owned_folder import check_outside, check_owned, make_folder, marker_of, remove_owned
from dask_uncert.io.paths import AnyPath, is_remote
from dask_uncert.io.summary_store import load
from dask_uncert.jobs.cohort.case import CaseOutcome, EvaluateCase, failure_reason
from dask_uncert.jobs.cohort.manifest import ManifestRow
from dask_uncert.jobs.cohort.output import (
    EvaluatedCases,
    FinishedCohort,
    case_identity,
    earlier_output,
    read_stacks,
    write_maps,
)
from dask_uncert.jobs.cohort.plan import CohortPlan, cache_of, folders_of, plan_cohort
from dask_uncert.jobs.first_use import compiling, steps
from dask_uncert.jobs.provenance import (
    RunRecord,
    about_run,
    cluster_record,
    counted_unit,
    digest,
    job_record,
    read_retries,
    write_run,
)
from dask_uncert.jobs.schema import CohortJob
from dask_uncert.metrics.remarks import result_remarks
from dask_uncert.reports.drawing import end_ahead
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client

SHOWN = 5  # failed cases that a message names
OTHER_BINS = (
    "its bins differ from those of most cases, so it cannot be added to them: its inputs are stored in another way, such "
    "as another dtype. Store all inputs alike, or leave out the joint histogram (`sweep: false`)."
)


def run_cohort(
    job: CohortJob,
    folder: Path,
    output: AnyPath,
    cluster: str | Path | Client,
    fresh: bool,
    progress: Progress,
    page: Path | None,
    files: Mapping[str, str],
) -> tuple[AnyEvaluation, dict[str, str], list[str]]:
    """Run a cohort's job and write its output folder; return the sum of the cases, why cases failed, and remarks.

    Cases in the finished output or in the cache of a stopped run are not computed again. page: HTML file for dask's
    performance report. files: that the job reads beside its cases, by what a message calls them.
    """
    end_ahead()  # cases take longer
    plan = plan_cohort(job, folder)
    inputs = {f"case {row.case.name}, {column}": path for row in plan.rows for column, path in row.paths.items()}
    check_outside(folders_of(output), {**files, **inputs})
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    earlier = earlier_output(output, plan.evaluate.settings, fresh)
    cache = cache_of(output)
    check_owned(cache.path)
    if fresh:
        remove_owned(cache.path)
    started, start = datetime.now(UTC), time.perf_counter()
    # A case may crash its process, which threads would not survive.
    processes = {"processes": True} if cluster == "local" else {}
    ensure_cache()  # for all processes
    progress("start the cluster", 0, 1)
    with (
        connect.connect(cluster, **processes) as client,
        keep_logs_of_failure(client, cache.path),
        performance_page(page),
    ):
        progress("start the cluster", 1, 1)
        make_folder(cache.path, "cases", marker_of(cache.path).get("id"))
        memory, retries = connect.memory_per_thread(client), read_retries(client)
        evaluate = replace(plan.evaluate, folder=str(cache.path), memory=memory)
        waits = f"{compiling(cluster)} the first case"
        outcomes = _evaluate_all(evaluate, plan, earlier, client, steps(progress, "cases", len(plan.rows), waits))
        cluster_facts, log = cluster_record(client, retries), worker_logs(client)
    failed = _failures(outcomes, earlier)
    if len(failed) == len(outcomes):
        name, reason = next(iter(failed.items()))
        raise InputError(f"none of the {len(failed)} cases could be evaluated; the first, {name}: {reason}")
    evaluated = [
        (replace(row.case, fingerprint=outcome.fingerprint), outcome)
        for row in plan.rows
        if (outcome := outcomes[row.case.name]) and row.case.name not in failed
    ]
    cases = EvaluatedCases(tuple(evaluated), cache, earlier)
    records = _case_records(plan, outcomes, failed, earlier)
    odd = [f"{name}: {remark}" for name, record in records.items() for remark in record.get("remarks", ())]
    remarks = [listed(odd, SHOWN, " ")] if odd else []
    if earlier is not None and _is_unchanged(cases, failed, earlier, job):
        remove_owned(cache.path)
        evaluation = load(output)
        return evaluation, failed, [*remarks, *result_remarks(evaluation, plan.evaluate.options.ignore)]
    computed = time.perf_counter()
    with being_written(output, elsewhere) as working:
        evaluation = cases.write_summaries(working)
        if plan.maps:
            write_maps(cases.map_folders(), working, elsewhere)
        remarks += result_remarks(evaluation, plan.evaluate.options.ignore)
        about = {
            "manifest": without_secrets(job.manifest),
            "inputs": ", ".join(column for column, _, _ in plan.evaluate.columns),
            **about_run(described := job_record(job, started)),
        }
        without = sorted({name for record in records.values() for name in record.get("without_checksum", ())})
        record: RunRecord = {
            **described,
            "about": about,
            "asked": plan.evaluate.settings,
            "fingerprint": _fingerprint(plan, cases, failed),
            "unit": counted_unit(max((len(facts.get("shape", ())) for facts in records.values()), default=0)),
            "cases": records,
            "failed": failed,
            "remarks": remarks,
            "without_checksum": without,
            "maps": plan.maps,
            **cluster_facts,
        }
        finished = FinishedCohort(working, record, read_stacks(working))
        cohort = finished.reported(cases.map_folders())
        how: dict[str, Any] = {"unit": record["unit"], "without_checksum": without, "progress": progress}
        write_all(evaluation, working, about=about, cohort=cohort, **how)
        seconds = {"cases": computed - start, "report": time.perf_counter() - computed}
        write_run(working, evaluation, record, seconds, log)
    remove_owned(cache.path)  # the output has its cases itself
    return evaluation, failed, remarks


def failure_message(failed: Mapping[str, str], output: AnyPath) -> str:
    """Return one paragraph about the cases that failed."""
    reasons = listed((f"{name}: {reason}" for name, reason in failed.items()), SHOWN, "; ")
    hint = f", named in {output / 'run.json'}" if len(failed) > SHOWN else ""
    return f"{plural(len(failed), 'case')} failed and {'is' if len(failed) == 1 else 'are'} left out: {reasons}{hint}"


def _evaluate_all(
    evaluate: EvaluateCase,
    plan: CohortPlan,
    earlier: FinishedCohort | None,
    client: Client,
    done: Callable[[int], object],
) -> dict[str, CaseOutcome]:
    """Return the outcome of every case by name; large cases run last, each over the whole cluster.

    done: called with the number of cases that are.
    """
    finished = {} if earlier is None else earlier.fingerprints(with_maps=bool(plan.maps))
    outcomes: dict[str, CaseOutcome] = {}
    large: list[ManifestRow] = []
    items = ((row, finished.get(row.case.name, "")) for row in plan.rows)
    for (row, _), outcome in map_items(
        client, evaluate, items, "evaluate-case", describe=lambda item: item[0].case.name
    ):
        if isinstance(outcome, Exception):
            outcome = CaseOutcome("failed", reason=failure_reason(outcome))
        if outcome.status == "large":
            large.append(row)
            continue
        outcomes[row.case.name] = outcome
        done(len(outcomes))
    for row in sorted(large, key=lambda row: row.case.name):
        try:
            with watchdog(client):
                outcome = evaluate.evaluate_large(row)
        except ClusterError:
            raise
        except Exception as error:
            if client.status != "running":
                raise ClusterError(lost_message()) from error
            outcome = CaseOutcome("failed", reason=failure_reason(error))
        outcomes[row.case.name] = outcome
        done(len(outcomes))
    return outcomes


def _failures(outcomes: dict[str, CaseOutcome], earlier: FinishedCohort | None) -> dict[str, str]:
    """Return why cases failed, by name; also of those that cannot be added to most cases.

    Outcomes from the earlier output get the frames that it has.
    """
    frames = {} if earlier is None else earlier.case_frames()
    for name, outcome in outcomes.items():
        if outcome.status == "output":
            outcomes[name] = outcome._replace(frames=frames[name])
    failed = {name: outcome.reason for name, outcome in outcomes.items() if outcome.status == "failed"}
    for label in sorted({label for outcome in outcomes.values() for label in outcome.frames}):
        digests = {name: o.frames[label] for name, o in sorted(outcomes.items()) if label in o.frames}
        (usual, _), *_ = Counter(digests.values()).most_common(1)  # of equal numbers the first case's
        failed |= {name: OTHER_BINS for name, other in digests.items() if other != usual}
    return dict(sorted(failed.items()))


def _is_unchanged(cases: EvaluatedCases, failed: Mapping[str, str], earlier: FinishedCohort, job: CohortJob) -> bool:
    """Return whether the finished output equals what would be written now."""
    return (
        not failed
        and not earlier.record.get("failed")
        and all(outcome.status == "output" for _, outcome in cases.cases)
        and tuple(case for case, _ in cases.cases) == earlier.stack.cases
        and earlier.record.get("job", {}).get("confidence") == job.confidence.model_dump(mode="json")
    )


def _fingerprint(plan: CohortPlan, cases: EvaluatedCases, failed: Mapping[str, str]) -> str | None:
    """Return the fingerprint of the settings and the cases; None if an input has none."""
    if any(not case.fingerprint for case, _ in cases.cases):
        return None
    identities = [[case.name, case.fingerprint, case.groups] for case, _ in cases.cases]
    return digest(plan.evaluate.settings, identities, sorted(failed))


def _case_records(
    plan: CohortPlan,
    outcomes: Mapping[str, CaseOutcome],
    failed: Mapping[str, str],
    earlier: FinishedCohort | None,
) -> dict[str, Any]:
    """Return what `run.json` records of each case, by name."""
    before = {} if earlier is None else earlier.record.get("cases", {})
    records: dict[str, Any] = {}
    for case in (row.case for row in plan.rows):
        outcome = outcomes[case.name]
        if case.name in failed:
            records[case.name] = {"status": "failed", "reason": failed[case.name], **case_identity(case)}
        else:
            facts = before.get(case.name, {}) if outcome.status == "output" else outcome.facts
            records[case.name] = {**facts, "status": "computed" if outcome.status == "computed" else "kept"}
    return records
