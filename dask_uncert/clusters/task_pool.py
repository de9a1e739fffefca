"""A stream of tasks: as few on the scheduler at a time as keep all workers busy, however many there are in all.

A task costs the scheduler and the client 3 to 7 ms, so quick items share one. An item that kills the worker process that computes it is found out: the scheduler gives a task up after a number
of deaths, but cannot tell it from others that shared its workers, so those given up run once more, one at a time.
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

from dask_uncert.clusters.monitor import StallDetector, limits, stalled
from dask_uncert.errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

TASK_SECONDS = 0.25  # that a task of several items should take
MOST = 32  # items of a task
AHEAD = 2  # tasks a thread that wait on the scheduler: what comes next is there when a task ends
PULSE = 2.0  # seconds of silence after which workers are counted
RECOUNT = 5.0  # seconds between counts of the cluster's threads
SHOWN = 3  # items of a task that a message names
LOST = "the connection to the scheduler was lost."
CASES = "finished cases are kept"
Item = TypeVar("Item")
Result = TypeVar("Result")


class KilledError(RuntimeError):
    """The task ended its worker process, every time it was tried."""


def stream(
    client: Client,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    key: str,
    *,
    alone: bool = False,
    again: bool = True,
    pulse: float = PULSE,
    patience: float | None = None,
    stall: float | None = None,
    kept: str = CASES,
    named: Callable[[Item], str] = str,
) -> Iterator[tuple[Item, Result | Exception]]:
    """Each item and what the function made of it, or the exception it ended with, as they finish.

    The exception is a KilledError where the item kills its worker process; those suspected of it come last, each once
    more with nothing beside it. alone: all are computed so. again: False gives suspects as they are. Tasks are named
    `key`-..., and none is left on the scheduler at the end. Raises ClusterError when the scheduler is lost, all workers are for `patience` seconds, or no item ends for `stall` seconds, limits as
    `watching.guarded` has them; kept, named: what it says is kept then, and what items are called.
    """
    suspects: list[Item] = []
    tasks = _Tasks(client, function, key, pulse, limits(patience, stall), kept, named)
    try:
        if alone:
            yield from tasks.run(items, alone=True)
            return
        for item, found in tasks.run(items):
            if again and isinstance(found, KilledError):
                suspects.append(item)
            else:
                yield item, found
        yield from tasks.run(suspects, alone=True)
    finally:
        tasks.drop()


class _Tasks:
    """The tasks on the scheduler, by key, and those that are done, in a queue that the client's thread fills."""

    def __init__(
        self,
        client: Client,
        function: Callable[[Any], Any],
        key: str,
        pulse: float,
        limits: tuple[float, float],
        kept: str,
        named: Callable[[Any], str],
    ) -> None:
        self.client, self.function, self.key = client, function, key
        self.kept, self.named = kept, named
        self.pulse, (self.patience, self.stall) = pulse, limits
        self.waiting: dict[str, tuple[Future, tuple[Any, ...]]] = {}
        self.done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.wide, self.counted = 0, -RECOUNT
        self.together = 1  # items of the next task
        self.fetching = ThreadPoolExecutor(1)

    def run(self, items: Iterable[Item], alone: bool = False) -> Iterator[tuple[Item, Any]]:
        """Submit and collect as many tasks at a time as keep the cluster's threads busy; alone: item by item."""
        source, more = iter(items), True
        while more or self.waiting:
            wide = 1 if alone else self._width()
            while more and len(self.waiting) < wide:
                some = tuple(islice(source, 1 if alone else self.together))
                more = bool(some)
                if some:
                    self._submit(some)
            if self.waiting:
                yield from self._results(self._next())

    def drop(self) -> None:
        """Take what is left off the scheduler."""
        if self.waiting and self.client.status == "running":
            self.client.cancel([future for future, _ in self.waiting.values()], force=True)
        self.waiting.clear()
        self.fetching.shutdown(wait=False)

    def _width(self) -> int:
        """Workers may join and leave: they are counted again from time to time."""
        if time.monotonic() - self.counted >= RECOUNT:
            self.wide = max(2, AHEAD * self._threads(), self.wide)
            self.counted = time.monotonic()
        return self.wide

    def _threads(self) -> int:
        return sum(self._asked(self.client.nthreads).values())

    def _asked(self, question: Callable[[], Any]) -> Any:
        """What the scheduler answers."""
        try:
            return question()
        except (OSError, RuntimeError) as error:  # distributed's own are both
            raise ClusterError(self._lost()) from error

    def _lost(self) -> str:
        return f"{LOST} Run again when it is back: {self.kept}."

    def _named(self, key: Any) -> str:
        """The items of a task."""
        if key not in self.waiting:
            return str(key)
        items = self.waiting[key][1]
        return ", ".join(map(self.named, items[:SHOWN])) + (" ..." if len(items) > SHOWN else "")

    def _submit(self, items: tuple[Any, ...]) -> None:
        name = f"{self.key}-{uuid.uuid4().hex}"
        future = self.client.submit(_each, self.function, items, key=name, pure=False)
        self.waiting[name] = future, items
        future.add_done_callback(self.done.put)

    def _next(self) -> list[Future]:
        """All that are done, at least one."""
        found: list[Future] = self._patiently(lambda: self._taken(self.pulse))
        return found

    def _taken(self, seconds: float) -> list[Future]:
        """All that are done now, or the next that is within so many seconds; [] where none is."""
        found = []
        with suppress(queue.Empty):
            found.append(self.done.get(timeout=seconds))
            while True:
                found.append(self.done.get_nowait())
        return found

    def _results(self, futures: list[Future]) -> Iterator[tuple[Any, Any]]:
        """Results are fetched together: one by one costs the scheduler and us 3 ms each."""
        finished = [future for future in futures if future.status == "finished"]
        values: dict[str, Any] = {}
        if finished:
            fetched = self.fetching.submit(self.client.gather, finished)
            self._patiently(lambda: wait([fetched], timeout=self.pulse).done)
            if fetched.exception() is not None:  # the tasks themselves ended well
                raise ClusterError(self._lost()) from fetched.exception()
            found = fetched.result()
            values = dict(zip((future.key for future in finished), found, strict=True))
        for future in futures:
            if future.key not in values and future.status in ("lost", "pending"):
                future.add_done_callback(self.done.put)  # its worker ended after it; it is computed again
                continue
            _, items = self.waiting.pop(future.key)
            if future.key in values:
                seconds, results = values[future.key]
                self.together = max(1, min(MOST, int(TASK_SECONDS * len(items) / max(seconds, 1e-6))))
            elif future.status == "error":
                error = future.exception()
                if type(error).__name__ == "KilledWorker":
                    error = KilledError(f"it ended its worker process {error.allowed_failures + 1} times")
                results = [error] * len(items)
            else:
                raise ClusterError(self._lost())
            future.release()
            yield from zip(items, results, strict=True)

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """What `ask` answers within a pulse, if that is true; ClusterError once no worker was there for too long."""
        alone, moves = 0.0, StallDetector(self.client, self.stall)
        while not (found := ask()):
            if self.client.status != "running":
                raise ClusterError(self._lost())
            alone = 0.0 if self._threads() else alone + self.pulse
            if alone >= self.patience:
                raise ClusterError(
                    f"the cluster has had no worker for {alone:g} s. Start workers, then run again: {self.kept}."
                )
            if stuck := self._asked(moves.stuck):
                raise ClusterError(f"{stalled(stuck, self.stall, self._named)} Run again then: {self.kept}.")
        return found


def _each(function: Callable[[Any], Any], items: Sequence[Any]) -> tuple[float, list[Any]]:
    """What a task does: the seconds it took, and what became of each item, a result or an exception."""
    begin, results = time.perf_counter(), []
    for item in items:
        try:
            results.append(function(item))
        except Exception as error:
            results.append(error)
    return time.perf_counter() - begin, results
