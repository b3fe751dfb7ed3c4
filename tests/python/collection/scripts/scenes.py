"""Scenes of training that a tool could disturb, one per process: `python -m … NAME`."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from typing import Any, Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.python.collection.scripts.attach import attach, digest, result


def train_once(model: Any, x: Any) -> list[Any]:
    """Forward and backward; the output and all gradients."""
    model.zero_grad()
    out = model(x)
    out.pow(2).sum().backward()
    return [out.detach().clone(), *(p.grad.clone() for p in model.parameters())]


def lifetime() -> None:
    debugger = attach("tensor")
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Dropout(0.5), nn.LayerNorm(4))
    watched: list[tuple[str, Any]] = []

    def watch(module: Any, given: Any, returned: Any) -> None:
        watched.extend((f"{type(module).__name__} {side}", weakref.ref(t)) for side, t in
                       (("input", given[0]), ("output", returned)))  # fmt: skip

    for child in model:
        child.register_forward_hook(watch)
    debugger.start(model=model)
    x = torch.randn(3, 4, requires_grad=True)
    y = model(x)
    z = torch.neg(torch.exp(y)) * 2
    w = F.gelu(z)
    scalar = w.sum()
    scalar.backward()
    watched += [(name, weakref.ref(t)) for name, t in
                (("x", x), ("y", y), ("z", z), ("w", w), ("scalar", scalar), ("x.grad", x.grad))]  # fmt: skip
    debugger.stop()
    debugger.step()
    del x, y, z, w, scalar
    model.zero_grad()
    gc.collect()
    result({"watched": len(watched), "alive": [name for name, ref in watched if ref() is not None]})


def flat(tensors: list[Any]) -> list[float]:
    return [number for tensor in tensors for number in tensor.flatten().tolist()]


def compiled(backend: str) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    without = flat(train_once(torch.compile(model, backend=backend), x))
    torch.compiler.reset()
    debugger = attach("mix")
    fast = torch.compile(model, backend=backend)
    told = []
    for _ in range(2):
        debugger.start(model=fast)
        told.append(flat(train_once(fast, x)))
        torch.neg(x)
        debugger.stop()
        debugger.step()
    result({"with": told, "without": [without] * 2})


def seen(call: Callable[[], Any]) -> list[Any]:
    """The class, text and origin of the exception a call raises."""
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error), error.__cause__ is None and error.__context__ is None]
    return []


class Bad(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        torch.exp(x)
        raise ValueError("from the forward")


class Pair(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.bad, self.good = Bad(), nn.Linear(2, 2)


def raising() -> None:
    def mismatch() -> Any:
        return torch.matmul(torch.ones(2, 3), torch.ones(2, 3))

    without = seen(mismatch)
    debugger = attach("mix")
    model = Pair()
    debugger.start(model=model)
    api = seen(mismatch)
    torch.neg(torch.ones(2))
    module = seen(lambda: model.bad(torch.ones(2)))
    torch.neg(torch.ones(2))
    model.good(torch.ones(2)).sum().backward()
    debugger.stop()
    debugger.step()
    result({"api": api, "api without": without, "module": module})


def two_models() -> None:
    debugger = attach("L0")
    first = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    second = nn.Sequential(nn.Conv1d(1, 1, 1))
    for model, shape in ((first, (1, 2)), (second, (1, 1, 2)), (first, (1, 2))):
        debugger.start(model=model)
        model(torch.ones(shape)).sum().backward()
        debugger.stop()
        debugger.step()
    result(None)


def custom(debugger: Any, prefix: str, function: Callable[..., Any]) -> Any:
    module = types.ModuleType(prefix.lower())
    vars(module)["probe"] = function
    debugger.register_custom_api(module, "probe", prefix)
    return module


def nested(depth: int) -> Any:
    value: Any = torch.ones(2)
    for _ in range(depth):
        value = [value]
    return value


def nesting() -> None:
    debugger = attach("L1")
    module = custom(debugger, "Deep", lambda value: None)
    debugger.start()
    for depth in (20, 60, 0):
        module.probe(nested(depth))
    debugger.stop()
    debugger.step()
    result(None)


class Touchy:
    """Raises at every touch."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name} here")


def unencodable() -> None:
    debugger = attach("tensor", level="L1")
    module = custom(debugger, "Odd", lambda *values: torch.tensor([2.0, 1.0]))
    debugger.start()
    module.probe(Touchy(), torch.ones(2))
    module.probe(np.complex64(1 + 2j), torch.ones(2))
    module.probe(torch.ones(2))
    debugger.stop()
    debugger.step()
    result(None)


def threads() -> None:
    count, calls = 4, 25
    torch.manual_seed(5)
    models = [nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(count)]
    told: dict[int, str] = {}

    def work(index: int) -> None:
        kept = []
        for _ in range(calls):
            x = torch.neg(torch.full((2, 3), float(index)))
            kept.append(F.gelu(models[index](x)))
            kept[-1].sum().backward()
        told[index] = digest([*kept, *(p.grad for p in models[index].parameters())])
        models[index].zero_grad()

    def work_all() -> list[str]:
        group = [threading.Thread(target=work, args=(index,)) for index in range(count)]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
        return [told[index] for index in range(count)]

    without = work_all()
    debugger = attach("mix")
    debugger.start(model=models)
    collected = work_all()
    debugger.stop()
    debugger.step()
    result({"with": collected, "without": without, "calls": count * calls})


SCENES: dict[str, Callable[[], None]] = {
    "lifetime": lifetime,
    "compiled": lambda: compiled("eager"),
    "compiled_inductor": lambda: compiled("inductor"),
    "raising": raising,
    "two_models": two_models,
    "nesting": nesting,
    "unencodable": unencodable,
    "threads": threads,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]]()
