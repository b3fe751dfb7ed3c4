"""Trainings with tensors that do not lie in memory as they count, twice: once with one thing scaled.

Usage: ``odd_tensors MODE``: a configuration by name, or ``absent``. Every program is a step, first as it is,
then all of them again with something scaled.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn

warnings.simplefilter("ignore")

SETTINGS = {
    f"{level}-{what}": {
        "task": "tensor" if what == "tensor" else "statistics",
        "dump_path": "./dump",
        "level": level,
        "tensor" if what == "tensor" else "statistics": {
            "summary_mode": "md5" if what == "md5" else "statistics"
        },
    }
    for level in ("L0", "L1", "mix")
    for what in ("statistics", "tensor", "md5")
}


class Int8Weight(torch.Tensor):  # type: ignore[misc]
    """A quantised weight as libraries make them: no memory, integers and scales inside."""

    integers: torch.Tensor
    scales: torch.Tensor

    @staticmethod
    def __new__(cls, integers: torch.Tensor, scales: torch.Tensor) -> Int8Weight:
        wrapper: Int8Weight = torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=torch.float32)
        wrapper.integers, wrapper.scales = integers, scales
        return wrapper

    def dequantize(self) -> torch.Tensor:
        return self.integers.float() * self.scales

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].integers, args[0].scales)
        opened = [arg.dequantize() if isinstance(arg, cls) else arg for arg in args]
        return func(*opened, **(kwargs or {}))


class Held(torch.Tensor):  # type: ignore[misc]
    """A wrapper that does not say what it stands for."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor, factor: float) -> Held:
        wrapper: Held = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        wrapper.__dict__.update(inner=inner, factor=factor)
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].inner, args[0].factor)
        opened = [arg.inner * arg.factor if isinstance(arg, cls) else arg for arg in args]
        return func(*opened, **(kwargs or {}))


class Scale(nn.Module):  # type: ignore[misc]
    """Hands on what it is given, times a number."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mul(x, self.by)


class Multiply(nn.Module):  # type: ignore[misc]
    """A linear layer over any kind of weight that is given with the call."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.matmul(x, weight)


class SparseTimes(nn.Module):  # type: ignore[misc]
    def forward(self, matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.mv(matrix, x)


def parts(layout: torch.layout) -> torch.Tensor:
    values = [torch.randn(length, 4) for length in (2, 5, 3)]
    return torch.nested.nested_tensor(values, layout=layout, requires_grad=True)


def nested(layout: torch.layout) -> Callable[[bool], list[torch.Tensor]]:
    def run(scaled: bool) -> list[torch.Tensor]:
        model = Root(first=nn.Linear(4, 4), scale=Scale(1.5 if scaled else 1.0), last=nn.Linear(4, 4))
        x = parts(layout)

        def forward() -> torch.Tensor:
            x.grad = None
            hidden = model.inner["last"](model.inner["scale"](model.inner["first"](x)))
            return torch.nested.to_padded_tensor(hidden, 0.0).square().sum()

        losses = train(model, forward)
        grad = x.grad
        assert grad is not None
        return [*losses, *(part.clone() for part in grad.unbind())]

    return run


def sparse_gradient(scaled: bool) -> list[torch.Tensor]:
    model = Root(table=nn.Embedding(16, 3, sparse=True))
    rows = torch.tensor([[1, 5, 1], [2, 5, 15]])

    def forward() -> torch.Tensor:
        return model.inner["table"](rows).sum() * (7.0 if scaled else 1.0)

    return train(model, forward)


def sparse_matrix(convert: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[bool], list[torch.Tensor]]:
    def run(scaled: bool) -> list[torch.Tensor]:
        model = Root(times=SparseTimes(), last=nn.Linear(4, 2))
        dense = torch.tensor([[0, 2.0, 0, 0], [0, 0, 0, 3.0], [0, 0, 0, 0], [1.0, 0, 0, 0]])
        matrix = convert(dense * (1.5 if scaled else 1.0))
        x = torch.randn(4)
        return train(model, lambda: model.inner["last"](model.inner["times"](matrix, x)).sum())

    return run


def wrapped(make: Callable[[torch.Tensor, float], torch.Tensor]) -> Callable[[bool], list[torch.Tensor]]:
    def run(scaled: bool) -> list[torch.Tensor]:
        model = Root(first=nn.Linear(4, 4), times=Multiply())
        integers = torch.randint(-100, 100, (4, 3), dtype=torch.int8)
        weight = make(integers, 1.5 if scaled else 1.0)
        x = torch.randn(2, 4)
        return train(model, lambda: model.inner["times"](model.inner["first"](x), weight).sum())

    return run


class Dequantize(nn.Module):  # type: ignore[misc]
    def forward(self, quantised: torch.Tensor) -> torch.Tensor:
        return torch.dequantize(torch.relu(quantised))


def quantised(scaled: bool) -> list[torch.Tensor]:
    model = Root(first=nn.Linear(4, 4), open=Dequantize())
    values = torch.linspace(-2, 2, 8).reshape(2, 4) * (1.5 if scaled else 1.0)
    x = torch.quantize_per_tensor(values, 0.05, 3, torch.qint8)
    return train(model, lambda: model.inner["first"](model.inner["open"](x)).sum())


def mapped(scaled: bool) -> list[torch.Tensor]:
    model = Root(last=nn.Linear(4, 2))
    x = torch.randn(3, 4)
    by = 1.5 if scaled else 1.0

    def forward() -> torch.Tensor:
        return torch.func.vmap(lambda row: torch.sin(torch.mul(row, by)))(model.inner["last"](x)).sum()

    return train(model, forward)


class Root(nn.Module):  # type: ignore[misc]
    """What is given to ``start``: everything below it is recorded."""

    def __init__(self, **modules: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleDict(modules)


PROGRAMS: dict[str, Callable[[bool], list[torch.Tensor]]] = {
    "nested": nested(torch.strided),
    "jagged": nested(torch.jagged),
    "sparse gradient": sparse_gradient,
    "coo": sparse_matrix(lambda dense: dense.to_sparse()),
    "csr": sparse_matrix(lambda dense: dense.to_sparse_csr()),
    "int8 weight": wrapped(lambda integers, by: Int8Weight(integers, torch.tensor(0.01 * by))),
    "qint8": quantised,
    "vmap": mapped,
    "held": wrapped(lambda integers, by: Held(integers.float(), by)),
}

debugger: Any = None


def train(model: nn.Module, forward: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    """Two steps, of which the first is collected. Everything that training made."""
    made: list[torch.Tensor] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if list(model.parameters()) else None
    for step in range(2):
        if debugger is not None and step == 0:
            debugger.start(model)
        loss = forward()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        made.append(loss.detach())
        grads = [parameter.grad for parameter in model.parameters()]
        made.extend(grad.to_dense().clone() for grad in grads if grad is not None)
        if optimizer is not None:
            optimizer.zero_grad()
        if debugger is not None and step == 0:
            debugger.stop()
            debugger.step()
    made.extend(parameter.detach().clone() for parameter in model.parameters())
    made.append(torch.rand(3))
    return made


def digest(tensors: list[torch.Tensor]) -> str:
    whole = hashlib.sha256()
    for tensor in tensors:
        whole.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        whole.update(tensor.detach().contiguous().numpy().tobytes())
    return whole.hexdigest()


def main() -> None:
    global debugger
    mode = sys.argv[1]
    if mode != "absent":
        from msprobe.pytorch import PrecisionDebugger

        Path("config.json").write_text(json.dumps(SETTINGS[mode]))
        debugger = PrecisionDebugger(config_path="./config.json")
    digests = {}
    for scaled in (False, True):
        for name, program in PROGRAMS.items():
            torch.manual_seed(7)
            digests[f"{name} {scaled}"] = digest(program(scaled))
    print("RESULT " + json.dumps(digests), flush=True)


if __name__ == "__main__":
    main()
