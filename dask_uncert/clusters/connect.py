"""Connecting to a cluster: it is used inside one ``with``, which closes what it opened.

``distributed`` is imported inside the functions: it takes 0.8 s, which commands that compute nothing should not pay.

Neither another machine nor another user of this machine can use a port of a local cluster. It is a ``SpecCluster``
because ``LocalCluster`` with threads binds its HTTP server to every interface (seen with distributed 2026.8).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from dask_uncert.clusters import jobqueue, mpi
from dask_uncert.clusters.config import ADDRESSES, Address, Batch, Local, Mpi, read_cluster
from dask_uncert.clusters.memory import block_memory, with_defaults
from dask_uncert.errors import ClusterError, InputError, listed, one_line
from dask_uncert.io.validation import validated

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

DASHBOARD_PORT = 8787
_scratch_folders: list[str] = []  # of local clusters, also of those that are closed


@contextmanager
def connect(
    cluster: str | Path | Client = "local",
    *,
    workers: int | None = None,
    threads: int | None = None,
    processes: bool | None = None,
    memory_limit: int | str | None = None,
    dashboard: bool | int | None = None,
    timeout: float = 30.0,
) -> Iterator[Client]:
    """Connect to a cluster, or start one, and yield its client as dask's default one.

    What was started or opened here is closed at the end of the ``with``.

    Parameters
    ----------
    cluster : str, path or distributed.Client
        "local", a YAML file as in ``cluster/``, the address of a running scheduler (``tcp://host:port``, or
        ``tls://host:port`` with the certificates of dask's configuration), or a Client, which is left open.
    workers : int, optional
        Number of workers of a local cluster: by default one, or one per CPU with ``processes``. This and the next four
        override what a file says.
    threads : int, optional
        Threads of each worker; by default the CPUs that this process may use, divided among the workers.
    processes : bool, optional
        Whether each worker has its own process. By default workers are threads of one process, because the kernels
        release the GIL and arrays need not be copied.
    memory_limit : int or str, optional
        Memory of each worker, in bytes or such as "4 GiB"; by default the memory of the machine or control group, divided
        among the workers.
    dashboard : bool or int, optional
        True for http://127.0.0.1:8787, or the number of another port.
    timeout : float
        Seconds to wait for a scheduler at an address.

    Yields
    ------
    distributed.Client

    Raises
    ------
    InputError
        If the request cannot be right; nothing is started then.
    ClusterError
        If the cluster does not start or answer, or has other versions of the software.

    Examples
    --------
    >>> import dask_uncert as du
    >>> with du.connect(threads=1) as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    if not timeout > 0:
        raise InputError(f"timeout must be a number of seconds above 0, found {timeout!r}")
    names = ("workers", "threads", "processes", "memory_limit", "dashboard")
    local = dict(zip(names, (workers, threads, processes, memory_limit, dashboard), strict=True))
    options = validated(Local, local, "connect(): ").model_dump(exclude={"kind"}, exclude_none=True)
    running = not isinstance(cluster, str | Path) or str(cluster).startswith(ADDRESSES)
    if options and running:
        raise InputError(
            f"{', '.join(options)} describe a local cluster, but {cluster} is running already: leave them "
            "out, or set them where its workers are started"
        )
    if isinstance(cluster, str | Path):
        described = read_cluster(cluster)
        if options and not isinstance(described, Local):
            raise InputError(f"{', '.join(options)} are of local clusters; {cluster} is not one: leave them out")
        if isinstance(described, Address):
            opened = _connect(described, timeout)
        elif isinstance(described, Batch):
            opened = jobqueue.start(described)
        elif isinstance(described, Mpi):
            opened = mpi.start(described)
        else:
            opened = _start_local(with_defaults(described.model_copy(update=options)))
        with opened as client:
            if not isinstance(described, Local):
                check_versions(client)
            yield client
    elif getattr(cluster, "asynchronous", True):
        raise InputError(f"cluster must be 'local', a file, an address or a Client, found {cluster!r}")
    else:
        with cluster.as_current():
            yield cluster


def describe(client: Client) -> dict[str, int | None]:
    """Return the numbers of workers and threads, and their memory in bytes; None if it is not limited."""
    workers = _workers(client)
    limited = workers and all(worker.memory for worker in workers)
    return {
        "workers": len(workers),
        "threads": sum(worker.threads for worker in workers),
        "memory_bytes": sum(worker.memory for worker in workers) if limited else None,
    }


PACKAGES = ("dask-uncert", "dask", "distributed", "numpy", "zarr", "numba")
"""Packages whose versions must be the same everywhere: they compute the numbers, or their objects are sent."""


def check_versions(client: Client) -> None:
    """Raise ClusterError if the scheduler or a worker has other versions, and name them."""

    def versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
        import sys
        from importlib.metadata import PackageNotFoundError, version

        installed = {"python": ".".join(map(str, sys.version_info[:2]))}
        for name in names:
            try:
                installed[name] = version(name)
            except PackageNotFoundError:
                installed[name] = "none"
        return installed

    own = versions()
    others: dict[str, dict[str, str]] = client.run(versions)
    others["the scheduler"] = client.run_on_scheduler(versions)
    differences = [
        f"{process} has {name} {installed[name]}, here it is {own[name]}"
        for process, installed in others.items()
        for name in own
        if installed[name] != own[name]
    ]
    if differences:
        raise ClusterError(
            f"the cluster's software differs: {listed(differences, 3, '; ')}. Install the same versions everywhere."
        )


def memory_per_thread(client: Client) -> float | None:
    """Return the bytes that a block may use in a thread of the smallest worker; 0 or less if none are left.

    None if there are no workers, or none is limited. What else a worker's process holds is not available to blocks.
    """
    limited = [worker for worker in _workers(client) if worker.memory]
    return min((block_memory(*worker) for worker in limited), default=None)


class _Worker(NamedTuple):
    """Memory limit in bytes (0 for none), threads, and bytes that its process uses."""

    memory: int
    threads: int
    used: int


def _workers(client: Client) -> list[_Worker]:
    def read(dask_scheduler: Any) -> list[tuple[int, int, int]]:
        workers = dask_scheduler.workers.values()
        return [(w.memory_limit or 0, w.nthreads, int(w.metrics.get("memory", 0))) for w in workers]

    return [_Worker(*worker) for worker in client.run_on_scheduler(read)]


@contextmanager
def _connect(described: Address, timeout: float) -> Iterator[Client]:
    from distributed import Client, connect

    address, security = described.address, _security(described)

    async def greet() -> None:  # a Client would wait forever for a server that accepts but never answers
        options = security.get_connection_args("client")
        comm = await asyncio.wait_for(connect(address, timeout=timeout, **options), timeout)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as pool:  # a notebook's own thread runs an event loop already
            pool.submit(asyncio.run, greet()).result()
        client = Client(address, timeout=timeout, security=security)
    except Exception as error:
        reason = one_line(error) if str(error) else "it sent no answer"
        raise ClusterError(
            f"no scheduler answered at {address} within {timeout:g} s: {reason}. Check that `dask scheduler` "
            "runs there and that its port can be reached from here, and for tls:// that the cluster's file, or dask's "
            "configuration (distributed.comm.tls), names certificates that it accepts; a slow network may need a longer "
            "timeout"
        ) from error
    with client:
        yield client


def _security(described: Address) -> Any:
    """Return the certificates that the cluster's file names, or those of dask's configuration."""
    from distributed import Security

    names = {"tls_ca_file": "ca_file", "tls_client_cert": "cert", "tls_client_key": "key"}
    options = {option: getattr(described, name) for option, name in names.items()}
    options = {name: path for name, path in options.items() if path is not None}
    for path in options.values():
        if not Path(str(path)).is_file():
            raise InputError(f"there is no certificate at {path}, which the cluster's file names")
    return Security(**options, require_encryption=True) if options else Security()


@contextmanager
def _start_local(local: Local) -> Iterator[Client]:
    """Start a local cluster: on two cores, threads take 0.07 s, two processes 1.2 s, not counting the import."""
    import dask.config
    from distributed import Client

    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(
            prefix="dask-uncert-", dir=dask.config.get("temporary-directory"), ignore_cleanup_errors=True
        )
        scratch = stack.enter_context(folder)  # entered first, hence removed last
        _scratch_folders.append(scratch)
        # distributed would name the machine's outer address, where nothing listens
        config: dict[str, Any] = {"distributed.dashboard.link": "http://127.0.0.1:{port}/status"}
        # Otherwise a worker whose restart takes longer than this would be given up
        config["distributed.deploy.lost-worker-timeout"] = "1000 days"
        # Its samples of other threads' frames have crashed workers (a segmentation fault with Python 3.11)
        config["distributed.worker.profile.enabled"] = False
        stack.enter_context(dask.config.set(config))
        if local.processes:
            stack.enter_context(_main_not_imported())
        try:
            cluster = stack.enter_context(_local_cluster(local, scratch))
            client = stack.enter_context(Client(cluster))
        except Exception as error:
            reason = one_line(error.__cause__ or error)
            raise ClusterError(f"the local cluster {local} did not start: {reason}") from error
        yield client


@contextmanager
def _main_not_imported() -> Iterator[None]:
    """Keep processes that are started inside of the `with` from importing the program's main module.

    multiprocessing imports it under another name, which runs a script without a main guard again, and fails for one
    from the standard input. Workers do not need it: functions in it are sent whole. It leaves out modules of this name.
    """
    main: Any = sys.modules["__main__"]
    before = getattr(main, "__spec__", None)
    main.__spec__ = ModuleSpec("__main__", None)
    try:
        yield
    finally:
        main.__spec__ = before


def remove_local_clusters() -> bool:
    """End the workers of this process's local clusters, and remove their files; return False if there are none."""
    if not _scratch_folders:
        return False
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
    for folder in _scratch_folders:
        shutil.rmtree(folder, ignore_errors=True)
    return True


def _local_cluster(local: Local, scratch: str) -> SpecCluster:
    from distributed import Nanny, Scheduler, Security, SpecCluster, Worker

    common: dict[str, Any] = {"protocol": "inproc://", "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    if local.processes:  # whoever reaches the port could run code as us: this cluster's own keys prevent it
        common |= {"protocol": "tls://", "host": "127.0.0.1", "security": Security.temporary()}
    scheduler = dict(common)
    if local.dashboard:
        port = DASHBOARD_PORT if local.dashboard is True else local.dashboard
        scheduler |= {"dashboard": True, "dashboard_address": f"127.0.0.1:{port}"}
    limits = {"nthreads": local.threads, "memory_limit": local.memory_limit}
    options = common | limits | {"local_directory": scratch, "silence_logs": logging.CRITICAL}
    worker = {"cls": Nanny if local.processes else Worker, "options": options}
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": scheduler},
        workers=dict.fromkeys(range(local.workers or 1), worker),
        security=common.get("security"),
        silence_logs=logging.CRITICAL,
    )
