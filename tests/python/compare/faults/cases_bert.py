"""Faults in BERT."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from . import inject
from .faults import AT_INPUT, DIVERGED, Case, Expected, backward_fault, fault
from .inject import kernel, noisy, scaled, through_bfloat16, with_nan, without_channel

LAYER = "bert.encoder.layer"
ATTENTION = "transformers.models.bert.modeling_bert:eager_attention_forward"


def _without_bias(module: Any, _: Any) -> Any:
    return lambda x: F.linear(x, module.weight)


def _in_half(module: Any, _: Any) -> Any:
    """Computed in 16 bits and given back in 32."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = F.linear(x.half(), module.weight.half(), module.bias.half()).float()
        return y

    return forward


def _swapped(path: str) -> Any:
    """Query and key have changed places in the attention of one module."""

    def make(model: nn.Module, original: Any) -> Any:
        chosen = model.get_submodule(path)

        def attention(module: Any, query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            pair = (key, query) if module is chosen else (query, key)
            return original(module, *pair, *args, **kwargs)

        return attention

    return make


def _without_mask(module: Any, original: Any) -> Any:
    return lambda hidden, attention_mask=None, *args, **kwargs: original(hidden, None, *args, **kwargs)


def _late_positions(module: Any, original: Any) -> Any:
    """Positions count from one."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        length = kwargs["input_ids"].shape[1]
        kwargs["position_ids"] = module.position_ids[:, 1 : length + 1]
        return original(*args, **kwargs)

    return forward


def _tanh_gelu(module: Any, _: Any) -> Any:
    return lambda x: F.gelu(x, approximate="tanh")


def _other_seed(module: Any, original: Any) -> Any:
    def forward(x: torch.Tensor) -> Any:
        torch.manual_seed(4711)
        return original(x)

    return forward


def _unused_calls(module: Any, original: Any) -> Any:
    """Calls whose results nobody uses; the numbers of later calls shift."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        y = original(*args, **kwargs)
        for _ in range(2):
            torch.add(F.linear(y, module.LayerNorm.weight.diag()), 1.0)
        return y

    return forward


def _first_two_tokens(ids: torch.Tensor) -> torch.Tensor:
    ids = ids.clone()
    ids[0, :2] = 5
    return ids


unused_calls = inject.forward_of("bert.embeddings", _unused_calls)


def cases() -> list[Case]:
    forward_of = inject.forward_of
    return [
        fault(
            "bert_scale_dense",
            "bert",
            kernel("addmm", scaled(), f"{LAYER}.1.output.dense"),
            f"{LAYER}.1.output.dense",
            "linear",
        ),
        fault(
            "bert_bf16_query",
            "bert",
            kernel("addmm", through_bfloat16, f"{LAYER}.0.attention.self.query"),
            f"{LAYER}.0.attention.self.query",
            "linear",
        ),
        fault(
            "bert_noise_gelu",
            "bert",
            kernel("gelu", noisy(), f"{LAYER}.1.intermediate"),
            f"{LAYER}.1.intermediate.intermediate_act_fn",
            "gelu",
        ),
        fault(
            "bert_zero_channel_layernorm",
            "bert",
            kernel("native_layer_norm", without_channel(), f"{LAYER}.0.output.LayerNorm", output=0),
            f"{LAYER}.0.output.LayerNorm",
            "layer_norm",
        ),
        fault(
            "bert_scale_softmax",
            "bert",
            kernel("_softmax", scaled(), f"{LAYER}.1.attention.self"),
            f"{LAYER}.1.attention.self",
            "softmax",
        ),
        fault(
            "bert_bf16_scores",
            "bert",
            kernel("bmm", through_bfloat16, f"{LAYER}.2.attention.self", nth=0),
            f"{LAYER}.2.attention.self",
            "matmul:0",
        ),
        fault(
            "bert_dropped_bias",
            "bert",
            forward_of(f"{LAYER}.2.attention.output.dense", _without_bias),
            f"{LAYER}.2.attention.output.dense",
            "linear",
        ),
        fault(
            "bert_swapped_query_key",
            "bert",
            inject.function(ATTENTION, _swapped(f"{LAYER}.1.attention.self")),
            f"{LAYER}.1.attention.self",
            also=("matmul:0", "transpose:3"),
        ),
        fault(
            "bert_layernorm_epsilon",
            "bert",
            inject.setting(f"{LAYER}.1.output.LayerNorm", eps=1e-3),
            f"{LAYER}.1.output.LayerNorm",
            "layer_norm",
        ),
        fault(
            "bert_ignored_mask",
            "bert",
            forward_of(f"{LAYER}.1.attention.self", _without_mask),
            f"{LAYER}.1.attention.self",
            also=("softmax",),
            is_reshaped=True,
        ),
        fault(
            "bert_late_positions",
            "bert",
            forward_of("bert.embeddings", _late_positions),
            "bert.embeddings.position_embeddings",
            also=("embedding",),
            levels=("mix", "L0"),
        ),
        fault(
            "bert_tanh_gelu",
            "bert",
            forward_of(f"{LAYER}.0.intermediate.intermediate_act_fn", _tanh_gelu),
            f"{LAYER}.0.intermediate.intermediate_act_fn",
            "gelu",
        ),
        fault(
            "bert_dropout_seed",
            "bert",
            forward_of(f"{LAYER}.1.output.dropout", _other_seed),
            f"{LAYER}.1.output.dropout",
            "dropout",
            train=True,
        ),
        fault(
            "bert_nan_gelu",
            "bert",
            kernel("gelu", with_nan, f"{LAYER}.1.intermediate"),
            f"{LAYER}.1.intermediate.intermediate_act_fn",
            "gelu",
        ),
        fault(
            "bert_half_dense",
            "bert",
            forward_of(f"{LAYER}.2.output.dense", _in_half),
            f"{LAYER}.2.output.dense",
            "linear",
            also=("half:0",),
            is_reshaped=True,
        ),
        fault(
            "bert_missing_tanh",
            "bert",
            inject.replaced("bert.pooler.activation", nn.Identity),
            "bert.pooler.activation",
            is_reshaped=True,
        ),
        fault(
            "bert_scaled_loss",
            "bert",
            kernel("nll_loss_forward", scaled(), output=0),
            "",
            "cross_entropy",
        ),
        fault(
            "bert_shifted_then_scaled",
            "bert",
            inject.both(unused_calls, kernel("addmm", scaled(), f"{LAYER}.2.intermediate.dense")),
            f"{LAYER}.2.intermediate.dense",
            "linear",
            is_reshaped=True,
        ),
        fault(
            "bert_wrong_checkpoint",
            "bert",
            inject.parameter(f"{LAYER}.0.attention.self.value.weight", scaled(1.05)),
            f"{LAYER}.0.attention.self.value",
            "linear",
            # A parameter is something that is put in: both answers are right.
            status=DIVERGED + AT_INPUT,
        ),
        Case(
            "bert_other_data",
            "bert",
            inject.batch_key("input_ids", _first_two_tokens),
            Expected(status=AT_INPUT),
        ),
        backward_fault(
            "bert_backward_gelu",
            "bert",
            kernel("gelu_backward", scaled(), nth=1),
            f"{LAYER}.1.intermediate.intermediate_act_fn",
            "gelu",
        ),
        backward_fault(
            "bert_backward_layernorm",
            "bert",
            kernel("native_layer_norm_backward", scaled(), nth=3, output=0),
            f"{LAYER}.1.attention.output.LayerNorm",
            "layer_norm",
        ),
        backward_fault(
            "bert_backward_softmax_bf16",
            "bert",
            kernel("_softmax_backward_data", through_bfloat16, nth=2),
            f"{LAYER}.0.attention.self",
            "softmax",
        ),
        backward_fault(
            "bert_zeroed_gradient",
            "bert",
            inject.gradient_inside(f"{LAYER}.1.attention.output.dense", without_channel()),
            f"{LAYER}.1.attention.output.dense",
        ),
    ]
