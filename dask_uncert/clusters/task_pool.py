"""A bounded pool of tasks: only as many on the scheduler at a time as keep all workers busy.

A task costs the scheduler and the client 3 to 7 ms, so quick items share a task. The scheduler gives up all tasks whose
workers died several times, also those that only shared a worker with the cause: so they run once more, one at a time.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from dask_uncert.clusters.monitor import (
    StallDetector,
    lost_message,
    no_workers_message,
    time_limits,
)
from dask_uncert.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

TASK_SECONDS, MAX_ITEMS = 0.25, 32  # that a task of several items should take and have
TASKS_PER_THREAD = 2  # on the scheduler, so that the next is there when a task ends
POLL_SECONDS = 2.0  # of silence after which workers are counted
RECOUNT_SECONDS = 5.0  # between counts of the cluster's threads
MAX_SHOWN = 3  # items of a task that a message names
CASES = "finished cases are kept"
Item = TypeVar("Item")
Result = TypeVar("Result")


class KilledError(RuntimeError):
    """The task killed its worker process every time it was tried."""


def map_items(
    client: Client,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    key: str,
    *,
    one_by_one: bool = False,
    retry_killed: bool = True,
    poll_seconds: float = POLL_SECONDS,
    patience: float | None = None,
    stall: float | None = None,
    kept: str = CASES,
    describe: Callable[[Item], str] = str,
) -> Iterator[tuple[Item, Result | Exception]]:
    """Yield each item as it finishes, with its result or the exception that it raised.

    The exception is a KilledError if the item kills its worker process: suspects are computed again at the end, each
    without other tasks. one_by_one: compute all items like this. retry_killed: False yields suspects at once. Tasks are
    named `key`-..., and none is left on the scheduler at the end. Raises ClusterError when the scheduler is lost, there
    is no worker for `patience` seconds, no item ends for `stall` seconds, or workers are paused, as for `watchdog`; kept,
    describe: what the message says is kept, and how it names items.
    """
    suspects: list[Item] = []
    tasks = _Tasks(client, function, key, poll_seconds, time_limits(patience, stall), kept, describe)
    try:
        if one_by_one:
            yield from tasks.run(items, one_by_one=True)
            return
        for item, result in tasks.run(items):
            if retry_killed and isinstance(result, KilledError):
                suspects.append(item)
            else:
                yield item, result
        yield from tasks.run(suspects, one_by_one=True)
    finally:
        tasks.cancel()


class _Tasks:
    """The tasks on the scheduler, by key, and a queue of finished ones that the client's thread fills."""

    def __init__(
        self,
        client: Client,
        function: Callable[[Any], Any],
        key: str,
        poll_seconds: float,
        limits: tuple[float, float],
        kept: str,
        describe: Callable[[Any], str],
    ) -> None:
        self.client, self.function, self.key = client, function, key
        self.kept, self.describe = kept, describe
        self.poll_seconds, (self.patience, self.stall) = poll_seconds, limits
        self.waiting: dict[str, tuple[Future, tuple[Any, ...]]] = {}
        self.done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.width, self.counted = 0, -RECOUNT_SECONDS
        self.task_items = 1  # of the next task
        self.fetching = ThreadPoolExecutor(1)

    def run(self, items: Iterable[Item], one_by_one: bool = False) -> Iterator[tuple[Item, Any]]:
        """Submit and collect as many tasks at a time as keep the cluster's threads busy."""
        source, more = iter(items), True
        while more or self.waiting:
            width = 1 if one_by_one else self._width()
            while more and len(self.waiting) < width:
                batch = tuple(islice(source, 1 if one_by_one else self.task_items))
                more = bool(batch)
                if batch:
                    self._submit(batch)
            if self.waiting:
                yield from self._results(self._wait_for(self._poll))

    def cancel(self) -> None:
        """Cancel the tasks that are left on the scheduler."""
        if self.waiting and self.client.status == "running":
            self.client.cancel([future for future, _ in self.waiting.values()], force=True)
        self.waiting.clear()
        self.fetching.shutdown(wait=False)

    def _width(self) -> int:
        """Return how many tasks to have on the scheduler, by a recent count of the workers' threads."""
        if time.monotonic() - self.counted >= RECOUNT_SECONDS:
            self.width = max(2, TASKS_PER_THREAD * self._threads(), self.width)
            self.counted = time.monotonic()
        return self.width

    def _threads(self) -> int:
        return sum(self._ask_scheduler(self.client.nthreads).values())

    def _ask_scheduler(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (OSError, RuntimeError) as error:  # distributed raises both
            raise self._lost_scheduler() from error

    def _lost_scheduler(self) -> ClusterError:
        return ClusterError(lost_message(self.kept))

    def _describe_task(self, key: Any) -> str:
        if key not in self.waiting:
            return str(key)
        items = self.waiting[key][1]
        return ", ".join(map(self.describe, items[:MAX_SHOWN])) + (" ..." if len(items) > MAX_SHOWN else "")

    def _submit(self, items: tuple[Any, ...]) -> None:
        name = f"{self.key}-{uuid.uuid4().hex}"
        future = self.client.submit(_compute, self.function, items, key=name, pure=False)
        self.waiting[name] = future, items
        future.add_done_callback(self.done.put)

    def _poll(self) -> list[Future]:
        """Return the tasks that have finished; wait `poll_seconds` for the first, and return [] if none does."""
        futures = []
        with suppress(queue.Empty):
            futures.append(self.done.get(timeout=self.poll_seconds))
            while True:
                futures.append(self.done.get_nowait())
        return futures

    def _results(self, futures: list[Future]) -> Iterator[tuple[Any, Any]]:
        """Yield items and results, fetched together: one by one they cost the scheduler and the client 3 ms each."""
        finished = [future for future in futures if future.status == "finished"]
        values: dict[str, Any] = {}
        if finished:
            fetched = self.fetching.submit(self.client.gather, finished)
            self._wait_for(lambda: wait([fetched], timeout=self.poll_seconds).done)
            if fetched.exception() is not None:  # not of the tasks, which have finished
                raise self._lost_scheduler() from fetched.exception()
            values = dict(zip((future.key for future in finished), fetched.result(), strict=True))
        for future in futures:
            if future.key not in values and future.status in ("lost", "pending"):
                future.add_done_callback(self.done.put)  # its worker was lost; it is computed again
                continue
            _, items = self.waiting.pop(future.key)
            if future.key in values:
                seconds, results = values[future.key]
                self.task_items = max(1, min(MAX_ITEMS, int(TASK_SECONDS * len(items) / max(seconds, 1e-6))))
            elif future.status == "error":
                error = future.exception()
                if type(error).__name__ == "KilledWorker":
                    error = KilledError(f"it ended its worker process {error.allowed_failures + 1} times")
                results = [error] * len(items)
            else:
                raise self._lost_scheduler()
            future.release()
            yield from zip(items, results, strict=True)

    def _wait_for(self, poll: Callable[[], Any]) -> Any:
        """Call `poll` until it returns something; raise ClusterError once the cluster cannot finish."""
        without_workers, detector = 0.0, StallDetector(self.client, self.stall, self._describe_task)
        while not (result := poll()):
            if self.client.status != "running":
                raise self._lost_scheduler()
            without_workers = 0.0 if self._threads() else without_workers + self.poll_seconds
            if without_workers >= self.patience:
                raise ClusterError(no_workers_message(without_workers, self.kept))
            if stuck := self._ask_scheduler(detector.stuck):
                raise ClusterError(f"{stuck} {self.kept.capitalize()}.")
        return result


def _compute(function: Callable[[Any], Any], items: Sequence[Any]) -> tuple[float, list[Any]]:
    """Compute the items of a task; return its seconds, and a result or an exception for each item."""
    begin, results = time.perf_counter(), []
    for item in items:
        try:
            results.append(function(item))
        except Exception as error:
            results.append(error)
    return time.perf_counter() - begin, results
