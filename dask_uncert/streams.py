"""A stream of tasks: as few on the scheduler at a time as keep all workers busy, however many there are in all.

An item that kills the worker process that computes it is found out: the scheduler gives a task up after a number
of deaths, but cannot tell it from others that shared its workers, so those given up run once more, one at a time.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from dask_uncert.clusters import ClusterError

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 2  # tasks a thread that wait on the scheduler: what comes next is there when a task ends
PULSE = 2.0  # seconds of silence after which workers are counted
RECOUNT = 5.0  # seconds between counts of the cluster's threads
PATIENCE = 60.0  # seconds without any worker before the stream gives up
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
    pulse: float = PULSE,
    patience: float = PATIENCE,
) -> Iterator[tuple[Item, Result | Exception]]:
    """Each item and what the function made of it, or the exception it ended with, as they finish.

    The exception is a KilledError where the item kills its worker process; those items come last. Tasks are
    named `key`-..., and none is left on the scheduler at the end. Raises ClusterError when the scheduler is lost,
    or all workers are for `patience` seconds.
    """
    suspects: list[Item] = []
    tasks = _Tasks(client, function, key, pulse, patience)
    try:
        for item, found in tasks.run(items, width=None):
            if isinstance(found, KilledError):
                suspects.append(item)
            else:
                yield item, found
        yield from tasks.run(suspects, width=1)
    finally:
        tasks.drop()


class _Tasks:
    """The tasks on the scheduler, by key, and those that are done, in a queue that the client's thread fills."""

    def __init__(
        self, client: Client, function: Callable[[Any], Any], key: str, pulse: float, patience: float
    ) -> None:
        self.client, self.function, self.key = client, function, key
        self.pulse, self.patience = pulse, patience
        self.waiting: dict[str, tuple[Future, Any]] = {}
        self.done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.wide, self.counted = 0, -RECOUNT
        self.fetching = ThreadPoolExecutor(1)

    def run(self, items: Iterable[Item], width: int | None) -> Iterator[tuple[Item, Any]]:
        """Submit and collect, `width` tasks at a time; None: as many as keep the cluster's threads busy."""
        source, more = iter(items), True
        while more or self.waiting:
            wide = width or self._width()
            while more and len(self.waiting) < wide:
                try:
                    self._submit(next(source))
                except StopIteration:
                    more = False
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
        try:
            return sum(self.client.nthreads().values())
        except (OSError, RuntimeError) as error:  # distributed's own are both
            raise ClusterError(LOST) from error

    def _submit(self, item: Any) -> None:
        name = f"{self.key}-{uuid.uuid4().hex}"
        future = self.client.submit(self.function, item, key=name, pure=False)
        self.waiting[name] = future, item
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
                raise ClusterError(LOST) from fetched.exception()
            found = fetched.result()
            values = dict(zip((future.key for future in finished), found, strict=True))
        for future in futures:
            if future.key not in values and future.status in ("lost", "pending"):
                future.add_done_callback(self.done.put)  # its worker ended after it; it is computed again
                continue
            _, item = self.waiting.pop(future.key)
            if future.key in values:
                result = values[future.key]
            elif future.status == "error":
                result = future.exception()
                if type(result).__name__ == "KilledWorker":
                    result = KilledError(f"it ended its worker process {result.allowed_failures + 1} times")
            else:
                raise ClusterError(LOST)
            future.release()
            yield item, result

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """What `ask` answers within a pulse, if that is true; ClusterError once no worker was there for too long."""
        alone = 0.0
        while not (found := ask()):
            if self.client.status != "running":
                raise ClusterError(LOST)
            alone = 0.0 if self._threads() else alone + self.pulse
            if alone >= self.patience:
                raise ClusterError(
                    f"the cluster has had no worker for {alone:g} s. Start workers, then run again: finished cases "
                    "are kept."
                )
        return found


LOST = "the connection to the scheduler was lost. Run again when it is back: finished cases are kept."
