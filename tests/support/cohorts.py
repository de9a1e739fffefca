"""Small cohorts to test with: stores, a manifest and a job file in a folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import yaml
import zarr

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.kernels import compiled
from dask_uncert.inputs.scene import Encoding
from dask_uncert.jobs.cohort.compare import compare
from dask_uncert.reports.results import cohort as reported
from dask_uncert.summaries.stack import Case, Stack
from tests.support.requests import request_of

SHAPE = (4, 5)
CLASSES = {0: "background", 7: "lesion"}


def values(seed, shape=SHAPE):
    """Binary probabilities of the second class, and codes."""
    rng = np.random.default_rng(seed)
    return {
        "p": (rng.integers(0, 65, shape) / 64).astype("float32"),
        "y": rng.choice(list(CLASSES), shape).astype("uint8"),
    }


def store(path, arrays, dims=("y", "x")):
    group = zarr.open_group(str(path), mode="w")
    for name, array in arrays.items():
        group.create_array(name, data=array, chunks=(2, *array.shape[1:]), dimension_names=dims)


class Cohort:
    """A folder with a job file, its manifest and a store a patient."""

    def __init__(self, folder: Path, patients=(), **changes) -> None:
        self.folder, self.rows = folder, {}
        folder.mkdir(parents=True, exist_ok=True)
        self.words = {
            "version": 1,
            "kind": "cohort",
            "manifest": "cases.csv",
            "groups": ["site"],
            "inputs": {"probabilities": {"array": "p"}, "reference": {"array": "y"}},
            "classes": CLASSES,
            "measures": [],
            "confidence": {"replicates": 20},
            "output": "out",
            **changes,
        }
        for i, name in enumerate(patients):
            self.add(name, seed=i)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def files(self) -> Path:
        return self.folder / "out.cases"

    def add(self, name, seed, shape=SHAPE, **cells):
        store(self.folder / f"{name}.zarr", values(seed, shape))
        place = f"{name}.zarr"
        site = "Oslo" if seed % 2 else "Bern"
        self.rows[name] = {"patient": name, "site": site, "probabilities": place, "reference": place, **cells}

    def job(self, **changes) -> Path:
        """Write the manifest and the job file."""
        with (self.folder / "cases.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(next(iter(self.rows.values()))))
            writer.writeheader()
            writer.writerows(self.rows.values())
        path = self.folder / "job.yaml"
        path.write_text(yaml.safe_dump({**self.words, **changes}))
        return path

    def record(self) -> dict:
        return json.loads((self.out / "run.json").read_text())

    def statuses(self) -> dict[str, str]:
        return {name: one["status"] for name, one in self.record()["cases"].items()}

    def bits(self, out=None) -> dict:
        """Every byte of the numbers: results.json and summaries, but for marks, which name the folder."""
        out = out or self.out
        found = {"results.json": (out / "results.json").read_bytes()}
        for path in sorted(out.rglob("summary.zarr/**/*")):
            if path.is_file():
                content = path.read_bytes()
                if path.parent.name == "cases":
                    content = json.loads(content)
                    content["attributes"].pop("fingerprints")
                elif path.parent.name == "summary.zarr":  # their digest as well
                    content = json.loads(content)["attributes"]["digests"]
                    content.pop("cases")
                found[str(path.relative_to(out))] = content
        return found


AWKWARD = 'P0 <b>&"x'
WORDS = {
    "classes": {0: "background", 1: "it's <b>&"},
    "measures": ["gini"],
    "soft_confusion": [
        {"class": "it's <b>&", "dampings": [1], "sigmas": [0, 0.1], "uncertainty": "gini", "sweep": False}
    ],
}


def evaluated(request, p, y):
    """Return the Evaluation of a binary prediction, without dask."""
    return evaluate_block(request, {"probabilities": p, "reference": np.asarray(y, int)}, Encoding(), compiled)[1]


def stack_of(skill, patients=7):
    """Evaluations of small cases: two visits of the first two patients; the last has nothing to find."""
    found, request = {}, request_of(**WORDS)
    for i in range(patients + 2):
        rng = np.random.default_rng(i)
        number, visit = (i, "") if i < patients else (i - patients, "again")
        y = (rng.random((6, 7)) < 0.4) & (i != patients - 1)
        right = rng.random(y.shape) < (skill if i != patients - 1 else 1)
        p = (np.where(right == y, 0.75, 0.25) + rng.random(y.shape) / 8).astype("float32")
        groups = (("site", ("Oslo", "Bern <i>")[number % 2]), ("scanner", f"S{number % 3}"))
        case = Case(AWKWARD if number == 0 else f"P{number}", visit, groups)
        found[case] = evaluated(request, p, y)
    return Stack.of(found)


def reported_cohort(replicates=40):
    """A cohort as reports get it, with failed cases, pictures of maps and another model; and the sum of its cases."""
    stack, other = stack_of(0.85), stack_of(0.7)

    def pictures(case):
        values = np.linspace(0, 1, 12).reshape(3, 4)
        values[0, 0] = np.nan
        return {"gini": (values, ("y", "x")), "correct": ((values > 0.5) * 1.0, ("y", "x"))}

    against = reported.OtherModel(
        "other <model>", other, compare(stack, other, replicates=replicates, permutations=40), 0.95
    )
    cohort = reported.Cohort(
        stack,
        {"P8": "no store at <here>"},
        {"unit": "patient", "replicates": replicates, "level": 0.95, "seed": 0},
        {"P8": Case("P8", "", (("site", "Oslo"), ("scanner", "S1")))},
        pictures,
        against,
    )
    return cohort, stack.total()
