"""How long the pass takes against reading the same cube, interleaved: `python tests/benchmarks/pass_against_reading.py`.

Prints, for each of five turns, the seconds of both and their ratio, then the median ratio. 2048 x 2048 pixels
of 16 float32 classes in 64 x 64 chunks; times on a shared machine vary, ratios less.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import dask.array as da
import numpy as np
import zarr

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.readers.zarr import ZarrArray

SIDE, CLASSES = 2048, 16


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

        def read() -> None:
            blocks = da.from_array(stored, chunks=(1024, 1024, CLASSES), asarray=False)
            blocks.map_blocks(lambda block: block[:1, :1, :1], chunks=(1, 1, 1), dtype="float32").compute()

        def run() -> None:
            evaluate(probabilities, reference, measures=["gini", "entropy", "fisher_rao"])

        read()
        run()  # compiles
        ratios = []
        for _ in range(5):
            begin = time.perf_counter()
            read()
            middle = time.perf_counter()
            run()
            end = time.perf_counter()
            ratios.append((end - middle) / (middle - begin))
            speed = SIDE * SIDE / (end - middle) / 1e6
            print(
                f"read {middle - begin:.2f} s, evaluate {end - middle:.2f} s ({speed:.1f} Mpixel/s), ratio {ratios[-1]:.2f}"
            )
        print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
