"""What a plan says of memory holds: no block needs more, and what an error tells to store anew fits when it is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import psutil
import pytest
import yaml
import zarr

import dask_uncert as du
from dask_uncert.clusters.connect import memory_per_thread
from dask_uncert.clusters.memory import PROCESS_BYTES, block_memory, described_memory
from dask_uncert.errors import InputError
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.jobs.load import plan_job, read_job
from tests.support import ROOT

MIB = 1 << 20
MEASURES = ["gini", "entropy", "fisher_rao", "renyi", "tsallis", "t_entropy", "variance", "confused_classes"]


def written(folder, arrays, large, **words):
    """Write jobs tiny.yaml and large.yaml over the same values (64 rows) again and again, in square chunks.

    arrays: functions of a width, by input, that return values and words of the job.
    """
    for job, (height, width, side) in {"tiny": (64, 64, 64), "large": large}.items():
        group, inputs = zarr.open_group(folder / f"{job}.zarr", mode="w"), {}
        for name, make in arrays.items():
            values, more = make(width)
            shape, chunks = (height, *values.shape[1:]), (side, side, *values.shape[2:])
            array = group.create_array(name, shape=shape, chunks=chunks, dtype=values.dtype)
            array[...] = np.tile(values, (height // 64, *[1] * (values.ndim - 1)))
            dims = ["y", "x", *more.pop("beside", [])]
            inputs[name] = {"store": f"{job}.zarr", "array": name, "dims": dims, **more}
        document = {"version": 1, "kind": "scene", "output": f"out_{job}", "inputs": inputs, **words}
        (folder / f"{job}.yaml").write_text(yaml.safe_dump(document))
    return folder / "large.yaml"


def shares(width, classes=16):
    p = np.random.default_rng(0).random((64, width, classes), dtype="f4") + 1e-3
    return p / p.sum(-1, keepdims=True)


def codes(classes):
    return lambda width: (np.random.default_rng(1).integers(0, classes, (64, width)).astype("u1"), {})


def of_classes(number):
    return {i: f"c{i}" for i in range(number)}


def probabilities(dtype="f4", **words):
    def make(width):
        p = shares(width)
        return (np.rint(p * 250) if dtype == "u1" else p).astype(dtype), {"beside": ["class"], **words}

    return {"probabilities": make, "reference": codes(16)}


def samples(width):
    drawn = np.stack([np.roll(shares(width), i, axis=1) for i in range(6)], axis=-1)
    return drawn, {"beside": ["class", "sample"]}


def normal(*beside):
    def make(width):
        shape = (64, width, *[4] * len(beside))
        return np.random.default_rng(2).normal(size=shape).astype("f4"), {"beside": list(beside)}

    return make


def covariance(width):
    return np.tile(np.eye(4, dtype="f4"), (64, width, 1, 1)), {"beside": ["output", "output2"]}


SWEEP = {
    "class": "c1",
    "thresholds": [0.3, 0.5],
    "sigmas": [0, 0.1],
    "dampings": [0, 1],
    "uncertainty": "entropy",
}
WIDE = (1024, 3072, 1024)  # three blocks of 64 MiB, where there are 16 classes
CASES = {
    "many measures, a sweep and maps": (
        probabilities(), WIDE, {"classes": of_classes(16), "measures": MEASURES, "soft_confusion": [SWEEP], "maps": ["gini", "entropy", "correct"]},
    ),
    "tiles": (
        probabilities(), WIDE, {"classes": of_classes(16), "measures": MEASURES, "confidence": {"unit": "tile", "size": 32}},
    ),
    "zones": ({**probabilities(), "zones": codes(10)}, WIDE, {"classes": of_classes(16), "measures": MEASURES}),
    "whole numbers": (probabilities("u1", scale=0.004, tolerance=0.9), WIDE, {"classes": of_classes(16), "measures": MEASURES}),
    "codes for no data": (probabilities(nodata=-1.0), WIDE, {"classes": of_classes(16), "measures": ["entropy"]}),
    "logits": (probabilities(logits=True), WIDE, {"classes": of_classes(16), "measures": ["entropy"]}),
    "logits of two classes": (
        {"probabilities": lambda w: (normal()(w)[0], {"logits": True}), "reference": codes(2)},
        (4096, 6144, 2048), {"classes": of_classes(2), "measures": ["entropy"]},
    ),
    "samples": (
        {"samples": samples, "reference": codes(16)}, (512, 1536, 512),
        {"classes": of_classes(16), "measures": ["predictive_entropy", "mutual_information", "entropy"]},
    ),
    "regression": (
        {"mean": normal("output"), "reference": normal("output"), "covariance": covariance}, WIDE,
        {"kind": "regression", "maps": ["nssr"]},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_block_needs_more_than_the_plan_says(case, tmp_path):
    arrays, large, words = CASES[case]
    written(tmp_path, arrays, large, **words)
    command = [sys.executable, str(ROOT / "tests" / "support" / "peak_memory.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    planned, grown, own = map(int, done.stdout.split())
    assert planned / 4 < grown <= planned  # blocks were that large, and no larger
    assert own < PROCESS_BYTES


@pytest.fixture
def coarse(tmp_path):
    """A job whose blocks are of 64 MiB at least; a file of a cluster whose worker has room for less than one."""
    job = written(tmp_path, probabilities(), (1024, 2048, 1024), classes=of_classes(16), measures=["entropy"])
    cluster = tmp_path / "small.yaml"
    cluster.write_text("kind: local\nprocesses: true\nworkers: 1\nthreads: 1\nmemory_limit: 800 MiB\n")
    return job, cluster


def command(*words):
    program = str(Path(sys.executable).with_name("dask-uncert"))
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_inputs_stored_anew_as_an_error_tells_fit(coarse, tmp_path, without_pictures):
    job, small = coarse
    refused = command("plan", job, "--cluster", small)
    assert refused.returncode == 2
    assert command("run", job, "--cluster", small, "--quiet").stderr == refused.stderr
    assert re.match(
        r"error: a block of y 1024, x 1024 needs 2\d\d MiB, but a thread has 144 MiB besides Python's own\. Store ",
        refused.stderr,
    )
    assert not (tmp_path / "out_large").exists()
    words = yaml.safe_load(job.read_text())
    advice = [shlex.split(text) for text in re.findall(r"`(dask-uncert convert .*?)`", refused.stderr)]
    assert [words[3] for words in advice] == ["probabilities.zarr", "reference.zarr"]
    for _, _, source, target, *rest in advice:
        assert command("convert", source, tmp_path / target, "--quiet", *rest).returncode == 0
        name = target.removesuffix(".zarr")
        words["inputs"][name] |= {"store": target, "array": name}
    (tmp_path / "anew.yaml").write_text(yaml.safe_dump({**words, "output": "out_anew"}))
    planned = command("plan", tmp_path / "anew.yaml", "--cluster", small)
    assert planned.returncode == 0, planned.stderr
    done = command("run", tmp_path / "anew.yaml", "--cluster", small, "--quiet")
    assert done.returncode == 0, done.stderr
    assert du.load(tmp_path / "out_anew") == du.run(job)


def test_blocks_are_as_small_as_memory_wants_where_chunks_allow(tmp_path, without_pictures):
    job = written(tmp_path, probabilities(), (1024, 2048, 128), classes=of_classes(16), measures=["entropy"])
    plan = plan_job(*read_job(job))
    assert fit_to_memory(plan, None) is plan
    assert fit_to_memory(plan, plan.block_memory()) is plan
    sizes = []
    for room in (plan.block_memory() - 1, 40 * MIB, 25 * MIB):
        found = fit_to_memory(plan, room)
        assert found.block_memory() <= room
        assert all(side % 128 == 0 for side in found.grid.block)
        sizes.append(np.prod(found.grid.block))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2]
    with du.connect(threads=2):
        assert fit_to_memory(plan, 25 * MIB).compute() == plan.compute()
    with pytest.raises(
        InputError, match=r"needs .* MiB, but a thread has 0 MiB .* No chunks would do: use fewer threads"
    ):
        fit_to_memory(plan, -1.0)


def test_what_only_can_be_read_whole_is_told_to_be_stored_anew(tmp_path):
    np.savez_compressed(tmp_path / "p.npz", shares(2048))
    np.savez_compressed(tmp_path / "y.npz", codes(16)(2048)[0])
    inputs = {
        "probabilities": {"store": str(tmp_path / "p.npz"), "dims": ["y", "x", "class"]},
        "reference": {"store": str(tmp_path / "y.npz"), "dims": ["y", "x"]},
    }
    words = {"version": 1, "kind": "scene", "classes": of_classes(16), "output": "out", "inputs": inputs}
    plan = plan_job(*read_job(words))
    assert plan.block_memory() > 8 * MIB
    with pytest.raises(
        InputError,
        match=r"probabilities by `dask-uncert convert .*p\.npz probabilities\.zarr .*--dims y,x,class --chunks \d+,\d+,16`",
    ):
        fit_to_memory(plan, 22 * MIB)


def test_what_else_a_process_holds_is_not_there_for_blocks():
    used = psutil.Process().memory_info().rss
    with du.connect(threads=2, memory_limit=3 * used + 2 * PROCESS_BYTES) as client:
        before = memory_per_thread(client)
        held = np.ones(PROCESS_BYTES, "u1")
        expected = pytest.approx(
            (0.7 * (3 * used + 2 * PROCESS_BYTES) - used - held.nbytes) / 2, abs=0.1 * PROCESS_BYTES
        )
        left, end = before, time.monotonic() + 20
        while left != expected and time.monotonic() < end:
            time.sleep(0.05)  # workers report their memory twice a second
            left = memory_per_thread(client)
        assert before > left == expected


def test_a_run_is_refused_where_its_workers_would_be_paused(tmp_path):
    """What the process holds is nothing that the plan reads: enough memory by the plan alone, and paused with it."""
    job = written(tmp_path, probabilities(), (64, 128, 64), classes=of_classes(16), measures=["entropy"])
    used, need = psutil.Process().memory_info().rss, plan_job(*read_job(job)).block_memory()
    limit = next(n for n in range(used, 100 * used, MIB) if block_memory(n, 1) >= need)
    held = np.ones(limit - used, "u1")
    with (
        du.connect(threads=1, memory_limit=limit) as client,
        pytest.raises(InputError, match=r"needs \d+ MiB, but a thread has 0 MiB besides Python's own"),
    ):
        du.run(job, cluster=client)
    assert held.all()  # it was there until now


def test_a_described_cluster_says_how_much_there_is(tmp_path):
    def memory(text):
        (tmp_path / "c.yaml").write_text(text)
        per_thread = described_memory(tmp_path / "c.yaml")
        return per_thread and round(per_thread)

    assert memory("kind: local\nmemory_limit: 4 GiB\nthreads: 2") == round((0.7 * 4096 * MIB - PROCESS_BYTES) / 2)
    assert memory("kind: slurm\noptions: {memory: 32 GB, cores: 8, processes: 2}") == round(
        (0.7 * 16e9 - PROCESS_BYTES) / 4
    )
    assert memory("kind: sge\noptions: {cores: 8}") is None
    assert memory("kind: mpi\nmemory_limit: 8 GiB\nthreads: 4") == round((0.7 * 8192 * MIB - PROCESS_BYTES) / 4)
    assert memory("kind: mpi") is None
    assert memory("kind: address\naddress: tls://h:1") is None
    assert described_memory("tcp://nobody:1") is None
    assert described_memory("local") > described_memory("local", cohort=True)
    with dask.config.set({"distributed.worker.memory.pause": 0.5}):  # where dask pauses earlier, there is less
        assert memory("kind: local\nmemory_limit: 4 GiB\nthreads: 2") == round((0.4 * 4096 * MIB - PROCESS_BYTES) / 2)
    with pytest.raises(InputError, match=r"memory of .*c\.yaml must be a size such as '4 GiB', found 'lots'"):
        memory("kind: mpi\nmemory_limit: lots")
