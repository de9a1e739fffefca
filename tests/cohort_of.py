"""Small cohorts to test with: stores, a manifest and a job file in a folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import yaml
import zarr

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
                    content["attributes"].pop("marks")
                found[str(path.relative_to(out))] = content
        return found
