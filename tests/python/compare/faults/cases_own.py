"""Faults in the two models written here."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from . import inject
from .faults import Case, backward_fault, fault
from .inject import kernel, scaled, through_bfloat16, with_nan, without_channel


def _negative(x: torch.Tensor) -> torch.Tensor:
    """The argument of the logarithm is no longer positive."""
    return torch.sub(torch.exp(x), 2.0)


def _zero_by_zero(module: Any, original: Any) -> Any:
    """One picture is divided by zero where it is zero."""

    def forward(images: torch.Tensor) -> torch.Tensor:
        largest = torch.amax(torch.abs(images), dim=(1, 2, 3), keepdim=True)
        keep = torch.ops.aten.ones_like.default(largest)
        torch.ops.aten.fill_.Scalar(torch.ops.aten.select.int(keep, 0, 2), 0.0)
        return torch.div(torch.ops.aten.mul.Tensor(images, keep), torch.ops.aten.mul.Tensor(largest, keep))

    return forward


def _wrong_dim(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(q, k.transpose(2, 3)) / q.shape[-1] ** 0.5
    return F.softmax(scores, dim=-2)


def _extra_norm(module: Any, original: Any) -> Any:
    """Somebody normalises once more."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = original(x)
        return F.layer_norm(y, y.shape[-1:])

    return forward


def _other_order(module: Any) -> Any:
    """The three projections, last one first: they do not depend on each other."""

    def project(x: torch.Tensor) -> Any:
        v = module.split(module.v(x))
        k = module.split(module.k(x))
        return module.split(module.q(x)), k, v

    return project


def reordered(model: nn.Module, batch: Any) -> Any:
    attention: Any = model.get_submodule("blocks.0.attention")
    attention.project = _other_order(attention)
    return inject.nothing(model, batch)


def cases() -> list[Case]:
    forward_of, setting = inject.forward_of, inject.setting
    return [
        fault(
            "conv_scale", "convnet", kernel("convolution", scaled(), "conv2"), "conv2", "conv2d", train=True
        ),
        fault(
            "conv_bf16_batchnorm",
            "convnet",
            inject.output_of("bn1", through_bfloat16),
            "bn1",
            train=True,
        ),
        fault(
            "conv_batchnorm_epsilon",
            "convnet",
            setting("bn2", eps=1e-2),
            "bn2",
            "batch_norm",
            train=True,
        ),
        fault(
            "conv_batchnorm_in_evaluation",
            "convnet",
            setting("bn1", training=False),
            "bn1",
            "batch_norm",
            train=True,
        ),
        fault("conv_off_by_one", "convnet", setting("crop", first=2), "crop", train=True),
        fault(
            "conv_leaky",
            "convnet",
            inject.replaced("act2", nn.LeakyReLU),
            "act2",
            train=True,
            is_reshaped=True,
        ),
        fault(
            "conv_zero_by_zero",
            "convnet",
            forward_of("normalise", _zero_by_zero),
            "normalise",
            also=("div:0",),
            train=True,
        ),
        fault(
            "conv_zero_channel",
            "convnet",
            kernel("convolution", without_channel(3, 1), "conv1"),
            "conv1",
            "conv2d",
            train=True,
        ),
        fault(
            "conv_scale_pool",
            "convnet",
            kernel("avg_pool2d", scaled(), "pool"),
            "pool",
            "avg_pool2d",
            train=True,
        ),
        backward_fault(
            "conv_weight_gradient",
            "convnet",
            kernel("convolution_backward", scaled(), nth=0, output=1),
            "conv2",
            "conv2d",
            train=True,
            parameters_grad=True,
        ),
        backward_fault(
            "conv_backward_pool",
            "convnet",
            kernel("avg_pool2d_backward", scaled(), nth=0),
            "pool",
            "avg_pool2d",
            train=True,
        ),
        fault(
            "former_log_of_negative",
            "former",
            setting("blocks.1.contrast", argument=_negative),
            "blocks.1.contrast",
            also=("sub:1", "log:0"),
            is_reshaped=True,
        ),
        fault(
            "former_swapped_subtraction",
            "former",
            setting("blocks.1.contrast", difference=lambda left, right: torch.sub(right, left)),
            "blocks.1.contrast",
            also=("sub:0",),
        ),
        fault(
            "former_softmax_over_queries",
            "former",
            setting("blocks.2.attention", weights=_wrong_dim),
            "blocks.2.attention",
            "softmax",
        ),
        fault(
            "former_nan_log",
            "former",
            kernel("log", with_nan, "blocks.0.contrast"),
            "blocks.0.contrast",
            "log",
        ),
        fault(
            "former_extra_norm",
            "former",
            forward_of("blocks.1.attention.out", _extra_norm),
            "blocks.1.attention.out",
            also=("layer_norm:0",),
            is_reshaped=True,
        ),
        fault(
            "former_reordered_then_scaled",
            "former",
            inject.both(reordered, kernel("addmm", scaled(), "blocks.1.attention.v")),
            "blocks.1.attention.v",
            "linear",
            is_reshaped=True,
        ),
        fault(
            "former_zero_channel_residual",
            "former",
            kernel("add", without_channel(), "blocks.1", nth=0),
            "blocks.1",
            "add:0",
        ),
        backward_fault(
            "former_backward_custom_function",
            "former",
            inject.gradient_inside("blocks.1.contrast.right", scaled()),
            "blocks.1.contrast.right",
        ),
    ]
