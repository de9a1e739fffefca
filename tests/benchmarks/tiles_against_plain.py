"""How long a pass with tiles kept apart takes against one without: `python tests/benchmarks/tiles_against_plain.py`.

Prints, for each of five turns, the seconds of both and their ratio, then the median ratio; interleaved, for times
on a shared machine vary. 1024 x 1024 pixels of 16 float32 classes, three measures, tiles of 32.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from dask_uncert.evaluate import evaluate

SIDE, CLASSES = 1024, 16


def main() -> None:
    """Draw the cube and time both."""
    rng = np.random.default_rng(0)
    tile = rng.dirichlet(np.full(CLASSES, 0.3), (256, 256)).astype("float32")
    probabilities = np.tile(tile, (SIDE // 256, SIDE // 256, 1))
    codes = rng.integers(0, CLASSES, (SIDE, SIDE)).astype("uint8")

    def seconds(confidence: dict[str, int] | None) -> float:
        begin = time.perf_counter()
        evaluate(
            probabilities, codes, measures=["gini", "entropy", "fisher_rao"], confidence=confidence,
            soft_confusion=[{"class": "3", "sigmas": [0.1], "sweep": False}],
        )  # fmt: skip
        return time.perf_counter() - begin

    seconds(None), seconds({"size": 32})  # compiles
    ratios = []
    for _ in range(5):
        plain, apart = seconds(None), seconds({"size": 32})
        ratios.append(apart / plain)
        print(f"plain {plain:.2f} s, with tiles {apart:.2f} s, ratio {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
