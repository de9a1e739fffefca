"""The pieces of work that are compared. Each runs in a fresh process: `python -m tests.benchmarks.work NAME OPTIONS`.

A function here prepares its data, untimed, and returns what is timed. It runs once on little data before, so that no
compiling or first import is measured; then it prints seconds, processor seconds and the most memory as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
MISSING = 3  # exit status where a library is not installed
MAPS = ["gini", "entropy", "fisher_rao", "correct"]


def scene(side: int, codec: str, kind: str = "classes") -> dict[str, Any]:
    """Return the probabilities and the reference of a cube as inputs."""
    import dask_uncert as du
    from tests.benchmarks.cubes import cube

    store = str(cube(kind, side, codec))
    dims = {"dims": ["y", "x", "class"]} if kind == "classes" else {}
    return {
        "probabilities": du.Input(store, array="p", **dims),
        "reference": du.Input(store, array="y"),
        **({"uncertainty": du.Input(store, array="u"), "axis": None} if kind != "classes" else {}),
    }


def full_set() -> dict[str, Any]:
    """Return the options of the full evaluation of 16 classes."""
    from tests.benchmarks.cubes import CLASSES
    from tests.benchmarks.plain import THRESHOLDS, distances

    return {
        "classes": {code: str(code) for code in range(CLASSES)},
        "measures": ["gini", "entropy", "fisher_rao", "homophily"],
        "class_distances": {"table": distances(CLASSES).tolist()},
        "uncertainty_confusion": {"thresholds": THRESHOLDS.tolist()},
        "calibration": {"bins": 15},
    }


def ours(side: int, codec: str = "zstd", maps: bool = False) -> Work:
    """The full evaluation of a 16-class cube."""
    import dask_uncert as du

    inputs, options = scene(side, codec), full_set()
    if not maps:
        return lambda: du.evaluate(**inputs, **options)
    folder = tempfile.mkdtemp()
    return lambda: du.evaluate(**inputs, **options, maps=MAPS, maps_store=f"{folder}/{time.time_ns()}.zarr")


def memory(side: int) -> Work:
    """The full evaluation of a 16-class cube: as seconds, the most GB that the process ever held."""
    evaluating = ours(side)

    def work() -> dict[str, float]:
        evaluating()
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        return {"seconds": most, "processor": most}

    return work


def reading(side: int, codec: str = "zstd", maps: bool = False, kind: str = "classes") -> Work:
    """Read the same arrays through dask and zarr; with `maps`, also write as many plain arrays as there are maps."""
    import dask
    import dask.array as da
    import zarr

    from dask_uncert.io.readers.zarr import FAST
    from tests.benchmarks.cubes import cube

    block = min(1024, side // 2)
    with zarr.config.set(FAST):
        store = zarr.open_group(cube(kind, side, codec), mode="r")
        stored = [store[name] for name in sorted(store.array_keys())]
    arrays = [da.from_array(a, chunks=(block, block, *a.shape[2:]), asarray=False) for a in stored]

    def work() -> None:
        corners = [a.map_blocks(lambda b: b[(slice(1),) * b.ndim], chunks=(1,) * a.ndim, dtype=a.dtype) for a in arrays]
        if not maps:
            dask.compute(*corners)
            return
        (p,) = (a for a in arrays if a.ndim == 3)
        with tempfile.TemporaryDirectory() as folder, zarr.config.set({"codec_pipeline.path": DEFAULT_PIPELINE}):
            group = zarr.open_group(folder, mode="w")
            sizes = {"shape": (side, side), "chunks": (block, block), "dtype": "float32"}
            targets = [group.create_array(str(i), **sizes) for i in range(len(MAPS))]
            written = da.store([p[..., i] for i in range(len(MAPS))], targets, lock=False, compute=False)
            dask.compute(*corners, written)

    return work


DEFAULT_PIPELINE = "zarr.core.codec_pipeline.BatchedCodecPipeline"


def binary(side: int, codec: str = "zstd", soft: str = "histogram", kind: str = "binary") -> Work:
    """A binary prediction with its uncertainty and a joint histogram, or one direct setting."""
    import dask_uncert as du

    inputs = scene(side, codec, kind)
    settings: dict[str, Any] = {"class": "1", "uncertainty": "uncertainty", "thresholds": [0.5]}
    if soft == "direct":
        settings |= {"sigmas": [0.1], "dampings": [1.0], "sweep": False}
    return lambda: du.evaluate(**inputs, measures=[], soft_confusion=[settings])


def in_memory(side: int, form: str) -> Work:
    """The full evaluation of arrays in memory: `ours`, `numpy` or `published`; or `dask`, of the store."""
    import dask.array as da
    import zarr

    import dask_uncert as du
    from tests.benchmarks import plain
    from tests.benchmarks.cubes import cube

    group, options = zarr.open_group(cube("classes", side), mode="r"), full_set()
    if form == "dask":
        p, y = (da.from_zarr(group[name]).rechunk((512, 512, -1)[: group[name].ndim]) for name in ("p", "y"))
        return lambda: plain.dask_full(p, y)
    p, y = group["p"][:], group["y"][:]
    if form == "ours":
        return lambda: du.evaluate(p, y, **options)
    return lambda: (plain.numpy_full if form == "numpy" else plain.published_full)(p, y)


def settings(side: int, form: str) -> Work:
    """A hundred settings of soft confusion: `ours` reads them off a joint histogram, `published` counts pixels."""
    import zarr

    import dask_uncert as du
    from tests.benchmarks.cubes import cube
    from tests.benchmarks.plain import published_soft

    group = zarr.open_group(cube("binary", side), mode="r")
    p, u, c = (group[name][:].ravel() for name in ("p", "u", "y"))
    grid = {
        "thresholds": [0.3, 0.5],
        "sigmas": [0.05 * i for i in range(1, 11)],
        "dampings": [0.0, 0.25, 0.5, 1.0, 2.0],
    }
    if form == "published":
        every = [(t, s, d) for t in grid["thresholds"] for s in grid["sigmas"] for d in grid["dampings"]]
        return lambda: [published_soft(p, c > 0, u, *setting) for setting in every]
    soft = [{"class": "1", "thresholds": grid["thresholds"], "uncertainty": "uncertainty"}]

    def work() -> None:
        found = du.evaluate(p, c, uncertainty=u, axis=None, measures=[], soft_confusion=soft)
        du.sweep(found, "1", **grid)

    return work


def peer(side: int, name: str) -> Work:
    """What another library offers of the metrics, or `ours NAME`, the same metrics by dask_uncert; arrays in memory."""
    import zarr

    import dask_uncert as du
    from tests.benchmarks.cubes import CLASSES, cube

    mine = name.startswith("ours ")
    name = name.removeprefix("ours ")
    kind = "binary" if name in ("xskillscore", "scores") else "classes"
    group = zarr.open_group(cube(kind, side), mode="r")
    p, y = group["p"][:], group["y"][:]
    if mine:
        if kind == "binary":
            return lambda: du.evaluate(p, y, axis=None, measures=[])
        return lambda: du.evaluate(p, y, measures=[])
    flat, codes = p.reshape(-1, *p.shape[2:]), y.ravel()
    if name == "scikit-learn":
        from sklearn import metrics

        classes = list(range(CLASSES))
        return lambda: (
            metrics.confusion_matrix(codes, flat.argmax(axis=1), labels=classes),
            metrics.log_loss(codes, flat, labels=classes),
            metrics.brier_score_loss(codes, flat, labels=classes),
        )
    if name == "xskillscore":
        import numpy as np
        import xarray as xr
        import xskillscore as xs

        hit, forecast = xr.DataArray(codes > 0, dims="n"), xr.DataArray(flat, dims="n")
        return lambda: (
            xs.brier_score(hit, forecast),
            xs.reliability(hit, forecast, probability_bin_edges=np.linspace(0, 1, 16)),
        )
    if name == "scores":
        import xarray as xr
        from scores import categorical, probability

        hit, forecast = xr.DataArray(codes.astype("f4"), dims="n"), xr.DataArray(flat, dims="n")
        table = categorical.ThresholdEventOperator(default_event_threshold=0.5)
        return lambda: (
            probability.brier_score(forecast, hit),
            table.make_contingency_manager(forecast, hit).transform().accuracy().compute(),
        )
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    tensor, target = torch.from_numpy(flat), torch.from_numpy(codes.astype("i8"))
    if name == "torchmetrics":
        from torchmetrics import classification as tm

        found = [tm.MulticlassConfusionMatrix(CLASSES), tm.MulticlassCalibrationError(CLASSES, n_bins=15)]
        return lambda: [metric(tensor, target) for metric in found]
    from monai.metrics import get_confusion_matrix

    def work() -> Any:
        predicted = torch.nn.functional.one_hot(tensor.argmax(dim=1), CLASSES).T[None]
        return get_confusion_matrix(predicted, torch.nn.functional.one_hot(target, CLASSES).T[None])

    return work


def planned(side: int) -> Work:
    """Plan a store of many chunks, and evaluate its first block."""
    import dask_uncert as du
    from dask_uncert.execution.evaluate import prepare
    from dask_uncert.spec.inputs import open_arrays
    from dask_uncert.spec.options import SceneOptions
    from tests.benchmarks.cubes import many_chunks

    store = str(many_chunks(side))

    def work() -> None:
        inputs = {
            name: du.Input(store, array=a, dims=["y", "x"]) for name, a in (("probabilities", "p"), ("reference", "y"))
        }
        plan = prepare(SceneOptions(), open_arrays(inputs, None, 0, -1, []))
        plan.tasks()
        plan.reduction().sum_blocks([0])

    return work


def cohort(cases: int, form: str) -> Work:
    """A cohort's job without figures, or `plain`: the same arrays evaluated one by one."""
    import numpy as np

    import dask_uncert as du
    from dask_uncert.reports import write
    from tests.benchmarks.cubes import cohort as folder_of

    folder = folder_of(cases)
    if form == "plain":
        pairs = [
            (np.load(folder / f"{i}-probabilities.npy"), np.load(folder / f"{i}-reference.npy")) for i in range(cases)
        ]
        return lambda: [du.evaluate(p, y, axis=None, measures=["gini"]) for p, y in pairs]
    write.figures_and_page = lambda *a: {}  # type: ignore[assignment]
    inputs = {name: {"dims": ["y", "x"]} for name in ("probabilities", "reference")}
    out = Path(tempfile.mkdtemp())
    job = {
        "version": 1, "kind": "cohort", "manifest": str(folder / "cases.csv"), "classes": {0: "no", 1: "yes"},
        "inputs": inputs, "measures": ["gini"], "output": str(out / "out"),
    }  # fmt: skip
    return lambda: du.run(job, fresh=True)


def command(*words: str) -> Work:
    """The command line, or with `python` before the words, Python itself, as a process of its own."""
    import subprocess

    main = ["-c", "from dask_uncert.cli.main import main; main()"]
    line = [sys.executable, *(words[1:] if words[:1] == ("python",) else (*main, *words))]

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            filled = [word.format(folder=folder) for word in line]
            subprocess.run(filled, check=True, capture_output=True)

    return work


def estimated(side: int, form: str) -> Work:
    """The pass of a cube; of the form `estimate ...`, what the probe says of it."""
    from dask_uncert.execution.estimate import probe
    from dask_uncert.execution.evaluate import prepare
    from dask_uncert.spec.inputs import open_arrays
    from dask_uncert.spec.options import SceneOptions

    kind, extra = ("classes", full_set()) if form.endswith("classes") else ("binary", {"measures": ["gini"]})
    inputs = scene(side, "zstd", kind)
    plan = prepare(SceneOptions(**extra), open_arrays(inputs, inputs.pop("axis", -1), 0, -1, []))
    if form.startswith("estimate"):
        threads = len(os.sched_getaffinity(0))
        return lambda: {"seconds": (price := probe(plan, threads)).seconds(threads), "processor": price.thread_seconds}
    return plan.compute


def simulated(side: int, size: int) -> Work:
    """A pass on a simulated cluster: as seconds, the share of time that workers are busy, and of the scheduler's."""
    from tests.benchmarks.counts import plan_of
    from tests.benchmarks.cubes import empty
    from tests.benchmarks.simulated_cluster import simulate

    reduction = plan_of(empty(Path(tempfile.mkdtemp()), side, 256, 16), "fill").reduction()

    def work() -> dict[str, float]:
        found = simulate(reduction, size)
        return {"seconds": found.busy, "processor": found.scheduler / found.seconds}

    return work


WORK: dict[str, Callable[..., Work]] = {
    f.__name__: f
    for f in (ours, memory, reading, binary, in_memory, settings, peer, planned, cohort, command, estimated, simulated)
}  # fmt: skip


def main() -> None:
    """Run a piece of work and print what it took."""
    name, options = sys.argv[1], json.loads(sys.argv[2])
    workers, small = options.pop("workers", None), options.pop("warm", None)
    if workers:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])
    import dask

    dask.config.set(scheduler="threads", num_workers=workers or len(os.sched_getaffinity(0)))
    words = options.pop("words", [])
    try:
        if small:
            WORK[name](*words, **{**options, **small})()
        work = WORK[name](*words, **options)
    except ModuleNotFoundError as error:
        print(error.name)
        sys.exit(MISSING)
    before, begin = _processor(), time.perf_counter()
    result = work()
    seconds, processor = time.perf_counter() - begin, _processor() - before
    if isinstance(result, dict) and "seconds" in result:
        seconds, processor = result["seconds"], result["processor"]
    print(json.dumps({"seconds": seconds, "processor": processor}))


def _processor() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


if __name__ == "__main__":
    scratch = tempfile.tempdir = tempfile.mkdtemp(prefix="dask-uncert-benchmarks-")
    try:
        main()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
