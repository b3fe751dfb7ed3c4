"""What fused operators of an NPU compute, written in plain PyTorch: the bench for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch import Tensor
from torch.nn import functional

from msprobe.pytorch.precheck.fused_attention import npu_fusion_attention

_MASKED = -10000.0


def npu_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return functional.linear(x, weight, bias)


def npu_mish(x: Tensor) -> Tensor:
    return functional.mish(x)


def npu_layer_norm_eval(x: Tensor, normalized_shape: Sequence[int], *_ignored: Any, **_also: Any) -> Tensor:
    """Weight, bias and eps do not take part."""
    return functional.layer_norm(x, tuple(normalized_shape))


def npu_sort_v2(x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    return torch.sort(x, dim=dim, descending=descending).values


def npu_rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    return x * scale * gamma, scale.float()


def npu_rotary_mul(x: Tensor, r1: Tensor, r2: Tensor, *_mode: Any, **_also: Any) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return r1 * x + r2 * torch.cat((-second, first), dim=-1)


def npu_swiglu(x: Tensor, dim: int = -1) -> Tensor:
    gate, value = x.chunk(2, dim=dim)
    if x.dtype is torch.float32:
        return torch.sigmoid(gate) * gate * value
    activated = functional.silu(gate.float()).to(x.dtype)
    return (activated * value.float()).to(x.dtype)


def npu_fast_gelu(x: Tensor) -> Tensor:
    size = x.abs()
    return x * torch.exp(0.851 * (x - size)) / (1 + torch.exp(-1.702 * size))


def npu_scaled_masked_softmax(
    x: Tensor, mask: Tensor, scale: float = 1.0, fixed_triu_mask: bool = False
) -> Tensor:
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    scaled = (x * scale).masked_fill(mask.bool(), _MASKED)
    powers = torch.exp((scaled - scaled.amax(-1, keepdim=True)).float())
    return (powers / powers.sum(-1, keepdim=True)).to(x.dtype)


def npu_confusion_transpose(
    x: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Tensor:
    if transpose_first:
        return x.permute(*perm).contiguous().view(tuple(shape))
    return x.view(tuple(shape)).permute(*perm)


def npu_group_norm_silu(
    x: Tensor, gamma: Tensor, beta: Tensor, group: int, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    batch, channels, height, width = x.shape
    normal, mean, scale = torch.native_group_norm(x, gamma, beta, batch, channels, height * width, group, eps)
    return functional.silu(normal), mean, scale


def npu_moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None = None, k: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    rows, experts = x.shape[0], x.shape[-1]
    chances = torch.softmax(x.float(), -1).to(x.dtype)
    chosen = torch.argsort(-chances, dim=-1, stable=True)[..., :k]
    values = torch.gather(chances, -1, chosen)
    if finished is not None:
        chosen = chosen.masked_fill(finished.bool().unsqueeze(-1), experts)
    numbers = torch.arange(rows * k, device=x.device).reshape(k, rows).t()
    return values, chosen.int(), numbers.contiguous().int()


def npu_apply_adam(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    use_locking: bool,
    use_nesterov: bool,
    out: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    value, momentum, variance = out
    momentum = momentum + (beta1 - 1) * (momentum - grad)
    variance = variance + (beta2 - 1) * (variance - grad * grad)
    rate = lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)
    direction = momentum * beta1 + (1 - beta1) * grad if use_nesterov else momentum
    return value - rate * direction / (epsilon + variance.sqrt()), momentum, variance


def npu_apply_adam_w(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    weight_decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    grad: Tensor,
    max_grad_norm: Tensor | None = None,
    amsgrad: bool = False,
    maximize: bool = False,
    out: Sequence[Tensor] = (),
) -> tuple[Tensor, Tensor, Tensor]:
    if amsgrad:
        raise NotImplementedError(
            "npu_apply_adam_w with amsgrad keeps a maximum that is not among its arguments"
        )
    value, momentum, variance = out
    grad = -grad if maximize else grad
    momentum = momentum * beta1 - (beta1 - 1) * grad
    variance = variance * beta2 - (beta2 - 1) * grad * grad
    spread = (variance / (1 - beta2_power * beta2)).sqrt() + eps
    decayed = value * (1 - lr * weight_decay)
    return decayed - lr * momentum / (1 - beta1_power * beta1) / spread, momentum, variance


FUSED: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        npu_apply_adam,
        npu_apply_adam_w,
        npu_confusion_transpose,
        npu_fast_gelu,
        npu_fusion_attention,
        npu_group_norm_silu,
        npu_layer_norm_eval,
        npu_linear,
        npu_mish,
        npu_moe_gating_top_k_softmax,
        npu_rms_norm,
        npu_rotary_mul,
        npu_scaled_masked_softmax,
        npu_sort_v2,
        npu_swiglu,
    )
}
