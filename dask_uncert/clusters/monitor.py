"""How far a cluster's tasks are, told as they finish."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.errors import ClusterError, InputError
from dask_uncert.io.paths import AnyPath, write_atomic

if TYPE_CHECKING:
    from distributed import Client, SchedulerPlugin

PULSE = 2.0  # seconds between looks at the cluster
PATIENCE = 60.0  # seconds without any worker before a run gives up
STALL = 1800.0  # seconds in which nothing moved before it does
SHOWN = 3  # tasks that a message names
LOST = "the connection to the scheduler was lost. Run again when it is back: what was finished is kept."
NOTHING = ".AlreadyDone"  # ends the name of the type of a result that took no work
LOG = "workers.log"
LINES = 500  # of each worker's log that a run looks at
SERIOUS = ("WARNING", "ERROR", "CRITICAL")


@contextmanager
def guarded(
    client: Client,
    named: Callable[[Any], str] = str,
    patience: float | None = None,
    stall: float | None = None,
    pulse: float = PULSE,
) -> Iterator[None]:
    """ClusterError, inside of the `with`, once the scheduler is lost, no worker has been there for `patience` seconds,
    or nothing has moved for `stall` seconds.

    named: says what a task works on, by its key. patience, stall: by default those of dask's configuration,
    `dask-uncert.patience` and `dask-uncert.stall`. Without this a computation waits for ever.
    """
    limit, still = limits(patience, stall)
    over, reasons = threading.Event(), []

    def watch() -> None:
        alone, moves = 0.0, StallDetector(client, still)
        while not over.wait(pulse):
            try:
                alone = 0.0 if client.nthreads() else alone + pulse
                if stuck := moves.stuck():
                    reasons.append(stalled(stuck, still, named) + " What was finished is kept.")
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


def limits(patience: float | None, stall: float | None) -> tuple[float, float]:
    """Seconds without any worker, and without any move, before a run gives up: given, or of dask's configuration."""
    import dask.config

    found = dask.config.get("dask-uncert.patience", PATIENCE) if patience is None else patience
    still = dask.config.get("dask-uncert.stall", STALL) if stall is None else stall
    return float(found), float(still)


class StallDetector:
    """Whether anything the client waits for still moves, by looks at the scheduler, few for a long limit."""

    def __init__(self, client: Client, limit: float) -> None:
        self.client, self.limit = client, limit
        self.looked = self.moved = time.monotonic()
        self.last: Any = None

    def stuck(self) -> list[tuple[Any, str]]:
        """Keys of the tasks that run, each with its worker, once nothing has moved for the limit; else []."""
        now = time.monotonic()
        if now - self.looked < self.limit / 20:
            return []
        self.looked = now
        state, running = self.client.run_on_scheduler(_standing, client=self.client.id)
        if state is None or state != self.last:
            self.last, self.moved = state, now
        return running or [("", "")] if now - self.moved >= self.limit else []


def _standing(client: str, dask_scheduler: Any) -> tuple[Any, list[tuple[Any, str]]]:
    """On the scheduler: how many of a client's tasks are in each state, None where it has none; and those that run.

    While none of them runs, others' tasks may keep the workers busy: then any move of theirs counts as well.
    """
    wanted = set(getattr(dask_scheduler.clients.get(client), "wants_what", ()))
    if all(one.state in ("memory", "erred") for one in wanted):
        return None, []
    found, todo = set(wanted), [*wanted]
    while todo:
        new = todo.pop().dependencies - found
        found |= new
        todo += new
    executing = {one for worker in dask_scheduler.workers.values() for one in worker.executing} & found
    given = executing or {one for one in found if one.state == "processing"}
    running = [(one.key, one.processing_on.address) for one in given if one.processing_on is not None]
    states = Counter(one.state for one in found)
    return (sorted(states.items()), None if executing else dask_scheduler.transition_counter), running


def stalled(stuck: list[tuple[Any, str]], limit: float, named: Callable[[Any], str] = str) -> str:
    """What a run that does not move any more says."""
    shown = "; ".join(f"{named(key)} on {worker}" for key, worker in stuck[:SHOWN] if worker)
    more = f"; and {len(stuck) - SHOWN} more" if len(stuck) > SHOWN else ""
    return (
        f"nothing has moved for {limit:g} s ({shown or 'no task runs'}{more}): a read may hang, or a worker. See to its "
        f"storage, start those workers again, then run again; `dask-uncert.stall` in dask's configuration is the limit."
    )


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
    """What workers, and the nannies that start them, warned of, each one's last lines; "" where that is nothing."""
    found = []
    for who in ("worker", "nanny"):
        with suppress(Exception):  # of workers that just leave, or have no nanny, many kinds
            for worker, lines in sorted(client.get_worker_logs(n=LINES, nanny=who == "nanny").items()):
                said = [str(text) for level, text in reversed(lines) if level in SERIOUS]
                if said:
                    found.append("\n".join([f"=== {who} {worker}", *said, ""]))
    return "\n".join(found)


@contextmanager
def logged(client: Client, place: AnyPath) -> Iterator[None]:
    """Leaves what workers warned of in a folder, where the `with` ends by what is no fault of the request."""
    try:
        yield
    except InputError:
        raise
    except Exception:
        if client.status == "running" and (said := logs(client)):
            with suppress(OSError):
                write_atomic(place / LOG, said.encode())
        raise


@dataclass
class BlockCounts:
    """How many tasks have left a result, and how often one was computed whose result had been there and was lost.

    Results that only say that there is nothing to do any more (`graph.AlreadyDone`) do not count as computed again.
    """

    finished: int = 0
    again: int = 0


@contextmanager
def progress(
    client: Client, prefix: str, total: int, advance: Callable[[int], object], *, interval: float = 0.1
) -> Iterator[BlockCounts]:
    """Call ``advance(n)`` as tasks finish: n grows, and its last value at the end of the ``with`` is exact.

    n is how many tasks whose name starts with ``prefix`` have left a result since the ``with`` began; a
    task counts once, however often it is computed. Calls come from the client's own thread, at most one
    each ``interval`` seconds and one when ``total`` is reached, so that ten thousand tasks cost few
    messages. What was put on the scheduler is removed at the end.

    Gives BlockCounts, which are exact after the ``with``, and 0 where it ended by an exception.
    """
    topic = f"{prefix}-{uuid.uuid4().hex}"
    lock = threading.Lock()
    last, ended, counts = 0, False, BlockCounts()

    def report(n: int) -> None:
        nonlocal last
        with lock:
            if n > last and not ended:
                last = n
                advance(n)

    client.subscribe_topic(topic, lambda event: report(int(event[1])))
    client.register_plugin(_counter(topic, prefix, total, interval), name=topic)
    try:
        yield counts
        counts.finished, counts.again = client.run_on_scheduler(
            lambda dask_scheduler: dask_scheduler.plugins[topic].counts()
        )
        report(counts.finished)
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
            self.again = 0
            self.waiting = False

        async def start(self, scheduler: Any) -> None:
            self.scheduler = scheduler

        def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
            if finish != "memory":
                return
            if key in self.finished:
                self.again += start == "processing" and not kwargs.get("typename", "").endswith(NOTHING)
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

        def counts(self) -> tuple[int, int]:
            return len(self.finished), self.again

        def publish(self) -> None:
            self.waiting = False
            self.scheduler.log_event(topic, len(self.finished))

    return Counter()
