"""The gradients of a module call's outputs and inputs, without touching the autograd graph.

torch's full backward hooks put identity nodes around the module. That regroups gradient sums (results are no
longer the same bits), makes one tensor passed twice into two tensors, and forbids modules that work in place.
Here hooks are put on nodes that are there anyway: before the call the edges of the input tensors are noted,
after it the graph is walked from the outputs through the nodes made during the call, and every node with an
edge to an input gets a post-hook that picks the gradient flowing along that edge.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor

from msprobe.pytorch.hooks.gradient_flow import (
    Call,
    Callback,
    EdgeHook,
    Exits,
    LeafTaps,
    NodeTaps,
    Region,
    Sink,
    Station,
    Tap,
    report,
)

__all__ = ["Boundary", "Entry", "GradientWatch", "Sink", "flatten"]

_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
# A graph being traced is not the one that will run. (torch 2.1 cannot tell.)
_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", bool)
_next_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_LEAF_TAPS = 64
_ACCUMULATE = 2**64 - 1  # the sequence number of every AccumulateGrad

Edges = dict[Any, dict[int, list[int]]]  # node -> output number -> positions of inputs
Leaves = dict[int, tuple[Tensor, list[int]]]  # id -> the leaf itself and positions
Found = dict[Any, dict[int, list[int]]]  # node -> index in next_functions -> positions of inputs
Bases = dict[
    Any, list[tuple[int, int, Region]]
]  # node -> (output number, position of the view, where it lies)


class Entry:
    """A module call that is running."""

    __slots__ = ("__weakref__", "bases", "call", "edges", "leafy", "leaves", "marked", "start")

    def __init__(self, call: Call, edges: Edges, leaves: Leaves, bases: Bases, leafy: bool) -> None:
        self.call = call
        self.start = call.begin_sequence
        self.edges = edges
        self.leaves = leaves
        self.bases = bases
        self.leafy = leafy  # this call or one around it has leaves among its inputs
        self.marked: set[int] = set()  # sequence numbers of output nodes of calls inside, with known exits


class Boundary(NamedTuple):
    """Where a tensor lies on the border of a module call."""

    kind: str
    call: Call


class GradientWatch:
    """Watches module calls. One per collector; safe to use from several threads."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._key = f"msprobe.gradient_watch.{id(self):x}"
        self._lock = threading.RLock()
        self._serials = itertools.count()
        self._local = threading.local()

    def enter(self, args: tuple[Any, ...]) -> Entry | None:
        """Before the forward call: note where the inputs are. None if nothing is to be watched."""
        if not _grad_enabled() or _compiling():
            return None
        try:
            return self._enter(args)
        except Exception as error:
            report(self._sink, error)
            return None

    def leave(self, entry: Entry | None, call: int, output: Any) -> None:
        """Find the way from the outputs to the inputs and hang hooks there. After the forward call."""
        if entry is None:
            return
        try:
            self._leave(entry, call, output)
        except Exception as error:
            report(self._sink, error)

    def boundary(self, tensor: Tensor) -> tuple[str, Boundary] | None:
        """Is the tensor, as it is, an input of a call running in this thread or an output of a finished one?

        If both, the one that began last: with identity nodes at the borders, that one's would come last.
        """
        try:
            found = self._boundary(tensor)
        except Exception as error:
            report(self._sink, error)
            return None
        return None if found is None else (found.kind, found)

    def attach(self, token: Boundary, callback: Callback) -> None:
        """Call back in every pass: with the input gradients at its end, the output gradients at its begin."""
        kind, call = token
        with self._lock:
            if kind == "input":
                call.on_inputs = [*(call.on_inputs or ()), callback]
            else:
                call.on_outputs = [*(call.on_outputs or ()), callback]

    def _running(self) -> list[weakref.ref[Entry]]:
        """The calls running in this thread. Weak: a forward that raised never leaves."""
        try:
            running: list[weakref.ref[Entry]] = self._local.running
        except AttributeError:
            running = self._local.running = []
        while running and running[-1]() is None:
            running.pop()
        return running

    def _enter(self, args: tuple[Any, ...]) -> Entry:
        edges: Edges = {}
        leaves: Leaves = {}
        bases: Bases = {}
        position = 0
        for tensor in flatten(args):
            node = tensor.grad_fn
            if node is None:
                leaves.setdefault(id(tensor), (tensor, []))[1].append(position)
            else:
                edges.setdefault(node, {}).setdefault(tensor.output_nr, []).append(position)
                found = _in_base(tensor)
                if found is not None:
                    bases.setdefault(found[0], []).append((found[1], position, found[2]))
            position += 1
        running = self._running()
        around = running[-1]() if running else None
        leafy = bool(leaves) or (around is not None and around.leafy)
        # Last: asking a view for its node may make one.
        call = Call(self._sink, next(self._serials), _next_sequence(), position)
        entry = Entry(call, edges, leaves, bases, leafy)
        running.append(weakref.ref(entry))
        return entry

    def _leave(self, entry: Entry, number: int, output: Any) -> None:
        running = self._running()
        while running and running.pop()() is not entry:
            pass
        around = running[-1]() if running else None

        nodes: dict[Any, list[tuple[int, int]]] = {}
        leaves: Leaves = {}
        views: list[tuple[int, Any, Any, int, Region]] = []
        position = 0
        for tensor in flatten(output):
            node = tensor.grad_fn
            if node is None:
                leaves.setdefault(id(tensor), (tensor, []))[1].append(position)
            else:
                nodes.setdefault(node, []).append((position, tensor.output_nr))
                base = _in_base(tensor)
                if base is not None:
                    views.append((position, node, *base))
            position += 1
        if not position:
            return
        call = entry.call
        call.number = number
        call.outputs = position

        ends: list[tuple[int, Any, Station]] = []
        bit = 1
        for node, outputs in nodes.items():
            station = Station(bit, tuple(outputs), _passed_through(entry.edges.get(node), outputs))
            ends.append((node._sequence_nr(), node, station))
            bit <<= 1
        for key, (tensor, positions) in leaves.items():
            _, places = entry.leaves.pop(key, (None, ()))
            station = Station(bit, tuple((p, 0) for p in positions), tuple((p, 0) for p in places))
            # A leaf has no node of its own: later calls are over, those around this one are not.
            self._leaf_taps(tensor).taps.append(Tap(call, entry.start, station, ((None, station),)))
            bit <<= 1

        end = _next_sequence()
        roots = [node for sequence, node, _ in ends if entry.start <= sequence < end]
        own = {node: station.bit for _, node, station in ends}
        for position, node, base, index, region in views:
            # Changed in place later, the view gets a new node; its old one, noted above, does not run.
            places = entry.edges.get(base, {}).get(index, ())
            through = tuple((place, index) for place in places)
            station = Station(bit, ((position, index),), through, own[node], region)
            ends.append((base._sequence_nr(), base, station))
            bit <<= 1
        found, copied, exits = self._walk(roots, entry, end)
        stations = list(ends)
        for node, inner in found.items():
            station = Station(bit, (), tuple((p, index) for index, places in inner.items() for p in places))
            stations.append((node._sequence_nr(), node, station))
            bit <<= 1
            # Calls inside have left before, so their hooks are called before: they complete first.
            node.register_hook(EdgeHook(call, station, self._lock))
        for node, place, region in copied:
            station = Station(bit, (), ((place, 0),), 0, region)
            stations.append((node._sequence_nr(), node, station))
            bit <<= 1
            node.register_hook(EdgeHook(call, station, self._lock))

        for sequence, node, station in ends:
            below = tuple(
                (None if other is node else other, there)
                for older, other, there in stations
                if older < sequence or other is node
            )
            taps = self._taps(node)
            taps.taps.append(Tap(call, sequence + 1, station, below))
            if around is not None and len(roots) == 1 and roots[0] is node:
                taps.exits = [(None if holder is node else holder, edges) for holder, edges in exits]
                around.marked.add(sequence)
        if around is not None and len(roots) != 1:
            around.marked |= entry.marked

    def _walk(
        self, roots: list[Any], entry: Entry, end: int
    ) -> tuple[Found, list[tuple[Any, int, Region]], Exits]:
        """Nodes with edges to the inputs, nodes that copy into the base of an input, all edges that leave.

        Only nodes made during the call are entered. A call inside that has one output node has left its exits
        there: they are taken instead of walking it once more, so a node is seen about once however deep
        modules are nested. Exits to parameters are left out unless a call around has a leaf as input.
        """
        start, inputs, marked = entry.start, entry.edges, entry.marked
        leaves, leafy, bases = entry.leaves, entry.leafy, entry.bases
        found: Found = {}
        copied: dict[tuple[Any, int], tuple[Any, int, Region]] = {}
        exits: Exits = []
        seen = set(roots)
        todo = list(roots)
        while todo:
            node = todo.pop()
            known: NodeTaps | None = None
            if marked and node._sequence_nr() in marked:
                known = node.metadata.get(self._key)
            groups: Exits
            if known is None or known.exits is None:
                groups = [(node, enumerate(node.next_functions))]
            else:
                groups = known.exits
            for holder, edges in groups:
                if holder is None:
                    holder = node
                leaving: list[tuple[int, tuple[Any, int]]] | None = None
                for edge in edges:
                    index, (target, number) = edge
                    if target is None:
                        continue
                    sequence = target._sequence_nr()
                    places = None
                    if sequence == _ACCUMULATE:
                        if not leafy:
                            continue
                        if leaves:
                            _, places = leaves.get(id(target.variable), (None, None))
                    elif target in inputs:
                        places = inputs[target].get(number)
                    if places:
                        found.setdefault(holder, {})[index] = places
                    elif start <= sequence < end:
                        if target not in seen:
                            seen.add(target)
                            todo.append(target)
                        continue
                    elif target in bases and type(holder).__name__ == "CopySlices":
                        # A view changed in place: the change is recorded at its base.
                        for wanted, place, region in bases[target]:
                            if wanted == number:
                                copied[holder, place] = (holder, place, region)
                    if leaving is None:
                        leaving = []
                        exits.append((holder, leaving))
                    leaving.append(edge)
        return found, list(copied.values()), exits

    def _taps(self, node: Any) -> NodeTaps:
        metadata = node.metadata
        taps: NodeTaps | None = metadata.get(self._key)
        if taps is None:
            taps = metadata[self._key] = NodeTaps(self._lock)
            node.register_prehook(taps)
        return taps

    def _leaf_taps(self, tensor: Tensor) -> LeafTaps:
        for hook in (tensor._backward_hooks or {}).values():
            if isinstance(hook, LeafTaps) and hook.key == self._key:
                # Forward passes that no backward follows would pile up here.
                del hook.taps[:-_LEAF_TAPS]
                return hook
        taps = LeafTaps(self._lock, self._key)
        taps.handle = tensor.register_hook(taps)
        return taps

    def _boundary(self, tensor: Tensor) -> Boundary | None:
        if not tensor.requires_grad:
            return None
        node, number, key = tensor.grad_fn, tensor.output_nr, id(tensor)
        inside: Call | None = None
        for reference in reversed(self._running()):
            entry = reference()
            if entry is not None and (key in entry.leaves or number in entry.edges.get(node, ())):
                inside = entry.call
                break
        taps: list[Tap] = []
        if node is None:
            for hook in (tensor._backward_hooks or {}).values():
                if isinstance(hook, LeafTaps) and hook.key == self._key:
                    taps = hook.taps
        elif self._key in node.metadata:
            taps = node.metadata[self._key].taps
        for tap in reversed(taps):
            if any(index == number for _, index in tap.station.outputs):
                if inside is None or tap.call.serial > inside.serial:
                    return Boundary("output", tap.call)
                break
        return None if inside is None else Boundary("input", inside)


def flatten(value: Any) -> list[Tensor]:
    """The tensors that require gradients among (nested) sequences and mappings, in order."""
    found: list[Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        if value.requires_grad:
            found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, Mapping):
        for item in value.values():
            _collect(item, found)


def _in_base(tensor: Tensor) -> tuple[Any, int, Region] | None:
    """For a view: the node and output number of its base, and where in it the view lies."""
    if not tensor._is_view():
        return None
    base: Any = tensor._base
    node = base.grad_fn
    if node is None or base.dtype != tensor.dtype or tensor.layout != torch.strided:
        return None
    offset = tensor.storage_offset() - base.storage_offset()
    region = Region(tuple(tensor.shape), tensor.stride(), offset, tuple(base.shape), base.stride())
    return node, base.output_nr, region


def _passed_through(
    inputs: dict[int, list[int]] | None, outputs: list[tuple[int, int]]
) -> tuple[tuple[int, int], ...]:
    """Inputs given back unchanged: (position, output number). Their inner edges are struck from `inputs`.

    All of such an input's gradient arrives at its producer, what flows through inner edges included.
    """
    if not inputs:
        return ()
    numbers = dict.fromkeys(number for _, number in outputs)
    return tuple((place, number) for number in numbers for place in inputs.pop(number, ()))
