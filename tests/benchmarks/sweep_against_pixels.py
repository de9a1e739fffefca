"""What a joint histogram costs and saves: `python tests/benchmarks/sweep_against_pixels.py`.

First the pass with a joint histogram against the pass without one, interleaved, over 2048 x 2048 pixels: a binary
prediction damped by its entropy, and one class, then all, of 16. Then 100 settings read off the histogram of 10^7
points against the same 100 worked out with numpy from the points. Prints medians of ratios.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.metrics.sweep import sweep

SIDE, TURNS, POINTS = 2048, 7, 10_000_000


def seconds(call: Any) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def compare(name: str, plain: dict[str, Any], soft: list[dict[str, Any]]) -> None:
    """The pass with these soft confusions' joint histograms against the pass without any."""

    def without() -> None:
        evaluate(**plain)

    def joined() -> None:
        evaluate(**plain, soft_confusion=soft)

    def settled() -> None:
        evaluate(**plain, soft_confusion=[{**one, "sweep": False} for one in soft])

    for call in (without, joined):
        call()  # compiles
    turns = [(seconds(without), seconds(settled), seconds(joined)) for _ in range(TURNS)]
    for what, ratios in (
        ("with settings only", [b / a for a, b, _ in turns]),
        ("with settings and joint histograms", [c / a for a, _, c in turns]),
        ("joint histograms on top of settings", [c / b for _, b, c in turns]),
    ):
        print(f"{name}: {what}: {statistics.median(ratios):.2f} times")


def directly(
    p: NDArray[np.float64], c: NDArray[np.bool_], u: NDArray[np.float64], t: float, sigma: float, d: float
) -> list[float]:
    """TP, TN, FP, FN the way [S22] prints them."""
    weight = erf(np.abs(p - t) / (sigma * np.sqrt(2))) * np.exp(-u * d)
    weight *= np.where(c, erf((1 - t) / (sigma * np.sqrt(2))), erf(t / (sigma * np.sqrt(2))))
    cells = (c & (p >= t), ~c & (p <= t), ~c & (p > t), c & (p < t))
    return [float(weight[cell].sum()) for cell in cells]


def main() -> None:
    """Time both."""
    rng = np.random.default_rng(0)
    p = np.tile(rng.beta(0.6, 0.6, (512, 512)).astype("float32"), (SIDE // 512,) * 2)
    c = (rng.random((SIDE, SIDE)) < p).astype("uint8")
    binary = {"probabilities": p, "reference": c, "axis": None, "measures": ["entropy"]}
    compare("binary", binary, [{"class": "1", "uncertainty": "entropy"}])
    many = np.tile(rng.dirichlet(np.full(16, 0.3), (512, 512)).astype("float32"), (SIDE // 512,) * 2 + (1,))
    codes = rng.integers(0, 16, (SIDE, SIDE)).astype("uint8")
    scene = {"probabilities": many, "reference": codes, "measures": ["gini", "entropy", "fisher_rao"]}
    compare("one of 16 classes", scene, [{"class": "3", "uncertainty": "entropy"}])
    compare("all of 16 classes", scene, [{"uncertainty": "entropy"}])

    p, u = rng.beta(0.7, 0.7, POINTS), rng.random(POINTS)
    c = rng.random(POINTS) < p
    grid = {"thresholds": [0.3, 0.5], "sigmas": np.linspace(0.02, 0.5, 10).tolist()}
    dampings = [0.0, 0.25, 0.5, 1.0, 2.0]
    found = evaluate(
        p, c.astype("uint8"), uncertainty=u, axis=None, measures=[],
        soft_confusion=[{"class": "1", "thresholds": grid["thresholds"], "uncertainty": "uncertainty"}],
    )  # fmt: skip
    sweep(found, "1", **grid, dampings=dampings)
    swept = seconds(lambda: sweep(found, "1", **grid, dampings=dampings))
    settings = [(t, s, d) for t in grid["thresholds"] for s in grid["sigmas"] for d in dampings]
    worked = seconds(lambda: [directly(p, c, u, *setting) for setting in settings])
    print(
        f"{len(settings)} settings: swept in {swept:.3f} s, from the points in {worked:.1f} s: {worked / swept:.0f} times"
    )


if __name__ == "__main__":
    main()
