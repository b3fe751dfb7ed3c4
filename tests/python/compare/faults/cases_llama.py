"""Faults in LLaMA."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from . import inject
from .faults import Case, backward_fault, fault
from .inject import kernel, noisy, scaled, through_bfloat16, without_channel

LAYER = "model.layers"


def _swapped_gate(module: Any, _: Any) -> Any:
    def forward(x: torch.Tensor) -> Any:
        gate, up = module.gate_proj(x), module.up_proj(x)
        return module.down_proj(module.act_fn(up) * gate)

    return forward


def _other_way_round(module: Any, original: Any) -> Any:
    """Rotates backwards."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        cos, sin = original(*args, **kwargs)
        return cos, torch.ops.aten.neg.default(sin)

    return forward


def _in_double(module: Any, _: Any) -> Any:
    return lambda x: F.linear(x.double(), module.weight.double()).float()


def cases() -> list[Case]:
    forward_of = inject.forward_of
    return [
        fault(
            "llama_scale_down",
            "llama",
            kernel("mm", scaled(), f"{LAYER}.1.mlp.down_proj"),
            f"{LAYER}.1.mlp.down_proj",
            "linear",
        ),
        fault(
            "llama_bf16_key",
            "llama",
            kernel("mm", through_bfloat16, f"{LAYER}.1.self_attn.k_proj"),
            f"{LAYER}.1.self_attn.k_proj",
            "linear",
        ),
        fault(
            "llama_zero_channel_silu",
            "llama",
            kernel("silu", without_channel(), f"{LAYER}.0.mlp"),
            f"{LAYER}.0.mlp.act_fn",
            "silu",
        ),
        fault(
            "llama_noise_matmul",
            "llama",
            kernel("bmm", noisy(), f"{LAYER}.1.self_attn", nth=1),
            f"{LAYER}.1.self_attn",
            "matmul:1",
        ),
        fault(
            "llama_rmsnorm_epsilon",
            "llama",
            inject.setting(f"{LAYER}.2.input_layernorm", variance_epsilon=1e-2),
            f"{LAYER}.2.input_layernorm",
            "__add__",
        ),
        fault(
            "llama_scale_rsqrt",
            "llama",
            kernel("rsqrt", scaled(), f"{LAYER}.1.post_attention_layernorm"),
            f"{LAYER}.1.post_attention_layernorm",
            "rsqrt",
        ),
        fault(
            "llama_rope_backwards",
            "llama",
            forward_of("model.rotary_emb", _other_way_round),
            "model.rotary_emb",
        ),
        fault(
            "llama_swapped_gate",
            "llama",
            forward_of(f"{LAYER}.0.mlp", _swapped_gate),
            f"{LAYER}.0.mlp",
            is_reshaped=True,
        ),
        fault(
            "llama_double_projection",
            "llama",
            forward_of(f"{LAYER}.1.self_attn.o_proj", _in_double),
            f"{LAYER}.1.self_attn.o_proj",
            "linear",
            also=("double:0",),
            # What leaves the module is the same but for rounding.
            levels=("mix", "L1"),
            is_reshaped=True,
        ),
        fault(
            "llama_missing_norm",
            "llama",
            inject.replaced(f"{LAYER}.1.post_attention_layernorm", nn.Identity),
            f"{LAYER}.1.post_attention_layernorm",
            is_reshaped=True,
        ),
        fault(
            "llama_bf16_norm_output",
            "llama",
            inject.output_of("model.norm", through_bfloat16),
            "model.norm",
        ),
        backward_fault(
            "llama_backward_silu",
            "llama",
            kernel("silu_backward", scaled(), nth=1),
            f"{LAYER}.1.mlp.act_fn",
            "silu",
        ),
        backward_fault(
            "llama_backward_hook",
            "llama",
            inject.backward_hook(f"{LAYER}.1.mlp.down_proj", scaled()),
            f"{LAYER}.1.mlp.down_proj",
            is_reshaped=True,
        ),
        backward_fault(
            "llama_backward_gradient_in_norm",
            "llama",
            inject.gradient_inside(f"{LAYER}.2.input_layernorm", scaled()),
            f"{LAYER}.2.input_layernorm",
            # It returns its argument, so that its gradient is taken where the module's is.
            also=("to:0",),
        ),
    ]
