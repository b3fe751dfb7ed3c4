"""Pairs in which nothing is wrong."""

from __future__ import annotations

from typing import Any

from torch import nn

from . import inject
from .cases_bert import unused_calls
from .cases_own import reordered
from .faults import ROUNDING, Case, clean


def _up_first(module: Any, _: Any) -> Any:
    def forward(x: Any) -> Any:
        up = module.up_proj(x)
        return module.down_proj(module.act_fn(module.gate_proj(x)) * up)

    return forward


def _with_identity(model: nn.Module, batch: Any) -> Any:
    """A module that does nothing is put into the chain."""
    model.set_submodule(
        "transformer.drop", nn.Sequential(model.get_submodule("transformer.drop"), nn.Identity())
    )
    return inject.nothing(model, batch)


def cases() -> list[Case]:
    return [
        clean("clean_bert", "bert"),
        clean("clean_bert_dropout", "bert", train=True),
        clean("clean_gpt2", "gpt2"),
        clean("clean_gpt2_two_steps", "gpt2", steps=2),
        clean("clean_llama", "llama"),
        clean("clean_convnet", "convnet", train=True),
        clean("clean_former", "former"),
        clean("clean_bert_threads", "bert_wide", threads=2, status=ROUNDING),
        clean("clean_former_threads", "former_wide", threads=2, status=ROUNDING),
        clean("clean_bert_sdpa", "bert", target_model="bert_sdpa", status=ROUNDING, is_reshaped=True),
        clean("clean_gpt2_sdpa", "gpt2", target_model="gpt2_sdpa", status=ROUNDING, is_reshaped=True),
        clean("clean_llama_sdpa", "llama", target_model="llama_sdpa", status=ROUNDING, is_reshaped=True),
        clean("clean_bert_shifted", "bert", unused_calls, status=ROUNDING, is_reshaped=True),
        clean(
            "clean_llama_reordered",
            "llama",
            inject.forward_of("model.layers.1.mlp", _up_first),
            status=ROUNDING,
            is_reshaped=True,
        ),
        clean("clean_former_reordered", "former", reordered, status=ROUNDING, is_reshaped=True),
        clean("clean_gpt2_identity", "gpt2", _with_identity, status=ROUNDING, is_reshaped=True),
    ]
