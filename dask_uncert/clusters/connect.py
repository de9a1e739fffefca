"""Where the work runs: a cluster is connected to, used inside one ``with``, and left as it was found.

The only door to ``distributed``. It is imported inside the functions: importing it takes 0.8 s, which
commands that compute nothing should not pay.

A local cluster opens no port that another machine can reach, nor one that another user of this machine could
use. It is built from ``distributed.SpecCluster``
because ``LocalCluster`` with threads binds its HTTP server to every interface even when no dashboard is
asked for (seen with distributed 2026.8).
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters import jobqueue, mpi
from dask_uncert.clusters.config import ADDRESSES, Address, Batch, Local, Mpi, read_cluster, with_words
from dask_uncert.clusters.memory import sized, usable
from dask_uncert.errors import ClusterError, InputError

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

DASHBOARD_PORT = 8787


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
    """A ``distributed.Client``, the default one inside the ``with``; what we opened is closed at its end.

    >>> import dask_uncert as du
    >>> with du.connect(threads=1) as client:
    ...     client.submit(sum, [1, 2]).result()
    3

    ``cluster`` is ``"local"``, a YAML file of ``cluster/``, an address of a running scheduler
    (``tcp://host:port``, or ``tls://host:port`` with the certificates of dask's configuration), or a
    Client, which is left open. The other words describe a local cluster and override a file's:

    - ``workers``: one by default, or one per CPU with ``processes``.
    - ``threads``: of each worker; by default the CPUs that this process may use, shared out. One process
      with threads is the default because the kernels release the GIL and arrays need not be copied.
    - ``processes``: each worker in its own process; a script then needs ``if __name__ == "__main__":``.
    - ``memory_limit``: of each worker, bytes or such as ``"4 GiB"``; by default the memory of the machine
      or control group, shared out.
    - ``dashboard``: True for http://127.0.0.1:8787, or another port.

    ``timeout`` is how many seconds to wait for a scheduler at an address.

    Raises InputError for a request that cannot be right (before anything starts), ClusterError for a
    cluster that does not start or answer.
    """
    if not timeout > 0:
        raise InputError(f"timeout must be a number of seconds above 0, found {timeout!r}")
    given = asdict(Local(workers, threads, processes, memory_limit, dashboard))
    words = {name: value for name, value in given.items() if value is not None}
    running = not isinstance(cluster, str | Path) or str(cluster).startswith(ADDRESSES)
    if words and running:
        raise InputError(
            f"{', '.join(words)} describe a local cluster, but {cluster} is running already: leave them "
            "out, or set them where its workers are started"
        )
    if isinstance(cluster, str | Path):
        described = Address(str(cluster)) if running else read_cluster(cluster)
        if words and not isinstance(described, Local):
            raise InputError(
                f"{', '.join(words)} describe a local cluster, and {cluster} is none: leave them out"
            )
        if isinstance(described, Address):
            opened = _reach(described, timeout)
        elif isinstance(described, Batch):
            opened = jobqueue.start(described)
        elif isinstance(described, Mpi):
            opened = mpi.start(described)
        else:
            opened = _start(sized(with_words(described, words, "connect()")))
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
    """How many workers and threads there are, and their memory in bytes; None where it is not limited."""
    found = _workers(client)
    limited = found and all(memory for _, memory in found)
    return {
        "workers": len(found),
        "threads": sum(threads for threads, _ in found),
        "memory_bytes": sum(memory for _, memory in found) if limited else None,
    }


PACKAGES = ("dask-uncert", "dask", "distributed", "numpy", "zarr", "numba")
"""Whose versions must be the same everywhere: numbers pass through them, or their objects are sent."""


def check_versions(client: Client) -> None:
    """Refuse a cluster whose scheduler or workers have other versions; ClusterError names them."""

    def versions(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
        import sys
        from importlib.metadata import PackageNotFoundError, version

        found = {"python": ".".join(map(str, sys.version_info[:2]))}
        for name in names:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "none"
        return found

    own = versions()
    there: dict[str, dict[str, str]] = {
        "the scheduler": client.run_on_scheduler(versions),
        **client.run(versions),
    }
    wrong = [
        f"{place} has {name} {found[name]}, here it is {own[name]}"
        for place, found in there.items()
        for name in own
        if found[name] != own[name]
    ]
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ClusterError(
            f"the cluster's software differs: {'; '.join(wrong[:3])}{more}. Install the same everywhere."
        )


def memory_per_thread(client: Client) -> float | None:
    """Bytes that a block may use in a thread of the tightest worker, beside Python's own; 0 or less where none are left.

    None where no worker is there or limited.
    """
    return min((usable(memory, threads) for threads, memory in _workers(client) if memory), default=None)


def _workers(client: Client) -> list[tuple[int, int]]:
    """Threads and memory limit (0 for none) of each worker."""

    def read(dask_scheduler: Any) -> list[tuple[int, int]]:
        return [(worker.nthreads, worker.memory_limit or 0) for worker in dask_scheduler.workers.values()]

    return [(threads, memory) for threads, memory in client.run_on_scheduler(read)]


@contextmanager
def _reach(at: Address, timeout: float) -> Iterator[Client]:
    from distributed import Client, connect

    address, security = str(at.address), _security(at)

    async def greet() -> None:  # a Client would wait for ever for a peer that accepts and stays silent
        words = security.get_connection_args("client")
        comm = await asyncio.wait_for(connect(address, timeout=timeout, **words), timeout)
        await comm.close()

    try:
        with ThreadPoolExecutor(1) as apart:  # a notebook's own thread runs an event loop already
            apart.submit(asyncio.run, greet()).result()
        client = Client(address, timeout=timeout, security=security)
    except Exception as error:
        reason = " ".join(str(error).split()) or "it is silent"
        raise ClusterError(
            f"no scheduler answered at {address} within {timeout:g} s: {reason}. Check that `dask scheduler` "
            "runs there and its port is open from here, and for tls:// that the cluster's file, or dask's "
            "configuration (distributed.comm.tls), names certificates that it accepts; a slow network may need a longer "
            "timeout"
        ) from error
    with client:
        yield client


def _security(at: Address) -> Any:
    """The certificates of the address's file, or dask's own."""
    from distributed import Security

    given = {"tls_ca_file": at.ca_file, "tls_client_cert": at.cert, "tls_client_key": at.key}
    missing = [
        name for name in (at.ca_file, at.cert, at.key) if name is not None and not Path(name).is_file()
    ]
    if missing:
        raise InputError(f"there is no certificate at {missing[0]}, which the cluster's file names")
    words = {name: value for name, value in given.items() if value is not None}
    return Security(**words, require_encryption=True) if words else Security()


@contextmanager
def _start(local: Local) -> Iterator[Client]:
    """Start times on two cores, import of distributed aside: threads 0.07 s, two processes 1.2 s."""
    import dask.config
    from distributed import Client

    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(
            prefix="dask-uncert-", dir=dask.config.get("temporary-directory"), ignore_cleanup_errors=True
        )
        scratch = stack.enter_context(folder)  # entered first, hence removed last
        # distributed would name the machine's outer address, where nothing listens
        words = {"distributed.dashboard.link": "http://127.0.0.1:{port}/status"}
        # A worker that is just being restarted again, this long after it died, would never be
        words["distributed.deploy.lost-worker-timeout"] = "1000 days"
        stack.enter_context(dask.config.set(words))
        try:
            cluster = stack.enter_context(_local_cluster(local, scratch))
            client = stack.enter_context(Client(cluster))
        except Exception as error:
            reason = " ".join(str(error.__cause__ or error).split())
            raise ClusterError(f"the local cluster {local} did not start: {reason}") from error
        yield client


def _local_cluster(local: Local, scratch: str) -> SpecCluster:
    from distributed import Nanny, Scheduler, Security, SpecCluster, Worker

    common: dict[str, Any] = {
        "protocol": "tls://" if local.processes else "inproc://",
        "host": "127.0.0.1" if local.processes else None,
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
    }
    if local.processes:  # whoever reaches the port could run code as us: keys of this cluster alone forbid it
        common["security"] = Security.temporary()
    scheduler: dict[str, Any] = dict(common)
    if local.dashboard:
        port = DASHBOARD_PORT if local.dashboard is True else local.dashboard
        scheduler |= {"dashboard": True, "dashboard_address": f"127.0.0.1:{port}"}
    options: dict[str, Any] = common | {
        "nthreads": local.threads,
        "memory_limit": local.memory_limit,
        "local_directory": scratch,
        "silence_logs": logging.CRITICAL,
    }
    worker = {"cls": Nanny if local.processes else Worker, "options": options}
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": scheduler},
        workers=dict.fromkeys(range(local.workers or 1), worker),
        security=common.get("security"),
        silence_logs=logging.CRITICAL,
    )
