"""Gradients of module calls: the same bits torch's full backward hooks report, and training untouched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.python.collection.watching import (
    assert_same_gradients,
    hooked,
    parameter_gradients,
    watched,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


class PreNorm(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SelfAttention(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)


class Function(nn.Module):  # type: ignore[misc]
    """A module around a plain function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Twice(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.shared(torch.tanh(self.shared(x)))


class Heads(nn.Module):  # type: ignore[misc]
    """Three outputs, none of which leads to another; all use the input."""

    def __init__(self) -> None:
        super().__init__()
        self.split = Function(lambda x: tuple(x.split(2, -1)))
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.q(x), self.k(x), *self.split(self.v(x))


def test_mlp() -> None:
    model = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3), nn.Tanh())
    assert_same_gradients(model, torch.randn(4, 6))
    assert_same_gradients(model, torch.randn(4, 6, requires_grad=True))
    assert_same_gradients(model, torch.randn(4, 6, requires_grad=True) * 2)


def test_convolution_and_batch_norm() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    assert_same_gradients(model, torch.randn(2, 3, 8, 8))


def test_pre_norm_transformer() -> None:
    model = nn.Sequential(nn.Embedding(11, 8), *[PreNorm(8) for _ in range(3)], nn.LayerNorm(8))
    recorder = assert_same_gradients(model, torch.randint(0, 11, (2, 5)))
    # The input of a block is used twice, and its gradient through the block is the sum.
    outputs, inputs = recorder.of("2")[0]
    assert len(outputs) == len(inputs) == 1


def test_shared_module_is_told_once_per_call() -> None:
    recorder = assert_same_gradients(Twice(), torch.randn(3, 5, requires_grad=True))
    assert len(recorder.of("shared")) == 2


@pytest.mark.parametrize("used", [(0, 1, 2, 3), (0,), (1, 3), (2,), (3, 0)])
def test_several_outputs_of_which_some_are_used(used: tuple[int, ...]) -> None:
    def loss(outputs: tuple[Tensor, ...]) -> Tensor:
        return torch.stack([outputs[index].square().sum() for index in used]).sum()

    x = torch.randn(3, 4, requires_grad=True)
    model = Heads()
    with watched(model) as recorder:
        outputs = model(x)
        loss(outputs).backward()
    told, inputs = recorder.of("root")[0]
    assert [index for index, grad in enumerate(told) if grad is not None] == sorted(used)
    for index in used:
        assert torch.equal(told[index], 2 * outputs[index].detach())
    assert torch.equal(inputs[0], x.grad)


def test_input_used_many_times_and_inputs_not_used() -> None:
    model = Function(lambda a, b, *_: a * a + b.sin() * a + a.exp())
    args = [torch.randn(4, requires_grad=True) * 3 for _ in range(3)]
    assert_same_gradients(model, *args[:2])
    # For an unused input, full hooks make up zeros, but only if another input is used. Here it is none.
    args = [torch.randn(4, requires_grad=True) for _ in range(3)]
    with watched(model) as recorder:
        model(*args).sum().backward()
    ((_, inputs),) = recorder.of("root")
    assert inputs[0] is not None and inputs[1] is not None and inputs[2] is None


def test_nested_arguments_and_mappings() -> None:
    x, y, z = (torch.randn(4, requires_grad=True) * 2 for _ in range(3))
    for tensor in (x, y, z):
        tensor.retain_grad()
    model = Function(lambda nest, flag: {"a": nest[0] * nest[1]["k"], "b": [nest[1]["m"].exp(), None, 3]})
    with watched(model) as recorder:
        output = model([x, {"k": y, "m": z, "n": 3}], True)
        (output["a"] * output["b"][0]).sum().backward()
    ((outputs, inputs),) = recorder.of("root")
    assert torch.equal(outputs[0], output["b"][0].detach()) and torch.equal(outputs[1], output["a"].detach())
    for grad, tensor in zip(inputs, (x, y, z)):
        assert torch.equal(grad, tensor.grad)


def test_module_in_place() -> None:
    """Full hooks forbid this; a module out of place says what must come out."""
    stack = [nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU()]
    plain = nn.Sequential(*stack)
    inplace = nn.Sequential(stack[0], nn.ReLU(inplace=True), stack[2], nn.ReLU(inplace=True))
    x = torch.randn(3, 4)
    with watched(plain) as expected:
        plain(x).sum().backward()
    with watched(inplace) as recorder:
        inplace(x).sum().backward()
    assert recorder.events == expected.events
    for (_, outputs, inputs), (_, their_outputs, their_inputs) in zip(recorder.complete, expected.complete):
        for mine, theirs in zip(outputs + inputs, their_outputs + their_inputs):
            assert mine is not None and theirs is not None and torch.equal(mine, theirs)


class Viewing(nn.Module):  # type: ignore[misc]
    """As some versions of torch do in a linear layer on three axes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.linear(x.flatten(0, 1)).view(x.shape)
        return output


def test_module_in_place_on_a_view() -> None:
    """Autograd rewrites the history of the base then: the view's old node is not on the way any more."""
    stack = [Viewing(), nn.ReLU(), Viewing(), nn.ReLU()]
    plain = nn.Sequential(*stack)
    inplace = nn.Sequential(stack[0], nn.ReLU(inplace=True), stack[2], nn.ReLU(inplace=True))
    x = torch.randn(2, 3, 4)
    with watched(plain) as expected:
        plain(x).square().sum().backward()
    with watched(inplace) as recorder:
        output = inplace(x)
        assert output._is_view()
        output.square().sum().backward()
    for name in ("0", "1", "2", "3", "root"):
        ((outputs, inputs),), ((their_outputs, their_inputs),) = recorder.of(name), expected.of(name)
        for mine, theirs in zip(outputs + inputs, their_outputs + their_inputs):
            assert mine is not None and theirs is not None and torch.equal(mine, theirs), name
    assert recorder.events == expected.events


def test_output_changed_in_place_afterwards() -> None:
    model = nn.Linear(4, 4)
    x = torch.randn(3, 4, requires_grad=True)
    with watched(model) as recorder:
        output = model(x)
        output.mul_(3).add_(1)
        output.sum().backward()
    ((outputs, inputs),) = recorder.of("root")
    assert torch.equal(outputs[0], torch.full((3, 4), 3.0))
    assert torch.equal(inputs[0], x.grad)


def test_view_changed_in_place_inside_and_outside() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2
        y[0].mul_(5)
        return y[1:]

    model = Function(function)
    x = torch.randn(3, 4, requires_grad=True) * 1
    x.retain_grad()
    with watched(model) as recorder:
        output = model(x)
        output[0].zero_()
        (output * 2).sum().backward()
    ((outputs, inputs),) = recorder.of("root")
    assert torch.equal(outputs[0], torch.tensor([[0.0] * 4, [2.0] * 4]))
    assert torch.equal(inputs[0], x.grad)


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        return self.out((q @ k.transpose(-1, -2)).softmax(-1) @ v)


class PostNorm(nn.Module):  # type: ignore[misc]
    """Separate q, k and v and a residual: four gradients meet at x, and their order of addition shows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.attention(x))


def test_training_keeps_its_bits() -> None:
    model = nn.Sequential(nn.Linear(32, 32), *[PostNorm(32) for _ in range(6)])
    x = torch.randn(4, 16, 32)

    def step() -> list[Tensor]:
        model(x).square().sum().backward()
        return parameter_gradients(model)

    plain = step()
    with watched(model) as recorder:
        mine = step()
    with hooked(model):
        theirs = step()
    assert len(recorder.complete) == len(list(model.modules()))
    assert all(torch.equal(one, other) for one, other in zip(mine, plain))
    # That this can fail: identity nodes around each module regroup the sums.
    assert not all(torch.equal(one, other) for one, other in zip(theirs, plain))


def test_attention_keeps_its_identity_checks() -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 3, 8, requires_grad=True)
    with watched(model) as recorder:
        output, _ = model(x, x, x)
        output.sum().backward()
    told, inputs = recorder.of("root")[0]
    assert told[0] is not None and told[1] is None
    # One tensor given three times has one gradient.
    for grad in inputs:
        assert torch.equal(grad, x.grad)


def test_order_of_nested_modules() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), nn.Sequential(nn.Linear(3, 3)))
    with watched(model) as recorder:
        model(torch.randn(2, 3, requires_grad=True) * 1).sum().backward()
    assert recorder.events == [
        ("begin", "root"),
        ("begin", "1"),
        ("begin", "1.0"),
        ("complete", "1.0"),
        ("complete", "1"),
        ("begin", "0"),
        ("begin", "0.1"),
        ("complete", "0.1"),
        ("begin", "0.0"),
        ("complete", "0.0"),
        ("complete", "0"),
        ("complete", "root"),
    ]
    numbers = {name: (begin, end) for name, begin, end in recorder.sequences}
    assert numbers["root"][0] == numbers["1"][0] == numbers["1.0"][0] > numbers["0"][0]
    assert numbers["root"][1] == numbers["0"][1] == numbers["0.0"][1] <= numbers["0.0"][0]
