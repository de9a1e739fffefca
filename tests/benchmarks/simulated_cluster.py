"""How busy many workers are kept: a cluster simulated in one process, with distributed's own scheduling.

The graph is that of a real plan. Each worker is distributed's own state machine of a worker, and one Scheduler of
distributed decides for all of them. Only three things are simulated: the clock, the work of a task and the network. A
task lasts as long as its like did when it was recorded. A Summary takes its size over `BANDWIDTH` to reach a worker,
one after the other. A message takes `LATENCY`. Heartbeats and the start of workers are left out.

The Scheduler does one thing at a time, and what it does takes the processor time it really took here, with packing and
unpacking of its messages. So a scheduler that cannot keep up makes workers wait, as it would on a cluster. That is why
this needs no cluster: 256 workers that wait in one process would share its two cores with the scheduler.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import dask
from dask._expr import FinalizeCompute
from dask.base import collections_to_expr
from dask.core import flatten
from distributed import Scheduler
from distributed import worker_state_machine as machine
from distributed.protocol import dumps, loads
from distributed.protocol.serialize import Serialized, serialize, to_serialize
from distributed.scheduler import ClientState

from dask_uncert.execution.graph import Reduction

RECORDED = (
    0.433, 0.444, 0.500, 0.396, 0.399, 0.453, 0.344, 0.433, 0.438, 0.390, 0.426, 0.329, 0.388, 0.413, 0.454, 0.389,
    0.409, 0.312, 0.339, 0.370, 0.325, 0.339, 0.455, 0.354, 0.327, 0.333, 0.356, 0.378, 0.342, 0.333, 0.344, 0.289,
)  # fmt: skip
"""Seconds of blocks of PIXELS pixels of 16 classes, the full set, on two threads and from page cache."""
PIXELS = 1024 * 512
ADDITION, SUMMARY = 0.0015, 4_413_336  # seconds to add two Summaries of these blocks, and bytes of one
BANDWIDTH, LATENCY = 1e9, 0.005  # bytes a second into a worker, and seconds of a message: it waits to go with others
SOCKET = 0.0002  # seconds of the scheduler for each message, besides packing it
CLIENT = "client"
EVENTS: dict[str, type[machine.StateMachineEvent]] = {
    "compute-task": machine.ComputeTaskEvent,
    "free-keys": machine.FreeKeysEvent,
    "steal-request": machine.StealRequestEvent,
    "remove-replicas": machine.RemoveReplicasEvent,
    "refresh-who-has": machine.RefreshWhoHasEvent,
    "cancel-compute": machine.CancelComputeEvent,
}
METRICS: dict[str, Any] = {
    "bandwidth": {"total": BANDWIDTH, "workers": {}, "types": {}}, "digests_total_since_heartbeat": {},
    "memory": 0, "spilled_bytes": {"memory": 0, "disk": 0}, "managed_bytes": 0, "cpu": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """A simulated run, from the graph's arrival at the scheduler until its result is known.

    work: seconds of all tasks. scheduler: seconds that the scheduler worked.
    """

    workers: int
    tasks: int
    seconds: float
    work: float
    scheduler: float

    @property
    def busy(self) -> float:
        """Share of the workers' time in which they compute."""
        return self.work / (self.workers * self.seconds)


class Stream:
    """Where the scheduler puts its messages for one worker or client."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send(self, *messages: dict[str, Any]) -> None:
        self.messages += messages


class Line:
    """The connection of a worker that registers; what it is told is of no use here."""

    async def write(self, message: Any) -> None:
        """Take a message."""


@dataclass
class Cluster:
    """Simulated workers of one thread each, and a real Scheduler. `duration` gives the seconds of a task by its key."""

    workers: int
    duration: Callable[[Any, Any], float]
    now: float = 0.0
    scheduler_free: float = 0.0
    scheduler_seconds: float = 0.0
    work: float = 0.0
    seconds: float = math.inf
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    order: count[int] = field(default_factory=count)
    links: dict[str, float] = field(default_factory=dict)
    states: dict[str, machine.WorkerState] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)

    async def run(self, total: Any) -> Result:
        """Return what happens when a Delayed is computed."""
        self.scheduler = Scheduler(dashboard=False, dashboard_address=":0", validate=False)
        self.stealing = self.scheduler.extensions["stealing"]
        self.scheduler.clients[CLIENT] = ClientState(CLIENT)
        self.client = self.scheduler.client_comms[CLIENT] = Stream()
        for number in range(self.workers):
            await self._add_worker(f"tcp://10.0.{number // 250}.{number % 250}:1")
        self.key, message = _message(total)
        begin = time.process_time()
        await self.scheduler.update_graph(client=CLIENT, **message)
        self._charge(time.process_time() - begin)
        tasks = len(self.scheduler.tasks)
        self._at(self.stealing._callback_time, self._balance)
        while self.seconds == math.inf:
            self.now, _, event = heapq.heappop(self.events)
            event()
        return Result(self.workers, tasks, self.seconds, self.work, self.scheduler_seconds)

    async def _add_worker(self, address: str) -> None:
        async def handled(*args: Any) -> None:
            """Wait for no messages: they are delivered by `_to_scheduler`."""

        self.scheduler.handle_worker = handled
        await self.scheduler.add_worker(
            Line(), address=address, status="running", server_id=address, nthreads=1, name=address, now=time.time(),
            resolve_address=False, resources={}, memory_limit=4 << 30, metrics=METRICS, services={}, local_directory="",
            versions={}, nanny="", extra={}, stimulus_id="start",
        )  # fmt: skip
        self.streams[address] = self.scheduler.stream_comms[address] = Stream()
        limits = {
            "transfer_incoming_count_limit": dask.config.get("distributed.worker.connections.outgoing"),
            "transfer_message_bytes_limit": 50e6,
        }
        self.states[address] = machine.WorkerState(nthreads=1, address=address, validate=False, **limits)
        self.links[address] = 0.0

    def _at(self, when: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), event))

    def _balance(self) -> None:
        self._serve(self.stealing.balance)
        self._at(self.now + self.stealing._callback_time, self._balance)

    def _serve(self, work: Callable[[], None]) -> None:
        """Let the scheduler work, as soon as it has finished what came before."""
        begin = time.thread_time()
        work()
        self._charge(time.thread_time() - begin + SOCKET)

    def _charge(self, seconds: float) -> None:
        """Let the scheduler's time pass, and send what it has said meanwhile."""
        packed = []
        begin = time.thread_time()
        for address, stream in self.streams.items():
            if stream.messages:
                packed.append((address, dumps(stream.messages)))
                stream.messages = []
        seconds += time.thread_time() - begin + SOCKET * len(packed)
        self.scheduler_free = max(self.now, self.scheduler_free) + seconds
        self.scheduler_seconds += seconds
        for address, frames in packed:
            self._at(self.scheduler_free + LATENCY, partial(self._to_worker, address, frames))
        for message in self.client.messages:
            if message["op"] == "key-in-memory" and message["key"] == self.key:
                self.seconds = self.scheduler_free + LATENCY + SUMMARY / BANDWIDTH
            elif message["op"] in ("task-erred", "cancelled-keys"):
                raise RuntimeError(str(message))
        self.client.messages = []

    def _to_worker(self, address: str, frames: Sequence[Any]) -> None:
        messages = [dict(message) for message in loads(frames)]
        self._tell(address, *(EVENTS[message.pop("op")](**message) for message in messages))

    def _to_scheduler(self, address: str, frames: Sequence[Any]) -> None:
        def handle() -> None:
            for message in loads(frames):
                message = dict(message)
                self.scheduler.stream_handlers[message.pop("op")](worker=address, **message)

        self._serve(handle)

    def _tell(self, address: str, *events: machine.StateMachineEvent) -> None:
        """Tell a worker what has happened, and do what it says then."""
        said = []
        for what in self.states[address].handle_stimulus(*events):
            if isinstance(what, machine.Execute):
                self._execute(address, what)
            elif isinstance(what, machine.GatherDep):
                self._gather(address, what)
            elif isinstance(what, machine.SendMessageToScheduler):
                said.append(what.to_dict())
            else:
                raise NotImplementedError(what)
        if said:
            frames = dumps(said)
            self._at(self.now + LATENCY, lambda: self._to_scheduler(address, frames))

    def _execute(self, address: str, what: machine.Execute) -> None:
        task, start = self.states[address].tasks[what.key], self.now
        seconds = self.duration(what.key, task)
        self.work += seconds

        def done() -> None:
            event = machine.ExecuteSuccessEvent(
                key=what.key, run_id=task.run_id, value=None, start=start, stop=self.now, nbytes=48, type=object,
                stimulus_id="done",
            )  # fmt: skip
            self._tell(address, event)

        self._at(start + seconds, done)

    def _gather(self, address: str, what: machine.GatherDep) -> None:
        """Bring Summaries to a worker; its link takes one after the other."""
        begin = max(self.now + LATENCY, self.links[address])
        self.links[address] = begin + len(what.to_gather) * SUMMARY / BANDWIDTH
        data = {key: None for key in what.to_gather if key in self.states[what.worker].data}
        event = machine.GatherDepSuccessEvent(
            worker=what.worker, total_nbytes=what.total_nbytes, data=data, stimulus_id="gathered"
        )
        self._at(self.links[address], lambda: self._tell(address, event))


def _message(total: Any) -> tuple[Any, dict[str, Any]]:
    """Return the key of a Delayed, and what a client sends to have it computed."""
    expression = FinalizeCompute(collections_to_expr([total])).optimize()
    (key,) = flatten(expression.__dask_keys__())
    return key, {
        "expr_ser": Serialized(*serialize(to_serialize(expression), on_error="raise")),
        "keys": {key}, "span_metadata": {"collections": []}, "internal_priority": None, "submitting_task": None,
        "annotations": {},
    }  # fmt: skip


def simulate(reduction: Reduction, workers: int) -> Result:
    """Return how a pass would run on a cluster of so many workers."""
    grid = reduction.grid
    ranges = {grid.index(blocks.start): blocks for blocks in reduction.ranges()}

    def block(number: int) -> float:
        pixels = math.prod(part.stop - part.start for part in grid.region(grid.index(number)).values())
        return RECORDED[number % len(RECORDED)] * pixels / PIXELS

    def duration(key: Any, task: machine.TaskState) -> float:
        if isinstance(key, tuple):
            blocks = ranges[key[1:]]
            return sum(map(block, blocks)) + ADDITION * (len(blocks) - 1)
        return ADDITION * max(1, len(task.dependencies) - 1)

    logging.getLogger("distributed").setLevel(logging.ERROR)
    return asyncio.run(Cluster(workers, duration).run(reduction.delayed()))
