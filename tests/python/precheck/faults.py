"""Operators that are wrong on purpose on the device, and right on the bench.

Both sides run on the CPU here, so a fault is switched by dtype: it is in what computes in the dtype of the
dump, and not in what computes in the raised one. That is where a wrong kernel is, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Wrong = Callable[..., Any]

FP32, FP16, BF16 = "torch.float32", "torch.float16", "torch.bfloat16"


class Fault(NamedTuple):
    """An API of a dump and what is wrong with it on the device."""

    name: str
    api: str
    args: Sequence[Any]
    wrong: Wrong
    kwargs: Mapping[str, Any] = {}
    gradient: Mapping[str, Any] | None = None
    direction: str = "forward"


def tensor(
    *shape: int, low: float = -1.0, high: float = 1.0, dtype: str = FP32, grad: bool = False
) -> dict[str, Any]:
    """A tensor of a statistics dump."""
    return {
        "type": "torch.Tensor",
        "dtype": dtype,
        "shape": list(shape),
        "Max": high,
        "Min": low,
        "Mean": 0.0,
        "Norm": 1.0,
        "requires_grad": grad,
    }


def ints(*shape: int, low: int, high: int, dtype: str = "torch.int64") -> dict[str, Any]:
    return tensor(*shape, low=low, high=high, dtype=dtype)


def number(value: Any) -> dict[str, Any]:
    return {"type": type(value).__name__, "value": value}


def size(*shape: int) -> dict[str, Any]:
    return {"type": "torch.Size", "value": list(shape)}


def sequential(terms: Tensor) -> Tensor:
    """The sum over the last dimension, rounded to the dtype after each addition."""
    total = torch.zeros_like(terms[..., 0])
    for term in terms.unbind(-1):
        total = total + term
    return total


def backward_as(forward: Callable[..., Tensor], backward: Callable[..., Tensor]) -> Wrong:
    """The right result with a gradient of its own for the first argument."""

    def call(_original: Wrong, x: Tensor, *rest: Any, **more: Any) -> Tensor:
        class Function(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(context: Any, given: Tensor) -> Tensor:
                context.save_for_backward(given)
                return forward(given, *rest, **more)

            @staticmethod
            def backward(context: Any, gradient: Tensor) -> Tensor:
                (given,) = context.saved_tensors
                return backward(given, gradient)

        result: Tensor = Function.apply(x)
        return result

    return call


def half_accumulated_matmul(_original: Wrong, a: Tensor, b: Tensor) -> Tensor:
    return sequential(a.unsqueeze(-2) * b.transpose(-1, -2).unsqueeze(-3))


def low_precision_layer_norm(
    _original: Wrong, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    count = x.shape[-1]
    mean = (sequential(x) / count).unsqueeze(-1)
    variance = (sequential(x * x) / count).unsqueeze(-1) - mean * mean
    normal = (x - mean) * torch.rsqrt(variance.abs() + eps)
    normal = normal if weight is None else normal * weight
    return normal if bias is None else normal + bias


def crude_rsqrt(_original: Wrong, x: Tensor) -> Tensor:
    """The famous trick without the Newton step that belongs to it."""
    bits = x.contiguous().view(torch.int32)
    return (0x5F3759DF - (bits >> 1)).view(torch.float32)


def plain_softmax(_original: Wrong, x: Tensor, dim: int = -1, **_: Any) -> Tensor:
    powers = torch.exp(x)
    return powers / powers.sum(dim, keepdim=True)


def softmax_of_all_but_the_last(_original: Wrong, x: Tensor, dim: int = -1, **_: Any) -> Tensor:
    powers = torch.exp(x - x.amax(dim, keepdim=True))
    return powers / powers.narrow(dim, 0, x.shape[dim] - 1).sum(dim, keepdim=True)


def log_softmax_in_half(_original: Wrong, x: Tensor, dim: int = -1, **_: Any) -> Tensor:
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - torch.log(sequential(torch.exp(shifted)).unsqueeze(-1))


def causal_attention_off_by_one(_original: Wrong, q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
    length = q.shape[-2]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(2)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
    return torch.softmax(scores, -1) @ v


def silu_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    return gradient * torch.sigmoid(x)


def softmax_gradient(x: Tensor, gradient: Tensor) -> Tensor:
    return gradient * torch.softmax(x, -1)


GRADIENT = tensor(8, 16)

FAULTS = [
    Fault(
        "layer_norm_eps",
        "Functional.layer_norm",
        [tensor(4, 32, low=-0.05, high=0.05), size(32)],
        lambda right, x, shape, *rest, **_: right(x, shape, None, None, 1e-3),
    ),
    Fault(
        "layer_norm_half_moments",
        "Functional.layer_norm",
        [tensor(4, 512, low=3.0, high=5.0, dtype=BF16), size(512)],
        low_precision_layer_norm,
    ),
    Fault(
        "softmax_without_maximum",
        "Functional.softmax",
        [tensor(4, 16, low=-20.0, high=20.0, dtype=FP16), number(-1)],
        plain_softmax,
    ),
    Fault(
        "softmax_off_by_one",
        "Functional.softmax",
        [tensor(4, 8, low=-1.0, high=1.0), number(-1)],
        softmax_of_all_but_the_last,
    ),
    Fault(
        "log_softmax_half_sum",
        "Functional.log_softmax",
        [tensor(2, 2000, low=-0.5, high=0.5, dtype=BF16), number(-1)],
        log_softmax_in_half,
    ),
    Fault(
        "sum_in_half",
        "Torch.sum",
        [tensor(2, 5000, low=0.0, high=1.0, dtype=FP16), number(-1)],
        lambda _right, x, dim: sequential(x),
    ),
    Fault(
        "sum_without_the_tail",
        "Torch.sum",
        [tensor(4, 1030), number(-1)],
        lambda right, x, dim: right(x[..., :1024], dim),
    ),
    Fault(
        "mean_of_one_less",
        "Torch.mean",
        [tensor(4, 30, low=1.0, high=2.0), number(-1)],
        lambda right, x, dim: x.sum(dim) / (x.shape[dim] - 1),
    ),
    Fault(
        "matmul_half_accumulation",
        "Torch.matmul",
        [tensor(4, 2048, low=0.0, dtype=FP16), tensor(2048, 3, low=0.0, dtype=FP16)],
        half_accumulated_matmul,
    ),
    Fault(
        "matmul_without_the_tail",
        "Torch.matmul",
        [tensor(4, 70), tensor(70, 5)],
        lambda right, a, b: right(a[:, :64], b[:64]),
    ),
    Fault(
        "bmm_overflows_inside",
        "Torch.bmm",
        [tensor(2, 3, 64, low=50.0, high=60.0, dtype=FP16), tensor(2, 64, 3, low=0.05, high=0.1, dtype=FP16)],
        lambda right, a, b: right(a * 2048, b) / 2048,
    ),
    Fault(
        "linear_without_bias",
        "Functional.linear",
        [tensor(4, 8), tensor(5, 8), tensor(5)],
        lambda right, x, weight, bias: right(x, weight),
    ),
    Fault(
        "addmm_ignores_beta",
        "Torch.addmm",
        [tensor(3, 4), tensor(3, 5), tensor(5, 4)],
        lambda right, c, a, b, **_: right(c, a, b),
        kwargs={"beta": number(0.5)},
    ),
    Fault(
        "gelu_of_another_formula",
        "Functional.gelu",
        [tensor(64, low=-3.0, high=3.0)],
        lambda _right, x, **_: x * torch.sigmoid(1.702 * x),
    ),
    Fault(
        "silu_gradient",
        "Functional.silu",
        [tensor(8, 16, grad=True)],
        backward_as(F.silu, silu_gradient),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "relu_gradient_of_negatives",
        "Functional.relu",
        [tensor(8, 16, grad=True)],
        backward_as(F.relu, lambda x, gradient: gradient),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "softmax_gradient_without_sum",
        "Functional.softmax",
        [tensor(8, 16, grad=True), number(-1)],
        backward_as(F.softmax, softmax_gradient),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "tanh_gradient_sign",
        "Torch.tanh",
        [tensor(8, 16, grad=True)],
        backward_as(torch.tanh, lambda x, gradient: gradient * (torch.tanh(x).square() - 1)),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "sqrt_gradient_factor",
        "Torch.sqrt",
        [tensor(8, 16, low=0.5, high=2.0, grad=True)],
        backward_as(torch.sqrt, lambda x, gradient: gradient / torch.sqrt(x)),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "gradient_is_zero",
        "Torch.square",
        [tensor(8, 16, grad=True)],
        backward_as(torch.square, lambda x, gradient: torch.zeros_like(x)),
        gradient=GRADIENT,
        direction="backward",
    ),
    Fault(
        "sum_of_nothing_is_nan",
        "Torch.sum",
        [tensor(0, 3), number(0)],
        lambda _right, x, dim: torch.full((3,), math.nan),
    ),
    Fault(
        "cumsum_off_by_one",
        "Torch.cumsum",
        [tensor(4, 20), number(-1)],
        lambda right, x, dim: right(x, dim) - x,
    ),
    Fault(
        "argmax_off_by_one",
        "Torch.argmax",
        [tensor(4, 20), number(-1)],
        lambda right, x, dim: right(x, dim) + 1,
    ),
    Fault(
        "topk_gives_the_smallest",
        "Torch.topk",
        [tensor(3, 20), number(4)],
        lambda right, x, k: right(x, k, largest=False),
    ),
    Fault(
        "sort_is_not_sorted",
        "Torch.sort",
        [tensor(3, 20)],
        lambda _right, x: (x, torch.arange(20).expand(3, 20)),
    ),
    Fault(
        "gather_off_by_one",
        "Torch.gather",
        [tensor(4, 9), number(1), ints(4, 5, low=0, high=7)],
        lambda right, x, dim, index: right(x, dim, index + 1),
    ),
    Fault(
        "embedding_of_the_next_row",
        "Functional.embedding",
        [ints(4, 5, low=0, high=18), tensor(20, 8)],
        lambda right, index, weight, *_: right(index + 1, weight),
    ),
    Fault(
        "product_is_integer",
        "Torch.mul",
        [tensor(12, low=-4.0, high=4.0), ints(12, low=1, high=5)],
        lambda _right, x, y: x.long() * y,
    ),
    Fault(
        "result_in_the_wrong_half",
        "Torch.add",
        [tensor(12, dtype=FP16), tensor(12, dtype=FP16)],
        lambda right, x, y: right(x, y).to(torch.int32),
    ),
    Fault(
        "sum_of_integers_wraps",
        "Torch.sum",
        [tensor(40, low=1e8, high=2e8, dtype="torch.float32")],
        lambda _right, x: x.to(torch.int32).sum(dtype=torch.int32).float(),
    ),
    Fault(
        "division_truncates",
        "Torch.div",
        [tensor(30, low=1.0, high=9.0), tensor(30, low=1.0, high=3.0)],
        lambda right, x, y: right(x, y, rounding_mode="trunc"),
    ),
    Fault(
        "rsqrt_without_newton",
        "Torch.rsqrt",
        [tensor(40, low=0.001, high=0.1)],
        crude_rsqrt,
    ),
    Fault(
        "clamp_without_maximum",
        "Torch.clamp",
        [tensor(40), number(-0.5), number(0.5)],
        lambda right, x, low, high: right(x, low),
    ),
    Fault(
        "where_swaps",
        "Torch.where",
        [tensor(40, low=0, high=1, dtype="torch.bool"), tensor(40), tensor(40)],
        lambda right, condition, x, y: right(condition, y, x),
    ),
    Fault(
        "masked_fill_of_the_others",
        "Tensor.masked_fill",
        [tensor(40), tensor(40, low=0, high=1, dtype="torch.bool"), number(0.0)],
        lambda right, x, mask, value: right(x, ~mask, value),
    ),
    Fault(
        "pooling_of_the_mean",
        "Functional.max_pool2d",
        [tensor(1, 2, 8, 8), number(2)],
        lambda _right, x, kernel, *_, **__: F.avg_pool2d(x, kernel),
    ),
    Fault(
        "batch_norm_of_wrong_variance",
        "Functional.batch_norm",
        [tensor(2, 3, 2, 2), None, None, tensor(3), tensor(3), number(True), number(0.1), number(1e-5)],
        lambda right, x, *rest: right(x, *rest) * math.sqrt((x.shape[0] * 4 - 1) / (x.shape[0] * 4)),
    ),
    Fault(
        "cross_entropy_of_the_sum",
        "Functional.cross_entropy",
        [tensor(6, 5), ints(6, low=0, high=4)],
        lambda right, x, target: right(x, target, reduction="sum") / (x.shape[0] + 1),
    ),
    Fault(
        "convolution_without_last_channel",
        "Functional.conv2d",
        [tensor(1, 3, 6, 6, dtype=FP16), tensor(2, 3, 3, 3, dtype=FP16)],
        lambda right, x, weight, *_: right(x[:, :2], weight[:, :2]),
    ),
    Fault(
        "cat_in_another_order",
        "Torch.cat",
        [[tensor(2, 3), tensor(4, 3)]],
        lambda right, parts: right(parts[::-1]),
    ),
    Fault(
        "transpose_does_nothing",
        "Torch.transpose",
        [tensor(3, 4), number(0), number(1)],
        lambda _right, x, one, other: x,
    ),
    Fault(
        "causal_mask_off_by_one",
        "Functional.scaled_dot_product_attention",
        [tensor(1, 2, 6, 8), tensor(1, 2, 6, 8), tensor(1, 2, 6, 8)],
        causal_attention_off_by_one,
        kwargs={"is_causal": number(True)},
    ),
    Fault(
        "infinity_is_clipped",
        "Torch.exp",
        [tensor(30, low=-5.0, high=9.0, dtype=FP16)],
        lambda right, x: right(x).clamp(max=1000.0),
    ),
    Fault(
        "erf_of_low_degree",
        "Torch.erf",
        [tensor(50, low=-2.0, high=2.0)],
        lambda _right, x: torch.tanh(1.2 * x),
    ),
    Fault(
        "pow_in_half",
        "Torch.pow",
        [tensor(30, low=3.0, high=9.0, dtype=BF16), number(5)],
        lambda _right, x, y: torch.exp(torch.log(x) * y),
    ),
    Fault(
        "comparison_of_rounded",
        "Torch.gt",
        [tensor(200, low=-4.0, high=4.0), tensor(200, low=-4.0, high=4.0)],
        lambda right, x, y: right(x.round(), y.round()),
    ),
]


def dump_of(fault: Fault) -> dict[str, Any]:
    """The dump.json of one call."""
    name = f"{fault.api}.0"
    data: dict[str, Any] = {
        f"{name}.forward": {
            "input_args": list(fault.args),
            "input_kwargs": dict(fault.kwargs),
            "output": [],
        }
    }
    if fault.gradient is not None:
        data[f"{name}.backward"] = {"input": [dict(fault.gradient)], "output": [None]}
    return {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}


def installed(fault: Fault) -> tuple[Any, str, Any]:
    """Owner, attribute and function that is wrong in the dtype of the dump."""
    kind, name = fault.api.split(".")
    owner = {"Functional": F, "Tensor": torch.Tensor, "Torch": torch}[kind]
    right = getattr(owner, name)
    dtype = next(
        getattr(torch, arg["dtype"].removeprefix("torch."))
        for arg in _flat(fault.args)
        if isinstance(arg, dict) and arg.get("dtype", "torch.int64") in (FP32, FP16, BF16)
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        floats = [arg for arg in _flat(args) if isinstance(arg, Tensor) and arg.is_floating_point()]
        if floats and floats[0].dtype is dtype and not function.is_inside:  # type: ignore[attr-defined]
            function.is_inside = True  # type: ignore[attr-defined]
            try:
                return fault.wrong(right, *args, **kwargs)
            finally:
                function.is_inside = False  # type: ignore[attr-defined]
        return right(*args, **kwargs)

    function.is_inside = False  # type: ignore[attr-defined]
    return owner, name, function


def _flat(values: Any) -> list[Any]:
    return [
        leaf for value in values for leaf in (_flat(value) if isinstance(value, (list, tuple)) else [value])
    ]
