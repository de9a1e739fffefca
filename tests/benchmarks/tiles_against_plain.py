"""How long a pass with tiles kept apart takes against one without: `python tests/benchmarks/tiles_against_plain.py`.

Prints, for each of five turns, the processor seconds of both and their ratio, then the median ratio; interleaved,
for a shared machine is now faster, now slower. A store of 1024 x 1024 pixels of 16 float32 classes in 64 x 64
chunks, three measures, tiles of 32.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.readers.zarr import ZarrArray

SIDE, CLASSES = 1024, 16


def main() -> None:
    """Write the cube to a temporary folder and time both."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "cube.zarr")
        rng = np.random.default_rng(0)
        tile = rng.dirichlet(np.full(CLASSES, 0.3), (512, 512)).astype("float32")
        array = zarr.create_array(store, shape=(SIDE, SIDE, CLASSES), chunks=(64, 64, CLASSES), dtype="float32")
        array[...] = np.tile(tile, (SIDE // 512, SIDE // 512, 1))
        stored = ZarrArray(store, "", "probabilities")
        probabilities = Cube("probabilities", stored, ("y", "x", "class"), stored.chunks, store)
        codes = rng.integers(0, CLASSES, (SIDE, SIDE)).astype("uint8")
        reference = Cube("reference", codes, ("y", "x"))

        def seconds(confidence: dict[str, int] | None) -> float:
            begin = time.process_time()
            measures = ["gini", "entropy", "fisher_rao"]
            evaluate(probabilities, reference, measures=measures, confidence=confidence)
            return time.process_time() - begin

        for confidence in (None, {"size": 32}):
            seconds(confidence)  # compiles
        ratios = []
        for _ in range(5):
            plain, apart = seconds(None), seconds({"size": 32})
            ratios.append(apart / plain)
            print(f"plain {plain:.2f} s, with tiles {apart:.2f} s, ratio {ratios[-1]:.2f}")
        print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
