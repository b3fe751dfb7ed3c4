"""Gradient watch on graphs run twice, partly, elsewhere, or never; and nothing left behind."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from msprobe._native import GradientWatch
from msprobe.pytorch.hooks import autograd
from tests.python.collection.watching import Recorder, same, watched


class Function(nn.Module):  # type: ignore[misc]
    """A module around a plain function, with a module inside for it to call."""

    def __init__(self, function: Any, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.function, self.inner = function, inner

    def forward(self, *args: Any) -> Any:
        return self.function(*args) if self.inner is None else self.function(self.inner, *args)


class Double(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x * 2, y * 3

    @staticmethod
    def backward(ctx: Any, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a * 2, b * 3


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 3)))


def test_two_passes_over_one_graph() -> None:
    model, x = mlp(), torch.randn(2, 3, requires_grad=True)
    with watched(model) as recorder:
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        once = list(recorder.events)
        loss.backward()
    assert recorder.events == once * 2
    half = len(recorder.complete) // 2
    for (_, outputs, inputs), (_, again, inputs_again) in zip(recorder.complete, recorder.complete[half:]):
        same(outputs + inputs, again + inputs_again, "second pass")


def test_partial_pass_completes_what_it_reaches() -> None:
    model, x = mlp(), torch.randn(2, 3, requires_grad=True)
    with watched(model) as recorder:
        loss = model(x).sum()
        torch.autograd.grad(loss, model[1][1].weight, retain_graph=True)
        assert ("begin", "0") not in recorder.events
        assert recorder.events[-1][0] == "complete"
        loss.backward()
    assert ("complete", "0") in recorder.events


def test_double_backward() -> None:
    model, x = mlp(), torch.randn(2, 3, requires_grad=True)
    with watched(model) as recorder:
        (grad,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        first = recorder.of("root")[0]
        grad.square().sum().backward()
    assert torch.equal(first[1][0], grad)
    assert x.grad is not None and all(p.grad is not None for p in model[0].parameters())


def test_custom_function_with_two_outputs() -> None:
    model = Function(Double.apply)
    x, y = (torch.randn(3, requires_grad=True) * 1 for _ in range(2))
    with watched(model) as recorder:
        a, b = model(x, y)
        (a + b * 5).sum().backward()
    ((outputs, inputs),) = recorder.of("root")
    same(outputs, [torch.ones(3), torch.full((3,), 5.0)], "outputs")
    same(inputs, [torch.full((3,), 2.0), torch.full((3,), 15.0)], "inputs")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_output_number_matters(number: int) -> None:
    model = Function(lambda x: x * 7)
    parts = (torch.randn(6, requires_grad=True) * 1).chunk(3)
    with watched(model) as recorder:
        rest = sum(part.sum() for part in parts)
        (model(parts[number]).sum() + rest).backward()
    ((outputs, inputs),) = recorder.of("root")
    same(outputs + inputs, [torch.ones(2), torch.full((2,), 7.0)], "part")


@pytest.mark.parametrize("leaf", [False, True])
def test_input_given_back(leaf: bool) -> None:
    model = nn.Sequential(nn.Identity(), nn.Sequential(nn.Identity()))
    x = torch.randn(3, requires_grad=True)
    x = x if leaf else x * 2
    with watched(model) as recorder:
        (model(x) * 3).sum().backward()
    for name in ("root", "0", "1", "1.0"):
        ((outputs, inputs),) = recorder.of(name)
        same(outputs + inputs, [torch.full((3,), 3.0)] * 2, name)
    begun = [name for what, name in recorder.events if what == "begin"]
    assert begun == ["root", "1", "1.0", "0"]
    assert not x._backward_hooks


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    model = Function(lambda inner, x: checkpoint(inner, x, use_reentrant=reentrant) + x, inner)
    x = torch.randn(2, 3, requires_grad=True)
    model(x).sum().backward()
    plain, x.grad = x.grad, None
    with watched(model) as recorder:
        model(x).sum().backward()
    assert torch.equal(x.grad, plain)
    ((outputs, inputs),) = recorder.of("root")
    same(outputs + inputs, [torch.ones(2, 3), plain], "around")
    assert len(recorder.of("inner")) == len(recorder.of("inner.0")) == 1


def test_nothing_without_gradients() -> None:
    recorder = Recorder()
    watch = GradientWatch(autograd, recorder)
    with torch.no_grad():
        assert watch.enter((torch.ones(1, requires_grad=True),)) is None
    watch.leave(None, 0, torch.ones(1))
    entry = watch.enter((1, "a", None))
    watch.leave(entry, 1, ("text", torch.ones(1), {"a": None}))
    recorder.assert_clean()


def test_forward_that_raises_leaves_nothing() -> None:
    def broken(inner: Any, x: Tensor) -> Tensor:
        raise ValueError

    model = Function(lambda inner, x: _forgive(inner, x), Function(broken, nn.Linear(3, 3)))
    x = torch.randn(2, 3, requires_grad=True)
    with watched(model) as recorder:
        model(x).sum().backward()
    assert recorder.events == [("begin", "root"), ("complete", "root")]


def _forgive(inner: Any, x: Tensor) -> Tensor:
    try:
        return inner(x)
    except ValueError:
        return x * 2


def test_graph_goes_with_its_last_user() -> None:
    class Probe:
        pass

    recorder = Recorder()
    model = nn.Sequential(mlp(), nn.LSTM(3, 3), Function(lambda pair: (pair[0] * 1, pair[1][0].exp())))
    gone = []
    gc.disable()
    try:
        with watched(model, recorder):
            for backward in (False, True):
                outputs = model(torch.randn(4, 2, 3, requires_grad=True) * 1)
                for output in outputs:
                    probe = Probe()
                    output.grad_fn.metadata["probe"] = probe
                    below = output.grad_fn.next_functions[0][0]
                    below.metadata["probe"] = probe
                    gone.append(weakref.ref(probe))
                del probe, below
                if backward:
                    outputs[0].sum().backward(retain_graph=True)
                del outputs, output
                recorder.complete.clear()
                assert all(reference() is None for reference in gone)
    finally:
        gc.enable()


def test_long_chain_is_freed_without_overflow() -> None:
    recorder = Recorder()
    watch = GradientWatch(autograd, recorder)
    x = torch.ones(1, requires_grad=True) * 1
    outer = watch.enter((x,))
    for number in range(20000):
        entry = watch.enter((x,))
        x = x * 1
        recorder.names[number] = "link"
        watch.leave(entry, number, x)
    watch.leave(outer, 20000, x)
    del x
    recorder.assert_clean()


def test_backward_in_another_thread() -> None:
    model, x = mlp(), torch.randn(2, 3, requires_grad=True)
    with watched(model) as recorder:
        loss = model(x).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    assert torch.equal(recorder.of("root")[0][1][0], x.grad)


def test_failing_sink_does_not_stop_training() -> None:
    class Failing(Recorder):
        def module_output_grad(self, call: int, position: int, grad: Tensor | None) -> None:
            raise RuntimeError("full disk")

        def assert_clean(self) -> None:
            pass

    model, recorder = mlp(), Failing()
    with watched(model, recorder):
        model(torch.randn(2, 3)).sum().backward()
    assert recorder.errors and all(p.grad is not None for p in model.parameters())


def test_transforms_and_compiled_modules_go_on() -> None:
    model, x = mlp(), torch.randn(2, 3)
    expected = torch.func.grad(lambda x: model(x).sum())(x)
    with watched(model):
        assert torch.equal(torch.func.grad(lambda x: model(x).sum())(x), expected)
        assert torch.func.vmap(model)(x).shape == x.shape
    compiled = torch.compile(model, backend="aot_eager")
    outer = Function(lambda x: compiled(x))
    outer.__dict__["_modules"].clear()
    y = x.clone().requires_grad_()
    with watched(outer) as recorder:
        outer(y).sum().backward()
    assert torch.equal(recorder.of("root")[0][1][0], y.grad)


def test_boundaries() -> None:
    """A function that gave back its argument has no node; it has those of the module at the border."""
    recorder = Recorder()
    watch = GradientWatch(autograd, recorder)
    calls: list[tuple[str, list[Any]]] = []
    recorder.names.update({0: "module", 1: "identity"})
    x = torch.randn(3, requires_grad=True) * 1
    assert watch.boundary(x) is None and watch.boundary(torch.ones(1)) is None

    entry = watch.enter((x,))
    border = watch.boundary(x)
    assert border is not None and border.kind == "input"
    border.attach(lambda grads: calls.append(("input", grads)))
    inside = watch.enter((x,))
    watch.leave(inside, 1, x)
    border = watch.boundary(x)
    assert border is not None and border.kind == "output"
    output = x * 4
    watch.leave(entry, 0, output)
    border = watch.boundary(output)
    assert border is not None and border.kind == "output"
    border.attach(lambda grads: calls.append(("output", grads)))
    (output * 2).sum().backward()
    assert [kind for kind, _ in calls] == ["output", "input"]
    same(calls[0][1], [torch.full((3,), 2.0)], "output")
    same(calls[1][1], [torch.full((3,), 8.0)], "input")
    recorder.assert_clean()
