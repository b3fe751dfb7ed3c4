"""Faults in GPT-2, whose linear layers are ``torch.addmm``."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from . import inject
from .faults import Case, backward_fault, fault
from .inject import aten, kernel, noisy, scaled, through_bfloat16, without_channel

BLOCK = "transformer.h"
ATTENTION = "transformers.models.gpt2.modeling_gpt2:eager_attention_forward"


def _transposed_weight(module: Any, _: Any) -> Any:
    """The weight is square, so nobody complains."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        flat = x.view(-1, x.shape[-1])
        return torch.addmm(module.bias, flat, aten.t.default(module.weight)).view(*x.shape[:-1], -1)

    return forward


def _in_one(path: str, change: Any) -> Any:
    """The attention of one module goes through ``change``, which is given the original and its arguments."""

    def make(model: nn.Module, original: Any) -> Any:
        chosen = model.get_submodule(path)

        def attention(module: Any, *args: Any, **kwargs: Any) -> Any:
            if module is not chosen:
                return original(module, *args, **kwargs)
            return change(original, module, *args, **kwargs)

        return attention

    return make


def _sees_the_future(original: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, **more: Any) -> Any:
    """The causal mask is off by one."""
    length = mask.shape[-1]
    ahead = aten.triu.default(aten.ones.default([length, length], dtype=mask.dtype), 2)
    off = aten.expand.default(aten.mul.Scalar(ahead, torch.finfo(mask.dtype).min), mask.shape)
    return original(module, q, k, v, off, **more)


def _untransposed(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    """Heads and positions are not exchanged before they are read as one row: right shape, wrong elements."""
    mixed, weights = original(module, *args, **kwargs)
    by_head = aten.clone.default(aten.transpose.int(mixed, 1, 2), memory_format=torch.contiguous_format)
    return aten.view.default(by_head, mixed.shape), weights


def _other_seed(module: Any, original: Any) -> Any:
    def forward(x: torch.Tensor) -> Any:
        torch.manual_seed(99)
        return original(x)

    return forward


def cases() -> list[Case]:
    forward_of, function = inject.forward_of, inject.function
    return [
        fault(
            "gpt2_scale_fc",
            "gpt2",
            kernel("addmm", scaled(), f"{BLOCK}.1.mlp.c_fc"),
            f"{BLOCK}.1.mlp.c_fc",
            "addmm",
        ),
        fault(
            "gpt2_bf16_projection",
            "gpt2",
            kernel("addmm", through_bfloat16, f"{BLOCK}.0.attn.c_proj"),
            f"{BLOCK}.0.attn.c_proj",
            "addmm",
        ),
        fault(
            "gpt2_noise_layernorm",
            "gpt2",
            kernel("native_layer_norm", noisy(), f"{BLOCK}.1.ln_1", output=0),
            f"{BLOCK}.1.ln_1",
            "layer_norm",
        ),
        fault(
            "gpt2_zero_channel_tanh",
            "gpt2",
            kernel("tanh", without_channel(9), f"{BLOCK}.2.mlp.act"),
            f"{BLOCK}.2.mlp.act",
            "tanh",
        ),
        fault(
            "gpt2_scale_embedding",
            "gpt2",
            kernel("embedding", scaled(), "transformer.wte"),
            "transformer.wte",
            "embedding",
        ),
        fault(
            "gpt2_transposed_weight",
            "gpt2",
            forward_of(f"{BLOCK}.1.attn.c_proj", _transposed_weight),
            f"{BLOCK}.1.attn.c_proj",
            "addmm",
        ),
        fault(
            "gpt2_mask_off_by_one",
            "gpt2",
            function(ATTENTION, _in_one(f"{BLOCK}.1.attn", _sees_the_future)),
            f"{BLOCK}.1.attn",
            also=("__add__:0",),
        ),
        fault(
            "gpt2_noncontiguous",
            "gpt2",
            function(ATTENTION, _in_one(f"{BLOCK}.1.attn", _untransposed)),
            f"{BLOCK}.1.attn",
            also=("reshape:0",),
            # Statistics do not depend on the order of elements: who reads them shows it first.
            in_statistics=f"{BLOCK}.1.attn.c_proj",
        ),
        fault(
            "gpt2_dropout_seed",
            "gpt2",
            forward_of(f"{BLOCK}.0.mlp.dropout", _other_seed),
            f"{BLOCK}.0.mlp.dropout",
            "dropout",
            train=True,
        ),
        fault(
            "gpt2_second_step",
            "gpt2",
            kernel("addmm", scaled(), f"{BLOCK}.0.mlp.c_proj"),
            f"{BLOCK}.0.mlp.c_proj",
            "addmm",
            steps=2,
            faulty_from=1,
            step=1,
        ),
        fault(
            "gpt2_output_of_mlp",
            "gpt2",
            inject.output_of(f"{BLOCK}.2.mlp", scaled()),
            f"{BLOCK}.2.mlp",
        ),
        backward_fault(
            "gpt2_backward_fc",
            "gpt2",
            inject.gradient_inside(f"{BLOCK}.1.mlp.c_fc", scaled()),
            f"{BLOCK}.1.mlp.c_fc",
        ),
        backward_fault(
            "gpt2_backward_tensor_hook",
            "gpt2",
            inject.gradient_hook(f"{BLOCK}.1.mlp", scaled()),
            f"{BLOCK}.1.mlp",
        ),
        backward_fault(
            "gpt2_backward_tanh",
            "gpt2",
            kernel("tanh_backward", noisy(), nth=0),
            f"{BLOCK}.2.mlp.act",
            "tanh",
        ),
    ]
