"""One case of a cohort: its inputs opened, its pass planned and run, in one task unless it is large.

A task does all that belongs to a small case, so that a cohort costs the scheduler one small task a case: it opens
the inputs, tells by their fingerprints whether the case is finished already, evaluates it block by block and
leaves its file. A large case says so and is run like a scene, over the whole cluster.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import prepare, with_maps, write_coordinates
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.execution.plan import Plan
from dask_uncert.execution.tasks import AnyRequest
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.names import gap_of
from dask_uncert.inputs.open import InputSpec, open_given
from dask_uncert.inputs.pixel_area import weight_of
from dask_uncert.inputs.raters import MeanOfRaters, apart
from dask_uncert.io.summary_cache import CaseFolder, Frame, replacing_folder
from dask_uncert.jobs.cohort.manifest import ManifestRow
from dask_uncert.spec.request import Request
from dask_uncert.summaries.registry import AnyEvaluation

LARGE = 1 << 30  # decoded bytes; above it, a case is run like a scene: about 16 s of one core at 16 classes
MAIN = ""
"""The label of a case's Evaluation against its reference; those against single raters have the raters' names."""


class Column(NamedTuple):
    """A column of the manifest: the input that its places are of, and its words, but for the place."""

    column: str
    name: str
    words: InputSpec


class Outcome(NamedTuple):
    """What became of a case.

    status: "computed" now; "kept" from an earlier run, in its file, or in "output", the finished folder; "large", to
    be run over the whole cluster; or "failed", for `reason`. mark: of what it was computed from, "" where inputs
    cannot tell; key: of its file. frames: by label, which frame the summaries have. facts: for `run.json`.
    """

    status: Literal["computed", "kept", "output", "large", "failed"]
    mark: str = ""
    key: str = ""
    frames: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = {}
    reason: str = ""


class Forecast(NamedTuple):
    """What a case takes: decoded bytes read by input, bytes of memory a task, whether it is large, tasks."""

    nbytes: dict[str, int]
    memory: int
    large: bool
    tasks: int


@dataclass(frozen=True)
class CasePass:
    """What every case is asked, and where it leaves its file; pickles.

    raters: how many, where the job says; per_rater: evaluate against each as well; fuzzy: the reference holds shares.
    asked: a digest of the request, the inputs' words and our version. run: of this run alone, in place of a
    fingerprint where inputs have none. room: bytes that a task may use; None for no limit. weigh: pixels weigh what
    their size is.
    """

    request: Request
    columns: tuple[Column, ...]
    raters: int | None
    per_rater: bool
    fuzzy: bool
    folder: str
    asked: str
    run: str
    room: float | None = None
    about_maps: Mapping[str, Any] | None = None
    weigh: bool = False

    def one(self, item: tuple[ManifestRow, str]) -> Outcome:
        """Evaluate a case, unless its mark is the one known from a finished output or its file is there.

        What goes wrong with a case is its outcome, and no exception.
        """
        line, known = item
        try:
            return self.small(line, known)
        except InputError as error:
            return Outcome("failed", reason=str(error))
        except Exception as error:  # whatever reading and decoding may raise: the other cases go on
            text = " ".join(str(error).split()) or "no message"
            return Outcome("failed", reason=f"{type(error).__name__}: {text}")

    def small(self, line: ManifestRow, known: str) -> Outcome:
        """The same; raises what reading and evaluating raise."""
        cubes = self.open(line)
        mark = self.mark(line, cubes)
        if mark and mark == known:
            return Outcome("output", mark)
        key, files = mark or self.run, CaseFolder(self.folder)
        found = files.read(line.case.name, key)
        if found is not None and (not self.request.layers or files.maps(line.case.name, key).is_dir()):
            return Outcome("kept", mark, key, tuple(found.frames.items()), found.facts)
        plans = self.plans(cubes)
        nbytes = sum(plans[MAIN].nbytes().values())
        if nbytes > LARGE:
            return Outcome("large", mark, key)
        plans = {label: plan.in_one_task() for label, plan in plans.items()}
        return self.finish(line, mark, plans, here=True)

    def large(self, line: ManifestRow) -> Outcome:
        """Evaluate a large case over the current cluster; raises what that raises."""
        cubes = self.open(line)
        return self.finish(line, self.mark(line, cubes), self.plans(cubes), here=False)

    def forecast(self, line: ManifestRow) -> Forecast:
        """What the case takes, from its inputs' headers; InputError where it can be refused already."""
        plans = self.plans(self.open(line))
        nbytes = {name: n * len(plans) for name, n in plans[MAIN].nbytes().items()}
        large = sum(plans[MAIN].nbytes().values()) > LARGE
        cut = list(plans.values()) if large else [plan.in_one_task() for plan in plans.values()]
        cut = [fit_to_memory(plan, self.room) for plan in cut]
        tasks = 1 + sum(plan.tasks() for plan in cut) if large else 1
        return Forecast(nbytes, max(plan.block_memory() for plan in cut), large, tasks)

    def finish(self, line: ManifestRow, mark: str, plans: Mapping[str, Plan], here: bool) -> Outcome:
        """Run the plans of a case, in this task or over the cluster, and leave its maps, then its file."""
        clock = time.perf_counter()
        plans = {label: fit_to_memory(plan, self.room) for label, plan in plans.items()}
        name, key, files = line.case.name, mark or self.run, CaseFolder(self.folder)
        summaries: dict[str, tuple[Frame, AnyEvaluation]] = {}
        for label, plan in plans.items():
            run = Plan.compute_here if here else Plan.compute
            if label == MAIN and plan.request.layers:
                with replacing_folder(files.maps(name, key)) as working:
                    drawn = with_maps(plan, str(working), self.about_maps)
                    evaluation = run(drawn)
                    write_coordinates(drawn)
            else:
                evaluation = run(plan)
            summaries[label] = frame_of(plan.request), evaluation
        main, read = summaries[MAIN][1], sum(plans[MAIN].nbytes().values())
        facts = {
            "seconds": round(time.perf_counter() - clock, 3),
            "bytes_read": read * len(plans),
            "shape": list(plans[MAIN].scene.shape),
            "counted": int(main.ledger.counted),
        }
        left = files.write(name, key, summaries, facts)
        return Outcome("computed", mark, key, tuple(left.frames.items()), facts)

    def open(self, line: ManifestRow) -> dict[str, list[Cube]]:
        """The case's inputs by name, several only of a reference in columns; InputError where one cannot be."""
        found: dict[str, list[Cube]] = {}
        for one in self.columns:
            place = line.places[one.column]
            for name, cube in open_given(replace(one.words, place=place, where=place)).items():
                found.setdefault(one.name if name == one.words.name else name, []).append(cube)
        return found

    def mark(self, line: ManifestRow, cubes: Mapping[str, list[Cube]]) -> str:
        """Changes when an input is written, the job asks something else, or our version changes; "" if unknown."""
        read = [cube for name, listed in cubes.items() if gap_of(name) is None for cube in listed]
        marks = [cube.data.fingerprint() for cube in read]
        if None in marks:
            return ""
        text = json.dumps([line.case.name, self.asked, line.places, marks])
        return hashlib.sha256(text.encode()).hexdigest()

    def plans(self, cubes: Mapping[str, list[Cube]]) -> dict[str, Plan]:
        """The case's pass, and one for each rater where they are asked for, checked and cut into blocks."""
        inputs = {name: listed[0] for name, listed in cubes.items()}
        if self.weigh:
            inputs["weight"] = weight_of(inputs)
        first = inputs["reference"]
        shares = self.fuzzy or CLASS in first.dims
        in_columns = any(one.name == "reference" != one.column for one in self.columns)
        raters = {cube.name: cube for cube in cubes["reference"]} if in_columns else apart(first)
        if not raters:
            if self.per_rater or (self.raters is not None and not shares):
                raise InputError(
                    f"reference: {first.where} has no dimension `rater`: it holds one reference."
                )
            return {MAIN: prepare(self.request, inputs)}
        if self.raters is not None and len(raters) != self.raters:
            raise InputError(
                f"reference: {first.where} holds {len(raters)} raters; the job says {self.raters}."
            )
        each, request = list(raters.values()), self.request
        mean = MeanOfRaters(each, request.codes, request.ignore, shares).cube()
        one = replace(request, raters=None)
        if not shares:  # an ignored code leaves a pixel without a share
            request = replace(request, ignore=(), reference="share" if CLASS not in mean.dims else "shares")
        plans = {MAIN: prepare(request, {**inputs, "reference": mean})}
        if self.per_rater:
            for label, cube in raters.items():
                plans[label] = prepare(one, {**inputs, "reference": replace(cube, name="reference")})
        return plans


@lru_cache(maxsize=64)
def frame_of(request: AnyRequest) -> Frame:
    """The frame of what the request leaves; kept, for it takes longer to write down than a small case to count."""
    return Frame.of(request.zero())
