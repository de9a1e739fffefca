"""Evaluate one case of a cohort, in one task unless it is large.

The task of a small case opens the inputs, compares their fingerprint with finished results, evaluates the case block by
block and caches its summaries. A large case is only reported as large, and then run like a scene, over the whole
cluster.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from dask_uncert.clusters.task_pool import KilledError
from dask_uncert.errors import InputError, exception_text, one_line
from dask_uncert.execution.estimate import BUDGET, Estimate, probe
from dask_uncert.execution.evaluate import prepare, with_maps, write_coordinates
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.execution.plan import Plan
from dask_uncert.execution.tasks import AnyRequest
from dask_uncert.inputs.class_order import in_order
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.open import InputSpec, open_cubes
from dask_uncert.inputs.pixel_area import pixel_sizes
from dask_uncert.inputs.raters import mean_of_raters, raters_of
from dask_uncert.io.file_cache import forget_beyond
from dask_uncert.io.summary_cache import REFERENCE_LABEL, CaseFolder, Frame, replacing_folder
from dask_uncert.jobs.cohort.manifest import ManifestRow
from dask_uncert.jobs.provenance import ABOUT_MAPS, digest
from dask_uncert.jobs.schema import CaseInputs
from dask_uncert.spec.options import SceneOptions
from dask_uncert.summaries.registry import AnyEvaluation

LARGE = 1 << 30  # decoded bytes; above it, a case is run like a scene: about 16 s of one core at 16 classes
"""Label of a case's evaluation against its reference; those against single raters have the raters' names."""


class ManifestColumn(NamedTuple):
    """A manifest column of paths, the name of its input, and that input's options."""

    column: str
    name: str
    spec: InputSpec


class CaseOutcome(NamedTuple):
    """The outcome of a case.

    status: "computed" now; "kept" in the cache of a stopped run; in the finished "output" folder; "large", to be run over
    the whole cluster; or "failed", for `reason`. fingerprint: of the inputs and settings, "" if an input has none. key: in
    the cache. frames: digest of the frame of each summary, by label. facts: for `run.json`.
    """

    status: Literal["computed", "kept", "output", "large", "failed"]
    fingerprint: str = ""
    key: str = ""
    frames: Mapping[str, str] = {}
    facts: Mapping[str, Any] = {}
    reason: str = ""


KEPT_SHARE = 0.1  # of a task's memory, for files of finished cases that others may share


class CaseCost(NamedTuple):
    """Decoded bytes that a case reads, by input; memory of a task in bytes; whether it is large; number of tasks.

    without_checksum: inputs whose stored chunks have none.
    """

    nbytes: dict[str, int]
    memory: int
    large: bool
    tasks: int
    without_checksum: list[str]


def failure_reason(error: Exception) -> str:
    """Return why a case failed, in one paragraph."""
    if isinstance(error, InputError):
        return one_line(error)
    if isinstance(error, KilledError) or type(error).__name__ == "KilledWorker":
        return f"its worker process ended every time: it crashed or was out of memory ({one_line(error)})."
    return exception_text(error, None)


@dataclass(frozen=True)
class EvaluateCase:
    """Evaluates a case and caches its summaries; pickles.

    settings: digest of the options, the inputs' options and the package version. run: an id of this run, used instead of
    a fingerprint if inputs have none. folder: of the cache. memory: bytes a task may use; None for no limit.
    """

    options: SceneOptions
    inputs: CaseInputs
    columns: tuple[ManifestColumn, ...]
    settings: str
    run: str
    folder: str = ""
    memory: float | None = None

    def __call__(self, item: tuple[ManifestRow, str]) -> CaseOutcome:
        """Evaluate a case, given with its fingerprint in the finished output ("" if none); an error becomes the outcome."""
        try:
            return self.evaluate_small(*item)
        except Exception as error:  # reading and decoding raise many kinds; other cases continue
            return CaseOutcome("failed", reason=failure_reason(error))
        finally:
            if self.memory is not None:  # the files of a finished case are not counted with those of the next
                forget_beyond(KEPT_SHARE * self.memory)

    def evaluate_small(self, row: ManifestRow, finished: str) -> CaseOutcome:
        """Evaluate a case in this task, unless its fingerprint is `finished`, it is cached, or it is large."""
        cubes = self.open(row)
        fingerprint = self.fingerprint(row, cubes)
        if fingerprint and fingerprint == finished:
            return CaseOutcome("output", fingerprint)
        key, cache = fingerprint or self.run, CaseFolder(self.folder)
        cached = cache.read(row.case.name, key)
        if cached is not None and (not self.options.layers or cache.maps(row.case.name, key).is_dir()):
            return CaseOutcome("kept", fingerprint, key, cached.frames, cached.facts)
        plans = self.plans(cubes)
        if _is_large(plans):
            return CaseOutcome("large", fingerprint, key)
        plans = {label: plan.in_one_task() for label, plan in plans.items()}
        return self.compute(row, fingerprint, plans, here=True)

    def evaluate_large(self, row: ManifestRow) -> CaseOutcome:
        """Evaluate a large case over the current cluster."""
        cubes = self.open(row)
        return self.compute(row, self.fingerprint(row, cubes), self.plans(cubes), here=False)

    def cost(self, row: ManifestRow) -> CaseCost:
        """Return the cost of a case, from the headers of its inputs; InputError if they cannot be evaluated."""
        plans = self.plans(self.open(row))
        nbytes = {name: n * len(plans) for name, n in plans[REFERENCE_LABEL].nbytes().items()}
        large = _is_large(plans)
        each = [fit_to_memory(plan if large else plan.in_one_task(), self.memory) for plan in plans.values()]
        tasks = 1 + sum(plan.tasks() for plan in each) if large else 1
        memory = max(plan.block_memory() for plan in each)
        return CaseCost(nbytes, memory, large, tasks, plans[REFERENCE_LABEL].without_checksum())

    def probe(self, row: ManifestRow, cases: int, nbytes: int) -> Estimate:
        """Return what `cases` cases of `nbytes` decoded bytes cost, from one of them.

        A small case is evaluated as in a run, with its summaries cached in a temporary folder, which tells what each
        case costs whatever its size.
        """
        begin = time.perf_counter()
        plans = self.plans(self.open(row))
        fixed = time.perf_counter() - begin
        own = sum(plans[REFERENCE_LABEL].nbytes().values()) * len(plans)
        per_byte = sum(probe(plan, budget=BUDGET / len(plans)).thread_seconds for plan in plans.values()) / max(own, 1)
        if own * per_byte < BUDGET:
            with tempfile.TemporaryDirectory(prefix="dask-uncert-") as folder:
                begin = time.perf_counter()
                replace(self, folder=folder).evaluate_small(row, "")
                fixed = max(fixed, time.perf_counter() - begin - own * per_byte)
        return Estimate(cases * fixed + nbytes * per_byte, cases)

    def compute(self, row: ManifestRow, fingerprint: str, plans: dict[str, Plan], here: bool) -> CaseOutcome:
        """Run the plans of a case, in this task or over the cluster; cache its maps, then its summaries."""
        start = time.perf_counter()
        name, key, cache = row.case.name, fingerprint or self.run, CaseFolder(self.folder)
        run = Plan.compute_here if here else Plan.compute
        summaries: dict[str, tuple[Frame, AnyEvaluation]] = {}
        for label, unfitted in plans.items():
            plan = fit_to_memory(unfitted, self.memory)
            if label == REFERENCE_LABEL and plan.request.layers:
                with replacing_folder(cache.maps(name, key)) as working:
                    plan = with_maps(plan, str(working), ABOUT_MAPS)
                    evaluation = run(plan)
                    write_coordinates(plan)
            else:
                evaluation = run(plan)
            summaries[label] = frame_of(plan.request), evaluation
        plan = plans[REFERENCE_LABEL]
        facts: dict[str, Any] = {
            "seconds": round(time.perf_counter() - start, 3),
            "bytes_read": sum(plan.nbytes().values()) * len(plans),
            "shape": list(plan.scene.shape),
            "counted": int(summaries[REFERENCE_LABEL][1].ledger.counted),
        }
        if plan.scene.remarks:
            facts["remarks"] = plan.scene.remarks
        if without := plan.without_checksum():
            facts["without_checksum"] = without
        written = cache.write(name, key, summaries, facts)
        return CaseOutcome("computed", fingerprint, key, written.frames, facts)

    def open(self, row: ManifestRow) -> dict[str, list[Cube]]:
        """Return the inputs of a case by name, several only for a reference in columns; InputError if one is unusable."""
        cubes: dict[str, list[Cube]] = {}
        for column, input_name, spec in self.columns:
            path = row.paths[column]
            like = None if spec.like is None else row.paths[spec.like]
            for name, cube in open_cubes(replace(spec, store=path, where=path, like=like)).items():
                cubes.setdefault(input_name if name == spec.name else name, []).append(cube)
        return cubes

    def fingerprint(self, row: ManifestRow, cubes: Mapping[str, list[Cube]]) -> str:
        """Return a digest of the inputs as stored and the settings; "" if an input has no fingerprint."""
        every = (cube for several in cubes.values() for cube in several)
        files = [file for cube in every for file in (cube.stored, cube.like)]
        stored = [file.fingerprint() for file in files if file is not None]
        return "" if None in stored else digest(row.case.name, self.settings, row.paths, stored)

    def plans(self, cubes: Mapping[str, list[Cube]]) -> dict[str, Plan]:
        """Return the pass of a case, and one for each rater if the job says so, checked and cut into blocks."""
        inputs = {name: several[0] for name, several in cubes.items()}
        if self.inputs.weight == "geometry":
            inputs["weight"] = pixel_sizes(inputs)
        first, options = inputs["reference"], self.options
        number, per_rater = self.inputs.reference.number, self.inputs.reference.per_rater
        shares = self.inputs.reference.fuzzy or CLASS in first.dims
        in_columns = any(name == "reference" != column for column, name, _ in self.columns)
        raters = {cube.name: cube for cube in cubes["reference"]} if in_columns else raters_of(first)
        if not raters:
            if per_rater or (number is not None and not shares):
                raise InputError(f"reference: {first.where} has no dimension `rater`, so there is one reference.")
            return {REFERENCE_LABEL: prepare(options, inputs)}
        if number is not None and len(raters) != number:
            raise InputError(f"reference: {first.where} holds {len(raters)} raters; the job says {number}.")
        others = {name: cube for name, cube in inputs.items() if cube.kind != "reference"}
        masks = _masks_of_raters(inputs, in_columns)
        codes = [label.code for label in options.table]
        raters = {label: in_order(cube, options.table) for label, cube in raters.items()}
        by_number = {i: masks[label] for i, label in enumerate(raters) if label in masks}
        mean = mean_of_raters([*raters.values()], codes, options.ignore, shares, by_number)
        mean = replace(mean, role="shares", raters=number)
        if not shares:  # an ignored code leaves a pixel without a share
            options = options.model_copy(update={"ignore": []})
        all_masks = {mask.name: mask for mask in masks.values()}
        plans = {REFERENCE_LABEL: prepare(options, {**others, "reference": mean, **all_masks})}
        if per_rater:
            for label, cube in raters.items():
                single = replace(cube, name="reference", raters=None)
                mask = {masks[label].name: masks[label]} if label in masks else {}
                plans[label] = prepare(self.options, {**others, "reference": single, **mask})
        return plans


def _masks_of_raters(inputs: Mapping[str, Cube], in_columns: bool) -> dict[str, Cube]:
    """Return the masks of the raters' missing chunks, by the raters' labels."""
    gaps = [cube for cube in inputs.values() if cube.kind == "reference" and cube.gap is not None]
    masks = {cube.name.removeprefix("missing_"): cube for cube in gaps}
    if masks and not in_columns:
        masks = raters_of(masks["reference"])
    return {label: replace(mask, name=f"missing_{label}") for label, mask in masks.items()}


def _is_large(plans: Mapping[str, Plan]) -> bool:
    return sum(plans[REFERENCE_LABEL].nbytes().values()) > LARGE


@lru_cache(maxsize=64)
def frame_of(request: AnyRequest) -> Frame:
    """Return the frame of a request's summaries; cached, as making it takes longer than counting a small case."""
    return Frame.of(request.zero())
