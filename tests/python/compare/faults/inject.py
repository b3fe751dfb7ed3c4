"""Ways to break one place of a model, and only that place.

A fault changes results with ``torch.ops`` calls, which collection does not record: like a faulty kernel it
leaves no trace of its own. Each maker below returns an ``Injection``: given a freshly built model and its
batch, a context in which the faulty training step runs. Models are built anew for every run, so only what
lives outside them is undone.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from .models import Batch

Injection = Callable[[nn.Module, Batch], AbstractContextManager[Any]]
Change = Callable[[torch.Tensor], torch.Tensor]

aten = torch.ops.aten


# ---- what happens to a result


def scaled(factor: float = 1.01) -> Change:
    return lambda y: aten.mul.Scalar(y, factor)


def through_bfloat16(y: torch.Tensor) -> torch.Tensor:
    return aten._to_copy.default(aten._to_copy.default(y, dtype=torch.bfloat16), dtype=y.dtype)


def noisy(relative: float = 1e-3) -> Change:
    """Every element off by its own small factor; the random numbers of the training are not touched."""

    def change(y: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(7)
        noise = aten.randn.generator(list(y.shape), generator=generator, dtype=y.dtype)
        return aten.mul.Tensor(y, aten.add.Scalar(aten.mul.Scalar(noise, relative), 1.0))

    return change


def without_channel(channel: int = 5, dim: int = -1) -> Change:
    """One channel is zero."""

    def change(y: torch.Tensor) -> torch.Tensor:
        keep = aten.ones.default([y.shape[dim]], dtype=y.dtype)
        aten.fill_.Scalar(aten.select.int(keep, 0, channel), 0.0)
        shape = [1] * y.dim()
        shape[dim] = -1
        return aten.mul.Tensor(y, aten.view.default(keep, shape))

    return change


def with_nan(y: torch.Tensor) -> torch.Tensor:
    """One element is NaN, the root of a negative number."""
    result = aten.clone.default(y)
    aten.fill_.Scalar(aten.select.int(aten.view.default(result, [-1]), 0, 3), float("nan"))
    return result


# ---- where


@contextmanager
def nothing(model: nn.Module, batch: Batch) -> Iterator[None]:
    """No fault at all."""
    yield


class _KernelFault(TorchDispatchMode):  # type: ignore[misc]
    """One call of one kernel returns something else, whatever layer of torch called it."""

    def __init__(self, kernel: str, change: Change, nth: int, output: int | None) -> None:
        super().__init__()
        self.is_here = True
        self.fired = 0
        self._kernel = f"aten::{kernel}"
        self._change = change
        self._left = nth
        self._output = output

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.is_here or func._schema.name != self._kernel:
            return result
        self._left -= 1
        if self._left != -1:
            return result
        self.fired += 1
        if self._output is None:
            return self._change(result)
        return tuple(self._change(y) if i == self._output else y for i, y in enumerate(result))


def kernel(
    name: str, change: Change, inside: str | None = None, nth: int = 0, output: int | None = None
) -> Injection:
    """The nth call of a kernel, of all or of those while module ``inside`` runs forward.

    ``output`` picks one of several results. Backward kernels have names of their own, and are counted as they
    run: the last layer first.
    """

    @contextmanager
    def inject(model: nn.Module, batch: Batch) -> Iterator[None]:
        fault = _KernelFault(name, change, nth, output)
        if inside is not None:
            fault.is_here = False
            _tell_when_inside(model.get_submodule(inside), fault)
        with fault:
            yield
        assert fault.fired == 1, f"kernel {name} was changed {fault.fired} times"

    return inject


def _tell_when_inside(module: nn.Module, fault: _KernelFault) -> None:
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        fault.is_here = True
        try:
            return original(*args, **kwargs)
        finally:
            fault.is_here = False

    module.forward = forward


def forward_of(path: str, make: Callable[[Any, Callable[..., Any]], Callable[..., Any]]) -> Injection:
    """Module ``path`` runs what ``make`` returns, which is given the module and its own forward."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        module = model.get_submodule(path)
        module.forward = make(module, module.forward)
        return contextlib.nullcontext()

    return inject


def output_of(path: str, change: Change) -> Injection:
    """What module ``path`` returns is changed after everything recorded inside it."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: change(original(*args, **kwargs))

    return forward_of(path, make)


def setting(path: str, **attributes: Any) -> Injection:
    """Attributes of module ``path`` have other values."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        module = model.get_submodule(path)
        for name, value in attributes.items():
            assert hasattr(module, name)
            setattr(module, name, value)
        return contextlib.nullcontext()

    return inject


def replaced(path: str, make: Callable[[], nn.Module]) -> Injection:
    """Another module stands at ``path``."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        model.set_submodule(path, make())
        return contextlib.nullcontext()

    return inject


def parameter(path: str, change: Change) -> Injection:
    """A parameter differs before training starts, as after loading the wrong checkpoint."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        with torch.no_grad():
            weight = model.get_parameter(path)
            weight.copy_(change(weight))
        return contextlib.nullcontext()

    return inject


def batch_key(key: str, change: Change) -> Injection:
    """The data differs."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        batch[key] = change(batch[key])
        return contextlib.nullcontext()

    return inject


def function(place: str, make: Callable[[nn.Module, Callable[..., Any]], Callable[..., Any]]) -> Injection:
    """Function ``package.module:name`` is replaced while the step runs; ``make`` gets model and original."""
    module_name, name = place.split(":")

    @contextmanager
    def inject(model: nn.Module, batch: Batch) -> Iterator[None]:
        module = importlib.import_module(module_name)
        original = getattr(module, name)
        setattr(module, name, make(model, original))
        try:
            yield
        finally:
            setattr(module, name, original)

    return inject


def both(*injections: Injection) -> Injection:
    """All of them."""

    @contextmanager
    def inject(model: nn.Module, batch: Batch) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for one in injections:
                stack.enter_context(one(model, batch))
            yield

    return inject


# ---- gradients only


class _Gradient(torch.autograd.Function):  # type: ignore[misc]
    """Leaves values alone and changes the gradient that comes back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, change: Change) -> torch.Tensor:
        ctx.change = change
        return aten.alias.default(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.change(gradients[0]), None


def gradient_inside(path: str, change: Change) -> Injection:
    """A custom function on the input of module ``path``, within it, has a faulty backward."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, *args, **kwargs: original(_Gradient.apply(x, change), *args, **kwargs)

    return forward_of(path, make)


def gradient_hook(path: str, change: Change) -> Injection:
    """A tensor hook on the output of module ``path``, hung up by the module itself."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            y = original(*args, **kwargs)
            y.register_hook(change)
            return y

        return forward

    return forward_of(path, make)


def backward_hook(path: str, change: Change) -> Injection:
    """A full backward hook of module ``path`` returns another gradient for its input."""

    def inject(model: nn.Module, batch: Batch) -> AbstractContextManager[Any]:
        def hook(module: nn.Module, outgoing: Any, incoming: Any) -> Any:
            return tuple(None if g is None else change(g) for g in outgoing)

        model.get_submodule(path).register_full_backward_hook(hook)
        return contextlib.nullcontext()

    return inject
