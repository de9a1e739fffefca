"""Watching a cluster's tasks: progress as they finish, and an error instead of waiting forever."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dask_uncert.errors import ClusterError, InputError, listed, without_secrets
from dask_uncert.io.paths import AnyPath, write_atomic

if TYPE_CHECKING:
    from distributed import Client, SchedulerPlugin

POLL_SECONDS = 2.0  # between checks of the cluster
PATIENCE = 60.0  # seconds without any worker before a run gives up
STALL = 1800.0  # seconds without any progress before a run gives up
PAUSED = 120.0  # the same, while a worker is paused and no task runs
MAX_SHOWN = 3  # tasks that a message names
Sizes = Mapping[tuple[int, ...], int]  # blocks of tasks, by the index in their names
NO_WORK = ".AlreadyDone"  # end of the type name of results that took no work
LOG = "workers.log"
LOG_LINES = 500  # lines of each worker's log that are searched
SERIOUS = ("WARNING", "ERROR", "CRITICAL")


@contextmanager
def watchdog(
    client: Client,
    describe_task: Callable[[Any], str] = str,
    patience: float | None = None,
    stall: float | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> Iterator[None]:
    """Raise ClusterError inside the `with` once the cluster cannot finish; without this a computation never ends.

    It cannot finish once the scheduler is lost, no worker has been there for `patience` seconds, nothing has moved for
    `stall` seconds, or nothing has run or moved for `dask-uncert.paused` seconds because a worker is paused.
    describe_task: returns what a task works on, from its key. patience, stall: by default `dask-uncert.patience` and
    `dask-uncert.stall` of dask's configuration.
    """
    patience, stall = time_limits(patience, stall)
    over, reasons = threading.Event(), []
    detector = StallDetector(client, stall, describe_task)

    def watch() -> None:
        without_workers = 0.0
        while not over.wait(poll_seconds):
            try:
                without_workers = 0.0 if client.nthreads() else without_workers + poll_seconds
                if stuck := detector.stuck():
                    reasons.append(f"{stuck} Finished work is kept.")
            except Exception:  # a client without its scheduler raises many kinds
                without_workers += poll_seconds
            if client.status not in ("running", "connecting"):
                reasons.append(lost_message())
            elif without_workers >= patience:
                reasons.append(no_workers_message(without_workers, "finished work is kept"))
            if reasons:
                with suppress(Exception):
                    cancel_all(client)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except Exception as error:
        over.set()
        lost = type(error).__name__ in ("FutureCancelledError", "CancelledError", "CommClosedError")
        if reasons or lost:
            raise ClusterError(reasons[0] if reasons else lost_message()) from error
        raise
    finally:
        over.set()


def time_limits(patience: float | None, stall: float | None) -> tuple[float, float]:
    """Return the seconds without any worker, and without progress, before a run gives up."""
    import dask.config

    get = dask.config.get
    patience = get("dask-uncert.patience", PATIENCE) if patience is None else patience
    return float(patience), float(get("dask-uncert.stall", STALL) if stall is None else stall)


class StallDetector:
    """Checks now and then whether anything the client waits for still moves; longer limits mean fewer checks.

    A paused worker begins no task until it has memory again. That is seen at once, so it needs less time than a task
    that may only be slow: `paused` seconds, by default `dask-uncert.paused` of dask's configuration.
    """

    def __init__(
        self, client: Client, limit: float, describe_task: Callable[[Any], str] = str, paused: float | None = None
    ) -> None:
        import dask.config

        self.client, self.limit, self.describe_task = client, limit, describe_task
        self.paused = min(limit, float(dask.config.get("dask-uncert.paused", PAUSED) if paused is None else paused))
        self.looked = self.moved = self.unpaused = time.monotonic()
        self.last: Any = None

    def stuck(self) -> str:
        """Return what is wrong once nothing has moved for a limit; else ""."""
        now = time.monotonic()
        if now - self.looked < min(self.limit / 20, self.paused / 8):
            return ""
        self.looked = now
        seen = self.client.run_on_scheduler(_task_states, client=self.client.id)
        if seen.state is None or seen.state != self.last:
            self.last, self.moved = seen.state, now
        if not seen.paused or seen.busy:
            self.unpaused = now
        if now - max(self.moved, self.unpaused) >= self.paused:
            return pause_message(seen.paused, self.paused)
        return stall_message(seen.running, self.limit, self.describe_task) if now - self.moved >= self.limit else ""


class _Seen(NamedTuple):
    """A client's tasks on the scheduler: what changes when they move, or None if the client waits for none.

    running: those that run, or else those sent to workers, with their workers. busy: whether any runs, or will on a
    worker that is not paused. paused: the paused workers, with the bytes they use and may use.
    """

    state: Any
    running: list[tuple[Any, str]]
    busy: bool
    paused: list[tuple[str, int, int]]


def _task_states(client: str, dask_scheduler: Any) -> _Seen:
    """Count a client's tasks by state, on the scheduler.

    While none of them runs, other clients' tasks may keep the workers busy: then any move of theirs counts too.
    """
    wanted = set(getattr(dask_scheduler.clients.get(client), "wants_what", ()))
    if all(task.state in ("memory", "erred") for task in wanted):
        return _Seen(None, [], False, [])
    tasks, todo = set(wanted), [*wanted]
    while todo:
        new = todo.pop().dependencies - tasks
        tasks |= new
        todo += new
    workers = dask_scheduler.workers.values()
    executing = {task for worker in workers for task in worker.executing} & tasks
    sent = executing or {task for task in tasks if task.state == "processing"}
    running = [(task.key, task.processing_on.address) for task in sent if task.processing_on is not None]
    states = sorted(Counter(task.state for task in tasks).items())
    paused = {worker for worker in workers if worker.status.name == "paused"}
    busy = bool(executing) or any(task.processing_on not in paused for task in sent)
    memory = [(w.address, int(w.metrics.get("memory", 0)), int(w.memory_limit or 0)) for w in paused]
    return _Seen((states, None if executing else dask_scheduler.transition_counter), running, busy, sorted(memory))


def pause_message(paused: list[tuple[str, int, int]], limit: float) -> str:
    """Return the error message of a run in which nothing moves because of paused workers, given with their memory."""
    memory = (
        f"{address}, which uses {used / 2**20:.0f}{f' of {most / 2**20:.0f}' if most else ''} MiB"
        for address, used, most in paused
    )
    return (
        f"nothing has moved for {limit:g} s: dask has paused {listed(memory, MAX_SHOWN, '; ')}. A paused worker begins no "
        f"task until it has memory again. Give workers more memory or fewer threads, and restart them, then run again; "
        f"`dask-uncert.paused` in dask's configuration sets this limit."
    )


def stall_message(running: list[tuple[Any, str]], limit: float, describe_task: Callable[[Any], str]) -> str:
    """Return the error message of a run that no longer makes progress, with the tasks that run and their workers."""
    shown = listed((f"{describe_task(key)} on {worker}" for key, worker in running), MAX_SHOWN, "; ")
    return (
        f"nothing has moved for {limit:g} s ({shown or 'no task runs'}): a read may hang, or "
        f"a worker. Check the storage, restart those workers, then run again; `dask-uncert.stall` in dask's configuration "
        f"sets this limit."
    )


def lost_message(kept: str = "finished work is kept") -> str:
    """Return the error message of a run that has lost the scheduler; kept: what a new run need not repeat."""
    return f"the connection to the scheduler was lost. Run again when it is back: {kept}."


def no_workers_message(seconds: float, kept: str) -> str:
    """Return the error message of a run whose cluster has lost all workers; kept: what a new run need not repeat."""
    return f"the cluster has had no worker for {seconds:g} s. Start workers, then run again: {kept}."


def wait_for_worker(
    has_worker: Callable[[], bool], seconds: float, hint: Callable[[], str], poll_seconds: float = 1.0
) -> None:
    """Return once the first worker has come; raise ClusterError that ends with this hint after `seconds`."""
    end = time.monotonic() + seconds
    while not has_worker():
        if time.monotonic() > end:
            raise ClusterError(f"no worker came within {seconds} s{hint()}")
        time.sleep(poll_seconds)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence distributed, which reports closed connections when workers end as they should."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def performance_page(path: Path | None) -> Iterator[None]:
    """Write dask's performance report of what happens inside the `with`: one page that needs no network."""
    if path is None:
        yield
        return
    from distributed import performance_report

    with performance_report(filename=str(path), mode="inline"):
        yield


def cancel_all(client: Client) -> None:
    """Cancel everything the client waits for, which ends the waiting with an error."""
    from distributed import Future

    client.cancel([Future(key, client) for key in list(client.futures)], force=True)


def worker_logs(client: Client) -> str:
    """Return the last warnings of each worker and nanny; "" if there are none."""
    sections = []
    for kind in ("worker", "nanny"):
        with suppress(Exception):  # workers that are just leaving, or have no nanny, raise many kinds
            logs = client.get_worker_logs(n=LOG_LINES, nanny=kind == "nanny")
            for worker, lines in sorted(logs.items()):
                warnings = [str(text) for level, text in reversed(lines) if level in SERIOUS]
                if warnings:
                    sections.append("\n".join([f"=== {kind} {worker}", *warnings, ""]))
    return without_secrets("\n".join(sections))


@contextmanager
def keep_logs_of_failure(client: Client, folder: AnyPath) -> Iterator[None]:
    """Write the workers' warnings to a folder if the `with` ends with any error other than an InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception:
        if client.status == "running" and (text := worker_logs(client)):
            with suppress(OSError):
                write_atomic(folder / LOG, text.encode())
        raise


@dataclass
class BlockCounts:
    """Blocks that have finished, and those computed again (not counting `AlreadyDone`, which takes no work)."""

    finished: int = 0
    recomputed: int = 0


@contextmanager
def progress(
    client: Client, prefix: str, total: int, advance: Callable[[int], object], sizes: Sizes | None = None
) -> Iterator[BlockCounts]:
    """Call ``advance(n)`` as tasks finish: n grows, and its last value at the end of the ``with`` is exact.

    n counts the blocks of tasks that finished since the ``with`` began and whose name starts with ``prefix``: one each,
    or as many as ``sizes`` has; a task counts once, however often it is computed. The client's own thread calls, at most
    ten times a second and when ``total`` is reached, so that many tasks cost few messages.

    Yields BlockCounts, which are exact after the ``with``, or 0 if it ended with an exception.
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
    client.register_plugin(_counter(topic, prefix, total, sizes or {}), name=topic)
    try:
        yield counts
        exact = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.plugins[topic].counts())
        counts.finished, counts.recomputed = exact
        report(counts.finished)
    finally:
        ended = True  # a message still on its way is dropped
        if client.status == "running":
            client.unsubscribe_topic(topic)
            with suppress(Exception):  # the scheduler may be gone; then so is the plugin
                client.unregister_scheduler_plugin(topic)


def _counter(topic: str, prefix: str, total: int, sizes: Sizes) -> SchedulerPlugin:
    """Return the plugin that counts on the scheduler; its class is local because distributed is imported late."""
    from distributed import SchedulerPlugin

    class FinishedTasks(SchedulerPlugin):  # type: ignore[misc]
        def __init__(self) -> None:
            self.finished: dict[Any, int] = {}
            self.done = self.recomputed = 0
            self.waiting = False

        async def start(self, scheduler: Any) -> None:
            self.scheduler = scheduler

        def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
            if finish != "memory":
                return
            if key in self.finished:
                worked = start == "processing" and not kwargs.get("typename", "").endswith(NO_WORK)
                self.recomputed += worked * self.finished[key]
                return
            name, *index = key if isinstance(key, tuple) else (key,)
            if not str(name).startswith(prefix):
                return
            self.finished[key] = sizes.get(tuple(index), 1)
            self.done += self.finished[key]
            if self.done == total:
                self.publish()
            elif not self.waiting:
                self.waiting = True
                self.scheduler.loop.call_later(0.1, self.publish)

        def counts(self) -> tuple[int, int]:
            return self.done, self.recomputed

        def publish(self) -> None:
            self.waiting = False
            self.scheduler.log_event(topic, self.done)

    return FinishedTasks()
