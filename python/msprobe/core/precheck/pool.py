"""Operators run by several processes: who is free takes the next one.

An operator that crashes its process, hangs or takes all memory costs itself: its process is replaced, and
it is told of. What was done before an interruption is kept: each outcome is handed on as it comes.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from msprobe.core.common.log import logger
from msprobe.core.precheck.channel import Channel

START_TIMEOUT_SECS = 300.0
_MAX_FAILED_STARTS = 3
_END_SECS = 5.0


@contextlib.contextmanager
def end_is_interruption() -> Iterator[None]:
    """SIGTERM raises ``KeyboardInterrupt``, as Ctrl-C does: schedulers send it, and what is done is kept."""

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class Job:
    """What a worker is told first: a function ``module:name`` that makes a checker, and its arguments."""

    factory: str
    options: dict[str, Any]


@dataclass
class Lost:
    """An operator whose process did not live to tell."""

    position: int
    reason: str


Take = Callable[[int, str], None]
"""Takes the position of an operator and its outcome as JSON."""


class Worker:
    """A process that runs one operator after the other."""

    def __init__(self, job: Job, device: Any) -> None:
        ours, theirs = socket.socketpair()
        self.device = device
        self.is_ready = False
        self.position: int | None = None
        self.since = time.monotonic()
        self.channel = Channel(ours)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "msprobe.core.precheck.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        # One that ended at once is found out by whoever waits for it.
        with contextlib.suppress(OSError):
            self.channel.send({"factory": job.factory, "options": {**job.options, "device": device}})

    def give(self, position: int) -> bool:
        """Has it run an operator; false where it is gone."""
        self.position, self.since = position, time.monotonic()
        try:
            self.channel.send(position)
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Ends the process, however busy it is."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Pool:
    """Hands out operators to workers, one per device in the list."""

    def __init__(self, job: Job, devices: Sequence[Any], timeout_secs: float) -> None:
        self._job = job
        self._devices = devices
        self._timeout_secs = timeout_secs
        self._selector = selectors.DefaultSelector()
        self._workers: list[Worker] = []
        self._failed_starts = 0

    def run(self, positions: Iterable[int], take: Take, lose: Callable[[Lost], None]) -> None:
        """Returns when each operator was taken or lost. ``KeyboardInterrupt`` passes through, with all ended.

        Raises ``RuntimeError`` where processes do not even start.
        """
        todo = deque(positions)
        for device in self._devices[: len(todo)]:
            self._start(device)
        try:
            while self._workers:
                for key, _ in self._selector.select(timeout=self._patience()):
                    self._hear(key.data, todo, take, lose)
                self._end_late(todo, lose)
        finally:
            for worker in self._workers:
                worker.end()
            self._selector.close()

    def _start(self, device: Any) -> None:
        worker = Worker(self._job, device)
        self._workers.append(worker)
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)

    def _hear(self, worker: Worker, todo: deque[int], take: Take, lose: Callable[[Lost], None]) -> None:
        message = worker.channel.receive()
        if message is None:
            self._replace(worker, todo, lose, None)
            return
        if not worker.is_ready:
            failure = message.get("failure")
            if failure is not None:
                raise RuntimeError(failure)
            worker.is_ready = True
            self._failed_starts = 0
        elif worker.position is not None:
            position, worker.position = worker.position, None
            take(position, message["outcome"])
        self._hand_out(worker, todo, lose)

    def _hand_out(self, worker: Worker, todo: deque[int], lose: Callable[[Lost], None]) -> None:
        if not todo:
            self._forget(worker)
        elif not worker.give(todo.popleft()):
            self._replace(worker, todo, lose, None)

    def _patience(self) -> float:
        """Until the first of the workers is late."""
        return max(0.0, min(self._deadline(worker) for worker in self._workers) - time.monotonic())

    def _deadline(self, worker: Worker) -> float:
        return worker.since + (self._timeout_secs if worker.is_ready else START_TIMEOUT_SECS)

    def _end_late(self, todo: deque[int], lose: Callable[[Lost], None]) -> None:
        now = time.monotonic()
        for worker in [worker for worker in self._workers if self._deadline(worker) <= now]:
            self._replace(worker, todo, lose, f"did not end within {self._timeout_secs:g} s and was given up")

    def _replace(
        self, worker: Worker, todo: deque[int], lose: Callable[[Lost], None], reason: str | None
    ) -> None:
        """Counts what a worker was at as lost and goes on with a new one."""
        self._forget(worker, is_over=reason is None)
        if worker.position is None:
            self._failed_starts += 1
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise RuntimeError(
                    f"processes for operators do not start: {self._failed_starts} in a row ended "
                    f"{_how(worker.process.returncode)}"
                )
        else:
            lose(Lost(worker.position, reason or f"ended its process {_how(worker.process.returncode)}"))
        if todo:
            self._start(worker.device)

    def _forget(self, worker: Worker, is_over: bool = False) -> None:
        self._selector.unregister(worker.channel)
        self._workers.remove(worker)
        if is_over:
            # Its channel is closed, so it is about to end; how it ends is worth knowing.
            try:
                worker.process.wait(timeout=_END_SECS)
            except subprocess.TimeoutExpired:
                logger.debug(f"process {worker.process.pid} did not end by itself")
        worker.end()


def _how(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None or code >= 0:
        return f"with exit code {code}"
    name = signal.Signals(-code).name if -code in {each.value for each in signal.Signals} else str(-code)
    if -code == signal.SIGKILL:
        return f"by {name}: the system may have run out of memory"
    return f"by {name}"
