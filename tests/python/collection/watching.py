"""A model under watch, and the same model under torch's own full backward hooks."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch import Tensor, nn

from msprobe import _native
from msprobe._native import GradientWatch
from msprobe.pytorch.hooks import autograd

Gradients = list[Optional[Tensor]]


class Recorder:
    """A sink that notes what it is told, and complains when the contract is broken."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.events: list[tuple[str, str]] = []
        self.begun: dict[int, tuple[Gradients, Gradients]] = {}
        self.told: dict[int, set[tuple[str, int]]] = {}
        self.complete: list[tuple[str, Gradients, Gradients]] = []
        self.sequences: list[tuple[str, int, int]] = []
        self.errors: list[BaseException] = []
        self._sequence: dict[int, tuple[int, int]] = {}

    def module_backward_begin(self, call: _native.WatchedCall, since: int) -> None:
        number = call.number
        assert number not in self.begun, "begun twice"
        self.begun[number] = ([None] * call.outputs, [None] * call.inputs)
        self.told[number] = set()
        self._sequence[number] = since, call.begin_sequence
        self.events.append(("begin", self.names[number]))

    def module_output_grad(self, call: int, position: int, grad: Tensor | None) -> None:
        assert ("output", position) not in self.told[call], "told twice"
        self.told[call].add(("output", position))
        self.begun[call][0][position] = grad

    def module_input_grad(self, call: int, position: int, grad: Tensor | None) -> None:
        assert ("input", position) not in self.told[call], "told twice"
        self.told[call].add(("input", position))
        self.begun[call][1][position] = grad

    def module_backward_complete(self, call: int) -> None:
        outputs, inputs = self.begun.pop(call)
        assert len(self.told.pop(call)) == len(outputs) + len(inputs), "complete before all was told"
        self.events.append(("complete", self.names[call]))
        self.sequences.append((self.names[call], *self._sequence.pop(call)))
        self.complete.append((self.names[call], outputs, inputs))

    def failed(self, error: BaseException) -> None:
        self.errors.append(error)

    def of(self, name: str) -> list[tuple[Gradients, Gradients]]:
        return [(outputs, inputs) for there, outputs, inputs in self.complete if there == name]

    def assert_clean(self) -> None:
        assert not self.errors, self.errors
        assert not self.begun, {self.names[call] for call in self.begun}


@contextlib.contextmanager
def watched(model: nn.Module, recorder: Recorder | None = None) -> Iterator[Recorder]:
    """Every module of `model` under one watch; the recorder has to be clean at the end."""
    recorder = recorder or Recorder()
    watch = GradientWatch(autograd, recorder)
    numbers = itertools.count(len(recorder.names))
    modules = list(model.named_modules())
    for name, module in modules:
        module.forward = _wrapped(watch, recorder, numbers, name or "root", module.forward)
    try:
        yield recorder
    finally:
        for _, module in modules:
            del module.forward
    recorder.assert_clean()


def _wrapped(
    watch: GradientWatch, recorder: Recorder, numbers: Iterator[int], name: str, forward: Any
) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        entry = watch.enter(args)
        output = forward(*args, **kwargs)
        number = next(numbers)
        recorder.names[number] = name
        watch.leave(entry, number, output)
        return output

    return call


@contextlib.contextmanager
def hooked(model: nn.Module) -> Iterator[dict[str, list[tuple[Any, Any]]]]:
    """The same by torch's full backward hooks: (gradients of outputs, gradients of inputs) per module."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    handles = []
    for name, module in model.named_modules():

        def hook(_: nn.Module, inputs: Any, outputs: Any, name: str = name or "root") -> None:
            found.setdefault(name, []).append((outputs, inputs))

        handles.append(module.register_full_backward_hook(hook))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def assert_same_gradients(model: nn.Module, *args: Any, loss: Any = None) -> Recorder:
    """Watch and full hooks must report the same bits for every call of every module."""
    loss = loss or (lambda output: output.square().sum())
    with hooked(model) as expected:
        loss(model(*args)).backward(retain_graph=True)
    with watched(model) as recorder:
        loss(model(*args)).backward()
    assert {name for name, _, _ in recorder.complete} == set(expected)
    for name, calls in expected.items():
        mine = recorder.of(name)
        assert len(mine) == len(calls), name
        for (outputs, inputs), (their_outputs, their_inputs) in zip(mine, calls):
            same(outputs, their_outputs, name)
            same(inputs, their_inputs, name)
    return recorder


def same(mine: Any, theirs: Any, what: str) -> None:
    left = [grad for grad in mine if grad is not None]
    right = [grad for grad in theirs if grad is not None]
    assert len(left) == len(right), what
    for one, other in zip(left, right):
        assert torch.equal(one, other), what


def parameter_gradients(model: nn.Module) -> list[Tensor]:
    found = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    return found
