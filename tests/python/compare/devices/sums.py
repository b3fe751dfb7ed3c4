"""Another device: matrix products, convolutions, normalisations and softmax with another order of sums.

Kernels are registered with torch's dispatcher at ``AutogradCPU``, as a real accelerator registers its own:
whoever calls ``linear``, a module, ``torch.nn.functional`` or C++, comes here, after autocast has chosen the
dtype and without a trace in Python. Each is an autograd function with its own backward, so nodes of the graph
are others than those of torch, and so are the shapes of what they return. Sums are cut into chunks that are
added up last to first, in float32 whatever the inputs are; results are rounded once.

All calls below are ``torch.ops`` calls: collection does not record them, in backward either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .kernel_faults import fault_of

aten = torch.ops.aten

CHUNK = 16
"""Elements that are summed up in one go."""


# ---- sums in another order


def _wide(x: Tensor) -> Tensor:
    """In the type sums are made in."""
    if x.dtype in (torch.float32, torch.float64):
        return x
    return aten._to_copy.default(x, dtype=torch.float32)


def _as(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else aten._to_copy.default(x, dtype=dtype)


def _added(parts: Sequence[Tensor]) -> Tensor:
    """Last to first."""
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = aten.add.Tensor(total, part)
    return total


def _chunks(x: Tensor, dim: int) -> list[Tensor]:
    size = x.shape[dim]
    starts = range(0, size, CHUNK) if size else [0]
    return [aten.slice.Tensor(x, dim, start, min(start + CHUNK, size)) for start in starts]


def _total(x: Tensor, dims: Sequence[int]) -> Tensor:
    """Sums along dimensions, which are kept."""
    for dim in dims:
        x = _added([aten.sum.dim_IntList(part, [dim], True) for part in _chunks(x, dim)])
    return x


def _product(a: Tensor, b: Tensor) -> Tensor:
    """``[M, K] x [K, N]``, or with a dimension of batches in front; wide."""
    multiply = aten.mm.default if a.dim() == 2 else aten.bmm.default
    a, b = _wide(a), _wide(b)
    return _added([multiply(x, y) for x, y in zip(_chunks(a, -1), _chunks(b, -2))])


def _t(x: Tensor) -> Tensor:
    return aten.transpose.int(x, -2, -1)


def _reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    return aten.reshape.default(x, list(shape))


class _Kernel(torch.autograd.Function):  # type: ignore[misc]
    """``compute`` and ``gradients`` of a kernel; the latter returns one for each argument."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            ctx.kernel = kernel
            ctx.fault = fault_of(kernel.name)
            return ctx.fault.apply("output", kernel.compute(ctx, *args))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return (None, *ctx.kernel.gradients(ctx, gradients[0]))


# ---- matrix products


class _Linear:
    """``x @ weight.T + bias``; the weight is transposed already for ``addmm``."""

    def __init__(self, name: str, is_transposed: bool) -> None:
        self.name = name
        self._is_transposed = is_transposed

    def compute(self, ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.bias_dtype = None if bias is None else bias.dtype
        flat = _reshape(x, [-1, x.shape[-1]])
        y = _product(flat, weight if self._is_transposed else _t(weight))
        if bias is not None:
            y = aten.add.Tensor(y, _wide(ctx.fault.apply("bias", bias)))
        return _reshape(_as(y, x.dtype), [*x.shape[:-1], y.shape[-1]])

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Tensor | None]:
        x, weight = ctx.saved_tensors
        flat = _reshape(x, [-1, x.shape[-1]])
        g = _reshape(gradient, [-1, gradient.shape[-1]])
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[1]:
            of_x = _product(g, _t(weight) if self._is_transposed else weight)
            of_x = _reshape(_as(of_x, x.dtype), x.shape)
            of_x = ctx.fault.apply("input_gradient", of_x)
        if ctx.needs_input_grad[2]:
            of_weight = _product(_t(flat), g) if self._is_transposed else _product(_t(g), flat)
            of_weight = ctx.fault.apply("weight_gradient", _as(of_weight, weight.dtype))
        if ctx.needs_input_grad[3] and ctx.bias_dtype is not None:
            of_bias = _as(_reshape(_total(_wide(g), [0]), [-1]), ctx.bias_dtype)
        return [of_x, of_weight, of_bias]


_LINEAR = _Linear("linear", is_transposed=False)
_ADDMM = _Linear("addmm", is_transposed=True)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    return _Kernel.apply(_LINEAR, x, weight, bias)


def addmm(bias: Tensor, x: Tensor, weight: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    assert (beta, alpha) == (1, 1)
    assert bias.dim() == 1
    return _Kernel.apply(_ADDMM, x, weight, bias)


class _Matmul:
    """Products of matrices in batches that may have to be repeated."""

    name = "matmul"

    def compute(self, ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        y = _product(self._flat(a, batch), self._flat(b, batch))
        return _reshape(_as(y, a.dtype), [*batch, *y.shape[-2:]])

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Tensor | None]:
        a, b = ctx.saved_tensors
        batch = gradient.shape[:-2]
        g = self._flat(gradient, batch)
        of_a = of_b = None
        if ctx.needs_input_grad[1]:
            of_a = self._gathered(_product(g, _t(self._flat(b, batch))), a, batch)
            of_a = ctx.fault.apply("input_gradient", of_a)
        if ctx.needs_input_grad[2]:
            of_b = self._gathered(_product(_t(self._flat(a, batch)), g), b, batch)
            of_b = ctx.fault.apply("weight_gradient", of_b)
        return [of_a, of_b]

    def _flat(self, x: Tensor, batch: Sequence[int]) -> Tensor:
        x = aten.expand.default(x, [*batch, *x.shape[-2:]])
        return _reshape(x, [-1, *x.shape[-2:]]) if batch else x

    def _gathered(self, gradient: Tensor, like: Tensor, batch: Sequence[int]) -> Tensor:
        full = _reshape(gradient, [*batch, *gradient.shape[-2:]])
        extra = full.dim() - like.dim()
        repeated = [
            dim
            for dim in range(len(batch))
            if dim < extra or (like.shape[dim - extra] == 1 and full.shape[dim] > 1)
        ]
        return _as(_reshape(_total(full, repeated), like.shape), like.dtype)


_MATMUL = _Matmul()


def matmul(a: Tensor, b: Tensor) -> Any:
    if min(a.dim(), b.dim()) < 2:
        return aten.matmul.default.decompose(a, b)
    return _Kernel.apply(_MATMUL, a, b)


# ---- convolutions


class _Convolution:
    """By unfolding, in groups of channels."""

    name = "convolution"

    def compute(
        self, ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, geometry: list[Any], groups: int
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry, ctx.groups = geometry, groups
        ctx.bias_dtype = None if bias is None else bias.dtype
        count, channels = x.shape[0], weight.shape[0]
        height, width = (
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, dilation, padding, stride in zip(x.shape[2:], *geometry)
        )
        y = _product(self._weights(weight, groups, count), self._columns(x, geometry, groups))
        y = _reshape(y, [count, channels, height, width])
        if bias is not None:
            y = aten.add.Tensor(y, _reshape(_wide(ctx.fault.apply("bias", bias)), [1, -1, 1, 1]))
        return _as(y, x.dtype)

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Any]:
        x, weight = ctx.saved_tensors
        groups, count = ctx.groups, x.shape[0]
        g = _reshape(_wide(gradient), [count * groups, weight.shape[0] // groups, -1])
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[1]:
            columns = _product(_t(self._weights(weight, groups, count)), g)
            columns = _reshape(columns, [count, -1, columns.shape[-1]])
            of_x = _as(aten.col2im.default(columns, list(x.shape[2:]), *ctx.geometry), x.dtype)
            of_x = ctx.fault.apply("input_gradient", of_x)
        if ctx.needs_input_grad[2]:
            each = _product(g, _t(self._columns(x, ctx.geometry, groups)))
            each = _total(_reshape(each, [count, *weight.shape]), [0])
            of_weight = _as(_reshape(each, weight.shape), weight.dtype)
            of_weight = ctx.fault.apply("weight_gradient", of_weight)
        if ctx.needs_input_grad[3] and ctx.bias_dtype is not None:
            of_bias = _as(_reshape(_total(_wide(gradient), [3, 2, 0]), [-1]), ctx.bias_dtype)
        return [of_x, of_weight, of_bias, None, None]

    def _weights(self, weight: Tensor, groups: int, count: int) -> Tensor:
        size = math.prod(weight.shape[1:])
        one = _reshape(weight, [1, groups, weight.shape[0] // groups, size])
        return _reshape(aten.expand.default(one, [count, -1, -1, -1]), [count * groups, -1, size])

    def _columns(self, x: Tensor, geometry: list[Any], groups: int) -> Tensor:
        columns = aten.im2col.default(aten.contiguous.default(_wide(x)), *geometry)
        return _reshape(columns, [x.shape[0] * groups, -1, columns.shape[-1]])


_CONVOLUTION = _Convolution()


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    assert x.dim() == 4 and not transposed
    geometry = [list(weight.shape[2:]), list(dilation), list(padding), list(stride)]
    return _Kernel.apply(_CONVOLUTION, x, weight, bias, geometry, groups)


# ---- normalisations


class _Normalisation:
    """By mean and deviation along ``dims``, with a factor and a summand of a ``shape`` that is repeated."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(
        self,
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        dims: list[int],
        shape: list[int],
        running: tuple[Tensor, Tensor, float] | None,
    ) -> Tensor:
        wide = _wide(x)
        count = math.prod(x.shape[dim] for dim in dims)
        mean = aten.div.Scalar(_total(wide, dims), count)
        centred = aten.sub.Tensor(wide, mean)
        variance = aten.div.Scalar(_total(aten.mul.Tensor(centred, centred), dims), count)
        if running is not None:
            self._remember(running, mean, variance, count)
        inverse = aten.rsqrt.default(aten.add.Scalar(variance, eps))
        y = aten.mul.Tensor(centred, inverse)
        if weight is not None:
            y = aten.mul.Tensor(y, _reshape(_wide(weight), shape))
        if bias is not None:
            y = aten.add.Tensor(y, _reshape(_wide(ctx.fault.apply("bias", bias)), shape))
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.dims, ctx.shape = dims, shape
        ctx.bias = None if bias is None else (bias.dtype, bias.shape)
        return _as(y, x.dtype)

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Any]:
        x, weight, mean, inverse = ctx.saved_tensors
        dims, g = ctx.dims, _wide(gradient)
        normal = aten.mul.Tensor(aten.sub.Tensor(_wide(x), mean), inverse)
        count = math.prod(x.shape[dim] for dim in dims)
        # Where a factor has one element it is the same in all of these.
        shared = [dim for dim in range(x.dim()) if ctx.shape[dim] == 1]
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[1]:
            scaled = g if weight is None else aten.mul.Tensor(g, _reshape(_wide(weight), ctx.shape))
            plain = aten.div.Scalar(_total(scaled, dims), count)
            along = aten.div.Scalar(_total(aten.mul.Tensor(scaled, normal), dims), count)
            of_x = aten.sub.Tensor(aten.sub.Tensor(scaled, plain), aten.mul.Tensor(normal, along))
            of_x = ctx.fault.apply("input_gradient", _as(aten.mul.Tensor(of_x, inverse), x.dtype))
        if weight is not None and ctx.needs_input_grad[2]:
            of_weight = _reshape(_total(aten.mul.Tensor(g, normal), shared), weight.shape)
            of_weight = ctx.fault.apply("weight_gradient", _as(of_weight, weight.dtype))
        if ctx.bias is not None and ctx.needs_input_grad[3]:
            of_bias = _as(_reshape(_total(g, shared), ctx.bias[1]), ctx.bias[0])
        return [of_x, of_weight, of_bias, None, None, None, None]

    def _remember(
        self, running: tuple[Tensor, Tensor, float], mean: Tensor, variance: Tensor, count: int
    ) -> None:
        unbiased = aten.mul.Scalar(variance, count / (count - 1))
        for kept, new in zip(running[:2], (mean, unbiased)):
            new = _as(_reshape(new, kept.shape), kept.dtype)
            aten.lerp_.Scalar(kept, new, running[2])


_LAYER_NORM = _Normalisation("layer_norm")
_BATCH_NORM = _Normalisation("batch_norm")


def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:
    own = x.dim() - len(normalized_shape)
    shape = [1] * own + list(normalized_shape)
    return _Kernel.apply(_LAYER_NORM, x, weight, bias, eps, list(range(own, x.dim())), shape, None)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    assert training
    dims = [dim for dim in range(x.dim()) if dim != 1]
    shape = [-1 if dim == 1 else 1 for dim in range(x.dim())]
    running = None if running_mean is None else (running_mean, running_var, momentum)
    return _Kernel.apply(_BATCH_NORM, x, weight, bias, eps, dims, shape, running)


class _Mean:
    """What normalisations that are made of single functions sum up with."""

    name = "mean"

    def compute(self, ctx: Any, x: Tensor, dims: list[int], keeps: bool, dtype: torch.dtype) -> Tensor:
        ctx.full, ctx.dtype, ctx.dims = x.shape, x.dtype, dims
        ctx.count = math.prod(x.shape[dim] for dim in dims)
        y = aten.div.Scalar(_total(_wide(x), dims), ctx.count)
        ctx.kept = y.shape
        if not keeps:
            y = _reshape(y, [size for dim, size in enumerate(x.shape) if dim not in dims])
        return _as(y, dtype)

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Any]:
        each = aten.div.Scalar(_reshape(_as(gradient, ctx.dtype), ctx.kept), ctx.count)
        return [aten.expand.default(each, list(ctx.full)), None, None, None]


_MEAN = _Mean()


def mean(
    x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    dims = sorted(each % x.dim() for each in dim) if dim else list(range(x.dim()))
    return _Kernel.apply(_MEAN, x, dims, keepdim, dtype or x.dtype)


# ---- softmax


class _Softmax:
    """With powers of two, and its logarithm."""

    def __init__(self, name: str, is_log: bool) -> None:
        self.name = name
        self._is_log = is_log

    def compute(self, ctx: Any, x: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
        wide = _wide(x)
        below = aten.sub.Tensor(wide, aten.amax.default(wide, [dim], True))
        powers = aten.exp2.default(aten.mul.Scalar(below, math.log2(math.e)))
        total = _total(powers, [dim])
        y = (
            aten.sub.Tensor(below, aten.log.default(total))
            if self._is_log
            else aten.div.Tensor(powers, total)
        )
        y = _as(y, dtype)
        ctx.save_for_backward(y)
        ctx.dim, ctx.dtype = dim, x.dtype
        return y

    def gradients(self, ctx: Any, gradient: Tensor) -> list[Any]:
        y, g = _wide(ctx.saved_tensors[0]), _wide(gradient)
        if self._is_log:
            of_x = aten.sub.Tensor(g, aten.mul.Tensor(aten.exp.default(y), _total(g, [ctx.dim])))
        else:
            of_x = aten.mul.Tensor(y, aten.sub.Tensor(g, _total(aten.mul.Tensor(g, y), [ctx.dim])))
        return [ctx.fault.apply("input_gradient", _as(of_x, ctx.dtype)), None, None]


_SOFTMAX = _Softmax("softmax", is_log=False)
_LOG_SOFTMAX = _Softmax("log_softmax", is_log=True)


def softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    return _Kernel.apply(_SOFTMAX, x, dim % x.dim(), dtype or x.dtype)


def log_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    return _Kernel.apply(_LOG_SOFTMAX, x, dim % x.dim(), dtype or x.dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "addmm": addmm,
    "mm": matmul,
    "bmm": matmul,
    "matmul": matmul,
    "convolution": convolution,
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "mean.dim": mean,
    "softmax.int": softmax,
    "log_softmax.int": log_softmax,
}


@contextmanager
def other_device() -> Iterator[None]:
    """Everything on the CPU is computed as described above."""
    library = torch.library.Library("aten", "IMPL")
    try:
        for name, kernel in KERNELS.items():
            library.impl(name, kernel, "AutogradCPU")
        yield
    finally:
        library._destroy()
