"""Where the work runs: a cluster is connected to, used inside one ``with``, and left as it was found.

The only door to ``distributed``. It is imported inside the functions: importing it takes 0.8 s, which
commands that compute nothing should not pay.

A local cluster opens no port that another machine can reach. It is built from ``distributed.SpecCluster``
because ``LocalCluster`` with threads binds its HTTP server to every interface even when no dashboard is
asked for (seen with distributed 2026.8).
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from distributed import Client, SchedulerPlugin, SpecCluster

ADDRESSES = ("tcp://", "tls://")
DASHBOARD_PORT = 8787


class ClusterError(RuntimeError):
    """A cluster could not be started or reached; the message says which one and what to do."""


@dataclass(frozen=True)
class Local:
    """A cluster on this machine, as ``cluster/local.yaml`` describes it; None leaves the choice to us."""

    workers: int | None = None
    threads: int | None = None
    processes: bool | None = None
    memory_limit: int | str | None = None
    dashboard: bool | int | None = None


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

    Raises ValueError for a request that cannot be right (before anything starts), ClusterError for a
    cluster that does not start or answer.
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be a number of seconds above 0, found {timeout!r}")
    given = Local(workers, threads, processes, memory_limit, dashboard)
    words = {name: value for name, value in asdict(given).items() if value is not None}
    if not isinstance(cluster, str | Path) or str(cluster).startswith(ADDRESSES):
        if words:
            raise ValueError(
                f"{', '.join(words)} describe a local cluster, but {cluster} is running already: "
                "leave them out, or set them where its workers are started"
            )
        opened = _existing(cluster) if not isinstance(cluster, str | Path) else _reach(str(cluster), timeout)
    else:
        opened = _start(_checked(words, read_cluster(cluster), "connect()"))
    with opened as client:
        yield client


def read_cluster(cluster: str | Path) -> Local:
    """The local cluster that ``"local"`` or a YAML file stands for.

    >>> read_cluster("local")
    Local(workers=None, threads=None, processes=None, memory_limit=None, dashboard=None)

    Raises ValueError for a missing file, for one that is not YAML, and for a word that is not known.
    """
    if cluster == "local":
        return Local()
    path = Path(cluster).expanduser()
    if not path.is_file():
        raise ValueError(
            f"cluster {str(cluster)!r} is neither 'local' nor an address such as tcp://host:8786, "
            f"and there is no file {path.absolute()}"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"cluster file {path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ValueError(f"cluster file {path} must hold words and values such as 'kind: local'")
    words = dict(content)
    kind = words.pop("kind", None)
    if kind != "local":
        raise ValueError(f"kind of cluster file {path} must be 'local', found {kind!r}")
    return _checked(words, Local(), f"cluster file {path}")


def _checked(words: Mapping[str, Any], local: Local, where: str) -> Local:
    known = [field.name for field in fields(Local)]
    unknown = [str(word) for word in words if word not in known]
    if unknown:
        raise ValueError(f"{where} does not know {', '.join(unknown)}; known words: {', '.join(known)}")
    for name, value in words.items():
        truth = isinstance(value, bool)
        above = isinstance(value, int) and not truth and value > 0
        right, wanted = {
            "workers": (above, "a whole number above 0"),
            "threads": (above, "a whole number above 0"),
            "processes": (truth, "true or false"),
            "memory_limit": (not truth and _bytes(value) > 0, "a number of bytes such as '4 GiB'"),
            "dashboard": (truth or (above and value < 65536), "true, false or a port"),
        }[name]
        if value is not None and not right:
            raise ValueError(f"{name} of {where} must be {wanted}, found {value!r}")
    return replace(local, **words)


def _bytes(value: Any) -> int:
    from dask.utils import parse_bytes

    try:
        return int(parse_bytes(value))
    except (TypeError, ValueError, AttributeError):
        return 0


@contextmanager
def _existing(client: Client) -> Iterator[Client]:
    from distributed import Client

    if not isinstance(client, Client) or client.asynchronous:
        raise ValueError(
            "cluster must be 'local', a file, an address or a distributed.Client that is not asynchronous, "
            f"found {type(client).__name__}"
        )
    with client.as_current():
        yield client


@contextmanager
def _reach(address: str, timeout: float) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(address, timeout=timeout)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ClusterError(
            f"no scheduler answered at {address} within {timeout:g} s: {reason}. Check that `dask scheduler` "
            "runs there and its port is open from here, and for tls:// that dask's configuration "
            "(distributed.comm.tls) names the certificates; a slow network may need a longer timeout"
        ) from error
    with client:
        yield client


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
        link = {"distributed.dashboard.link": "http://127.0.0.1:{port}/status"}
        stack.enter_context(dask.config.set(link))
        try:
            cluster = stack.enter_context(_local_cluster(local, scratch))
            client = stack.enter_context(Client(cluster))
        except Exception as error:
            reason = " ".join(str(error.__cause__ or error).split())
            raise ClusterError(f"the local cluster {local} did not start: {reason}") from error
        yield client


def _local_cluster(local: Local, scratch: str) -> SpecCluster:
    import logging

    from dask.system import CPU_COUNT
    from distributed import Nanny, Scheduler, SpecCluster, Worker
    from distributed.system import MEMORY_LIMIT

    workers = local.workers or (CPU_COUNT if local.processes else 1)
    threads = local.threads or max(1, CPU_COUNT // workers)
    # Workers in one process all see the memory of that process, so they are not each given a share of it.
    memory = local.memory_limit or MEMORY_LIMIT // (workers if local.processes else 1)
    common = {
        "protocol": "tcp://" if local.processes else "inproc://",
        "host": "127.0.0.1" if local.processes else None,
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
    }
    scheduler: dict[str, Any] = dict(common)
    if local.dashboard:
        port = DASHBOARD_PORT if local.dashboard is True else local.dashboard
        scheduler |= {"dashboard": True, "dashboard_address": f"127.0.0.1:{port}"}
    options: dict[str, Any] = common | {
        "nthreads": threads,
        "memory_limit": memory,
        "local_directory": scratch,
        "silence_logs": logging.ERROR,
    }
    worker = {"cls": Nanny if local.processes else Worker, "options": options}
    return SpecCluster(
        scheduler={"cls": Scheduler, "options": scheduler},
        workers=dict.fromkeys(range(workers), worker),
        silence_logs=logging.ERROR,
    )


@contextmanager
def progress(
    client: Client, prefix: str, total: int, advance: Callable[[int], object], *, interval: float = 0.1
) -> Iterator[None]:
    """Call ``advance(n)`` as tasks finish: n grows, and its last value at the end of the ``with`` is exact.

    n is how many tasks whose name starts with ``prefix`` have left a result since the ``with`` began; a
    task counts once, however often it is computed. Calls come from the client's own thread, at most one
    each ``interval`` seconds and one when ``total`` is reached, so that ten thousand tasks cost few
    messages. What was put on the scheduler is removed at the end.
    """
    topic = f"{prefix}-{uuid.uuid4().hex}"
    lock = threading.Lock()
    last, ended = 0, False

    def report(n: int) -> None:
        nonlocal last
        with lock:
            if n > last and not ended:
                last = n
                advance(n)

    client.subscribe_topic(topic, lambda event: report(int(event[1])))
    client.register_plugin(_counter(topic, prefix, total, interval), name=topic)
    try:
        yield
        report(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.plugins[topic].finished)))
    finally:
        ended = True  # a message still on its way is dropped
        if client.status == "running":
            client.unsubscribe_topic(topic)
            with suppress(Exception):  # the scheduler may be gone; then so is the plugin
                client.unregister_scheduler_plugin(topic)


def _counter(topic: str, prefix: str, total: int, interval: float) -> SchedulerPlugin:
    """The plugin that counts on the scheduler; its class is local because distributed is imported late."""
    from distributed import SchedulerPlugin

    class Counter(SchedulerPlugin):  # type: ignore[misc]
        def __init__(self) -> None:
            self.finished: set[Any] = set()
            self.waiting = False

        async def start(self, scheduler: Any) -> None:
            self.scheduler = scheduler

        def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
            if finish != "memory" or key in self.finished:
                return
            name = key[0] if isinstance(key, tuple) else key
            if not str(name).startswith(prefix):
                return
            self.finished.add(key)
            if len(self.finished) == total:
                self.publish()
            elif not self.waiting:
                self.waiting = True
                self.scheduler.loop.call_later(interval, self.publish)

        def publish(self) -> None:
            self.waiting = False
            self.scheduler.log_event(topic, len(self.finished))

    return Counter()
