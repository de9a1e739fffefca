"""How far a cluster's tasks are, told as they finish."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, SchedulerPlugin

PULSE, PATIENCE = (
    2.0,
    60.0,
)  # seconds between looks at the cluster, and without any worker before a run gives up
LOST = "the connection to the scheduler was lost. Run again when it is back: what was finished is kept."
LINES = 500  # of each worker's log that a run looks at
SERIOUS = ("WARNING", "ERROR", "CRITICAL")


@contextmanager
def guarded(client: Client, patience: float | None = None, pulse: float = PULSE) -> Iterator[None]:
    """ClusterError, inside of the `with`, once the scheduler is lost or no worker has been there for `patience` seconds.

    patience: by default that of dask's configuration, `dask-uncert.patience`, else 60 s. Without this a computation
    waits for workers for ever.
    """
    import dask.config

    limit = float(dask.config.get("dask-uncert.patience", PATIENCE)) if patience is None else patience
    over, reasons = threading.Event(), []

    def watch() -> None:
        alone = 0.0
        while not over.wait(pulse):
            try:
                alone = 0.0 if client.nthreads() else alone + pulse
            except Exception:  # what a client without its scheduler says, of many kinds
                alone += pulse
            if client.status not in ("running", "connecting"):
                reasons.append(LOST)
            elif alone >= limit:
                reasons.append(
                    f"the cluster has had no worker for {alone:g} s. Start workers, then run again: what was finished is "
                    f"kept."
                )
            if reasons:
                with suppress(Exception):
                    drop_all(client)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        over.set()
        lost = type(error).__name__ in ("FutureCancelledError", "CancelledError", "CommClosedError")
        if reasons or lost:
            raise ClusterError(reasons[0] if reasons else LOST) from error
        raise
    finally:
        over.set()


@contextmanager
def reported(path: Path | None) -> Iterator[None]:
    """Writes dask's performance report of what happens inside of the `with`: one page that needs no network."""
    if path is None:
        yield
        return
    from distributed import performance_report

    with performance_report(filename=str(path), mode="inline"):
        yield


def drop_all(client: Client) -> None:
    """Cancel whatever the client waits for: who waits is told so."""
    from distributed import Future

    client.cancel([Future(key, client) for key in list(client.futures)], force=True)


def logs(client: Client) -> str:
    """What the workers warned of, by worker, their last lines; "" where that is nothing."""
    found = []
    with suppress(Exception):  # of workers that just leave, many kinds
        for worker, lines in sorted(client.get_worker_logs(n=LINES).items()):
            said = [str(text) for level, text in reversed(lines) if level in SERIOUS]
            if said:
                found.append("\n".join([f"=== {worker}", *said, ""]))
    return "\n".join(found)


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
