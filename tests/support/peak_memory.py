"""Run by tests in a process of its own: what a plan says that a block needs, and how far the process's peak grows.

`python peak_memory.py FOLDER`: tiny.yaml there compiles kernels, then large.yaml runs on one thread. Prints both numbers.
"""

import ctypes
import gc
import sys
from contextlib import contextmanager
from pathlib import Path

import dask_uncert as du
from dask_uncert.execution.evaluate import with_maps
from dask_uncert.jobs.load import plan_job, read_job


def status(word):
    """A number of bytes that the kernel knows of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{word}:"))


@contextmanager
def grown():
    """Yield a function that returns how far this process's peak of memory has grown since the `with` began."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # resets the peak
    before = status("VmRSS")
    yield lambda: status("VmHWM") - before


def planned(folder, name):
    plan = plan_job(*read_job(folder / f"{name}.yaml"))
    return with_maps(plan, str(folder / f"{name}.maps.zarr"), {}) if plan.request.layers else plan


def main(folder):
    tiny, large = planned(folder, "tiny"), planned(folder, "large")
    with du.connect(threads=1):
        tiny.compute()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        before = status("VmRSS")
        with grown() as growth:
            large.compute()
            print(large.block_memory(), growth(), before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
