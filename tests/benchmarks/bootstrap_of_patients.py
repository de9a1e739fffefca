"""How long intervals of a cohort take: `python tests/benchmarks/bootstrap_of_patients.py [CLASSES]`.

Prints seconds, and processor seconds, for 2000 bootstrap replicates of 1000 patients over every scalar number, for
every patient's own numbers and for the jackknife; and the memory that these needed beside the cohort's counts.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.kernels import compiled
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.inputs.scene import Encoding
from dask_uncert.metrics.bootstrap import bootstrap_replicates
from dask_uncert.metrics.resampling_units import jackknife, patients, unit_scalars
from dask_uncert.summaries.stack import Stack
from tests.support.requests import request_of

PATIENTS, REPLICATES, PIXELS = 1000, 2000, 5000


def main(classes: int) -> None:
    """Draw a cohort and time what is read off it."""
    rng = np.random.default_rng(0)
    soft = {
        "class": "1",
        "thresholds": [0.3, 0.5],
        "sigmas": [0, 0.1],
        "dampings": [0, 1],
        "uncertainty": "gini",
    }
    request = request_of(classes=[str(i) for i in range(classes)], soft_confusion=[{**soft, "sweep": False}])
    cases = {}
    for i in range(PATIENTS):
        p = rng.dirichlet(np.full(classes, 0.3), PIXELS).astype("float32")
        y = np.where(rng.random(PIXELS) < 0.6, p.argmax(axis=1), rng.integers(0, classes, PIXELS))
        _, cases[f"P{i:04}"] = evaluate_block(request, {"probabilities": p, "reference": y}, Encoding(1), compiled)
    units = patients(Stack.of(cases))
    del cases

    def report(what: str, work: Callable[[], Any]) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        print(f"{what}: {wall:.1f} s ({cpu:.1f} s of processors), {len(found)} numbers, {more:.2f} GiB more")

    report("replicates", lambda: bootstrap_replicates(units, Confidence(replicates=REPLICATES)))
    report("each patient", lambda: unit_scalars(units))
    report("all but one", lambda: jackknife(units))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
