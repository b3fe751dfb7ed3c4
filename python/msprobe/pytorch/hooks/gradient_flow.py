"""What a watched module call does during backward, at the nodes it left hooks on.

Everything here hangs on autograd nodes and lives exactly as long as the graph. Autograd nodes are invisible
to Python's garbage collector, so a reference that leads from a node back to itself would never be freed. The
rule that prevents it: what hangs on a node refers only to nodes with a *smaller* sequence number (older ones,
from which no edge leads back), and a :class:`Call`, which all nodes of one module call share, to no node.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional, Protocol

import torch
from torch import Tensor

from msprobe.pytorch.hooks.replacing import bare

# Calls of the functions themselves would be seen by whoever collects API calls.
_add: Callable[[Tensor, Tensor], Tensor] = bare(torch._C._VariableFunctions.add)
_as_strided: Callable[..., Tensor] = bare(torch._C._VariableFunctions.as_strided)
_empty_strided: Callable[..., Tensor] = bare(torch._C._VariableFunctions.empty_strided)
_copy: Callable[[Tensor, Tensor], Tensor] = bare(Tensor.copy_)
_task: Callable[[], int] = torch._C._current_graph_task_id
_will_run: Callable[[Any], bool] = torch._C._will_engine_execute_node

Gradients = tuple[Optional[Tensor], ...]
Callback = Callable[[list[Optional[Tensor]]], None]


class Sink(Protocol):
    """Who is told. Called during backward, maybe from an engine thread, one call at a time."""

    def module_backward_begin(self, call: Call, since: int) -> None:
        """The first output node of the module call is about to run.

        Module calls made after this one, at the node number `since` or later, are over.
        """

    def module_output_grad(self, call: int, position: int, grad: Tensor | None) -> None:
        """The gradient of one output; None if nothing flows there in this pass."""

    def module_input_grad(self, call: int, position: int, grad: Tensor | None) -> None:
        """The gradient of one input through this module call; None if nothing flows there."""

    def module_backward_complete(self, call: int) -> None:
        """All gradients of this pass are told."""

    def failed(self, error: BaseException) -> None:
        """Something went wrong in the watch itself; training goes on, a gradient may be missing."""


class Region(NamedTuple):
    """Where a view lies in its base, to find the view's gradient in that of the base."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    base_size: tuple[int, ...]
    base_stride: tuple[int, ...]

    def of(self, grad: Tensor | None) -> Tensor | None:
        if grad is None:
            return None
        with torch.no_grad():
            if grad.stride() != self.base_stride:
                plain = _empty_strided(self.base_size, self.base_stride, dtype=grad.dtype, device=grad.device)
                grad = _copy(plain, grad)
            return _as_strided(grad, self.size, self.stride, grad.storage_offset() + self.offset)


class Station(NamedTuple):
    """A node where gradients of a call pass: which of its gradients belong to which positions.

    With a region, the gradient is that of a base, and the output (after the node, the input) a view of it.
    """

    bit: int
    outputs: tuple[tuple[int, int], ...]  # (position among outputs, index in the node's gradients)
    inputs: tuple[tuple[int, int], ...]  # (position among inputs, index in the node's gradients)
    unless: int = 0  # the station stands in for another one, of this bit, that does not run
    region: Region | None = None


class Call:
    """One call of a module: numbers only, and gradients no longer than until they are told."""

    __slots__ = (
        "begin_sequence",
        "expected",
        "fired",
        "inputs",
        "kept_inputs",
        "kept_outputs",
        "left",
        "number",
        "on_inputs",
        "on_outputs",
        "open",
        "open_outputs",
        "outputs",
        "serial",
        "sink",
        "sums",
        "task",
    )

    def __init__(self, sink: Sink, serial: int, begin_sequence: int, inputs: int) -> None:
        self.sink = sink
        self.serial = serial
        self.begin_sequence = begin_sequence
        self.inputs = inputs
        self.outputs = 0
        self.number = -1
        self.task = -1
        self.expected = self.fired = 0  # bits of stations, in this pass
        self.open = self.open_outputs = 0  # how many expected stations have not run yet
        self.left: list[int] = []  # per input: edges still to come
        self.sums: list[Tensor | None] = []
        self.on_inputs: list[Callback] | None = None
        self.on_outputs: list[Callback] | None = None
        self.kept_inputs: list[Tensor | None] | None = None
        self.kept_outputs: list[Tensor | None] | None = None

    def output_node(self, tap: Tap, grads: Gradients) -> None:
        """An output node is about to run."""
        task = _task()
        station = tap.station
        first = task != self.task
        if not first and (self.expected | self.fired) & station.unless:
            return
        if first:
            self._begin(task, tap.since)
        if not self.expected & station.bit:
            self._expect(tap)
        self.fired |= station.bit
        for position, index in station.outputs:
            grad = grads[index]
            self._tell_output(position, grad if station.region is None else station.region.of(grad))
        if first:
            self._tell_absent(tap)
        self.open_outputs -= 1
        if self.open_outputs == 0 and self.kept_outputs is not None:
            kept, self.kept_outputs = self.kept_outputs, None
            for callback in self.on_outputs or ():
                callback(kept)
        self._arrived(station, grads)

    def inner_node(self, station: Station, grads: Gradients) -> None:
        """A node with edges to inputs of the call has run."""
        if _task() != self.task:
            return  # this pass came in from aside, past the outputs
        self.fired |= station.bit
        if self.expected & station.bit:
            if station.region is not None:
                grads = tuple(map(station.region.of, grads))
            self._arrived(station, grads)

    def _begin(self, task: int, since: int) -> None:
        self.task = task
        self.expected = self.fired = 0
        self.open = self.open_outputs = 0
        self.left = [0] * self.inputs
        self.sums = [None] * self.inputs
        self.kept_inputs = [None] * self.inputs if self.on_inputs else None
        self.kept_outputs = [None] * self.outputs if self.on_outputs else None
        self.sink.module_backward_begin(self, since)

    def _expect(self, tap: Tap) -> None:
        """Count what will run in this pass.

        The engine runs nodes from the largest sequence number down, so the first output node to run is the
        largest of all that will, and everything else that will run is among the smaller ones it knows.
        """
        for node, station in tap.below:
            if (self.expected | self.fired) & (station.bit | station.unless) or not (
                node is None or _will_run(node)
            ):
                continue
            self.expected |= station.bit
            self.open += 1
            if station.outputs:
                self.open_outputs += 1
            for position, _ in station.inputs:
                self.left[position] += 1

    def _tell_absent(self, tap: Tap) -> None:
        if self.outputs > len(tap.station.outputs):
            coming = {
                position
                for _, station in tap.below
                if station.bit & self.expected
                for position, _ in station.outputs
            }
            for position in range(self.outputs):
                if position not in coming:
                    self._tell_output(position, None)
        for position, left in enumerate(self.left):
            if not left:
                self._tell_input(position, None)

    def _arrived(self, station: Station, grads: Gradients) -> None:
        left, sums = self.left, self.sums
        for position, index in station.inputs:
            grad, before = grads[index], sums[position]
            if before is not None:
                if grad is None:
                    grad = before
                else:
                    # Order of arrival, as in the engine's own buffers: the same bits as a full backward hook.
                    with torch.no_grad():
                        grad = _add(before, grad)
            left[position] -= 1
            if left[position]:
                sums[position] = grad
            else:
                sums[position] = None
                self._tell_input(position, grad)
        self.open -= 1
        if self.open == 0:
            self.sink.module_backward_complete(self.number)
            kept, self.kept_inputs = self.kept_inputs, None
            if kept is not None:
                for callback in self.on_inputs or ():
                    callback(kept)

    def _tell_output(self, position: int, grad: Tensor | None) -> None:
        if self.kept_outputs is not None:
            self.kept_outputs[position] = grad
        self.sink.module_output_grad(self.number, position, grad)

    def _tell_input(self, position: int, grad: Tensor | None) -> None:
        if self.kept_inputs is not None:
            self.kept_inputs[position] = grad
        self.sink.module_input_grad(self.number, position, grad)


class Tap(NamedTuple):
    """A call's part in an output node. `below`: its stations here (None for the node) and at older nodes.

    The outputs of one call thus keep each other's graphs alive, as they do with full backward hooks.
    Later calls that began at the node number `since` are over when it runs.
    """

    call: Call
    since: int
    station: Station
    below: tuple[tuple[Any, Station], ...]


# Per node of origin (None: the node these hang on): index in its next_functions, and what lies there.
Exits = list[tuple[Any, Iterable[tuple[int, tuple[Any, int]]]]]


class NodeTaps:
    """The pre-hook of an output node, shared by all calls that end there.

    A block and its last child share the node. The child finishes first, so it comes first in the list; but
    backward enters the block first, hence the reverse order.
    """

    __slots__ = ("exits", "lock", "taps")

    def __init__(self, lock: threading.RLock) -> None:
        self.lock = lock
        self.taps: list[Tap] = []
        self.exits: Exits | None = None

    def __call__(self, grads: Gradients) -> None:
        with self.lock:
            for tap in reversed(self.taps):
                try:
                    tap.call.output_node(tap, grads)
                except Exception as error:
                    report(tap.call.sink, error)


class LeafTaps:
    """The hook of a leaf that is a module's output.

    A leaf's AccumulateGrad node dies whenever no graph uses it, and hooks with it; so this one hangs on the
    tensor. There it would stay forever: it goes once it has run.
    """

    __slots__ = ("handle", "key", "lock", "taps")

    def __init__(self, lock: threading.RLock, key: str) -> None:
        self.lock = lock
        self.key = key
        self.taps: list[Tap] = []
        self.handle: Any = None

    def __call__(self, grad: Tensor | None) -> None:
        with self.lock:
            self.handle.remove()
            taps, self.taps = self.taps, []
            for tap in reversed(taps):
                try:
                    tap.call.output_node(tap, (grad,))
                except Exception as error:
                    report(tap.call.sink, error)


class EdgeHook:
    """The post-hook of a node with edges to the inputs of one call."""

    __slots__ = ("call", "lock", "station")

    def __init__(self, call: Call, station: Station, lock: threading.RLock) -> None:
        self.call = call
        self.station = station
        self.lock = lock

    def __call__(self, grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        with self.lock:
            try:
                self.call.inner_node(self.station, grad_inputs)
            except Exception as error:
                report(self.call.sink, error)


def report(sink: Sink, error: BaseException) -> None:
    """Tell the sink of a failure; a sink that fails even there must not stop training either."""
    try:
        sink.failed(error)
    except Exception:
        return
