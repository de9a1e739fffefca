"""Memory that a block may use, and threads, on running workers or on those that a cluster file describes."""

from __future__ import annotations

from pathlib import Path

from dask_uncert.clusters.config import ADDRESSES, Batch, Local, Mpi, read_cluster
from dask_uncert.clusters.mpi import THREADS
from dask_uncert.errors import InputError

PROCESS_BYTES = 416 << 20
"""Memory of a worker's process before it reads: 302 to 308 MiB, up to 399 if it compiled its kernels."""
ROOM = 0.1  # of a worker's memory, between what blocks may use and where dask pauses it, for memory that is freed late


def block_memory(memory: float, threads: int, used: float = 0.0) -> float:
    """Return the bytes of a worker's memory that a block may use in each thread; 0 or less if none are left.

    used: what its process uses now; PROCESS_BYTES if that is more. A worker that used more than dask's
    `distributed.worker.memory.pause` (0.8 of its memory) would begin no task until memory is free again, which may
    never be: so blocks end below that.
    """
    import dask.config

    get, worker = dask.config.get, "distributed.worker.memory"  # defaults, because distributed may not be imported
    pause = get(f"{worker}.pause", 0.8) or get(f"{worker}.terminate", 0.95) or 1.0
    return ((float(pause) - ROOM) * memory - max(used, PROCESS_BYTES)) / threads


def described_memory(cluster: str | Path, cohort: bool = False) -> float | None:
    """Return the bytes that a block may use on a cluster that "local", a file or an address describes, without starting it.

    cohort: for a cohort's job, for which "local" means processes. None if the description does not say, as for an
    address.
    """
    from dask.utils import parse_bytes

    if str(cluster).startswith(ADDRESSES):
        return None
    described = read_cluster(cluster)
    if isinstance(described, Local):
        if cohort and cluster == "local":
            described = described.model_copy(update={"processes": True})
        local = with_defaults(described)
        return block_memory(parse_bytes(local.memory_limit), local.threads or 1)
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
        return block_memory(parse_bytes(memory) / processes, max(1, threads // processes))
    except ValueError:
        raise InputError(f"memory of {cluster} must be a size such as '4 GiB', found {memory!r}") from None


def described_threads(cluster: str | Path, cohort: bool = False) -> tuple[int, int | None]:
    """Return the threads of a worker, and of all workers, of a cluster as in `described_memory`; None if not said."""
    if str(cluster).startswith(ADDRESSES):
        return 1, None
    described = read_cluster(cluster)
    if isinstance(described, Local):
        if cohort and cluster == "local":
            described = described.model_copy(update={"processes": True})
        local = with_defaults(described)
        return local.threads or 1, (local.threads or 1) * (local.workers or 1)
    if isinstance(described, Batch):
        cores = described.options.get("cores") or 1
        return max(1, cores // (described.options.get("processes") or 1)), cores * (described.jobs or 1)
    return (described.threads or THREADS, None) if isinstance(described, Mpi) else (1, None)


def with_defaults(local: Local) -> Local:
    """Return the cluster with all numbers filled in. Workers in one process do not share out memory: each sees it all."""
    from dask.system import CPU_COUNT
    from dask.utils import parse_bytes
    from distributed.system import MEMORY_LIMIT

    workers = local.workers or (CPU_COUNT if local.processes else 1)
    threads = local.threads or max(1, CPU_COUNT // workers)
    try:
        memory = parse_bytes(local.memory_limit or MEMORY_LIMIT // (workers if local.processes else 1))
    except ValueError:
        raise InputError(f"memory_limit must be such as '4 GiB', found {local.memory_limit!r}") from None
    return local.model_copy(update={"workers": workers, "threads": threads, "memory_limit": memory})
