"""How much memory a block may use: of workers that are there, or that a description promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dask_uncert.clusters.config import ADDRESSES, Batch, Local, Mpi, read_cluster
from dask_uncert.clusters.mpi import THREADS
from dask_uncert.errors import InputError

OWN = (
    416 << 20
)  # bytes of a worker's process before it reads: 302 to 308 MiB, up to 399 where it compiled its kernels
USED = 0.8  # of its memory; above it a worker takes no more tasks until it has some back


def usable(memory: float, threads: int) -> float:
    """Bytes of a worker's memory that each of its threads may use, beside Python's own; 0 or less where none are left."""
    return (USED * memory - OWN) / threads


def described_memory(cluster: str | Path, cohort: bool = False) -> float | None:
    """Bytes that a block may use on a cluster that "local", a file or an address describes, which is not started or asked.

    cohort: for a cohort's job, of which "local" means processes. None where the description does not say: an address
    never does.
    """
    from dask.utils import parse_bytes

    if str(cluster).startswith(ADDRESSES):
        return None
    described = read_cluster(cluster)
    if isinstance(described, Local):
        local = sized(replace(described, processes=True) if cohort and cluster == "local" else described)
        return usable(parse_bytes(local.memory_limit), local.threads or 1)
    if isinstance(described, Batch):
        memory, threads = described.options.get("memory"), described.options.get("cores")
        processes = described.options.get("processes") or 1
    elif isinstance(described, Mpi):
        memory, threads, processes = described.memory_limit, described.threads or THREADS, 1
    else:
        return None
    if not memory or not isinstance(threads, int):
        return None
    try:
        return usable(parse_bytes(memory) / processes, max(1, threads // processes))
    except ValueError:
        raise InputError(f"the memory of {cluster} must be such as '4 GiB', found {memory!r}") from None


def sized(local: Local) -> Local:
    """With every number known. Workers in one process are not given shares of memory: each sees it all."""
    from dask.system import CPU_COUNT
    from dask.utils import parse_bytes
    from distributed.system import MEMORY_LIMIT

    workers = local.workers or (CPU_COUNT if local.processes else 1)
    threads = local.threads or max(1, CPU_COUNT // workers)
    try:
        memory = parse_bytes(local.memory_limit or MEMORY_LIMIT // (workers if local.processes else 1))
    except ValueError:
        raise InputError(f"memory_limit must be such as '4 GiB', found {local.memory_limit!r}") from None
    return replace(local, workers=workers, threads=threads, memory_limit=memory)
