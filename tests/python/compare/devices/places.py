"""Where faults are put in each of the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..faults.inject import Injection, aten
from .changes import other_positions, restarted, shifted_patches


@dataclass(frozen=True)
class Place:
    """One call of a kernel in a module, and the function it is recorded as."""

    path: str
    kernel: str = "linear"
    nth: int = 0
    dim: int = -1

    @property
    def api(self) -> str:
        name = "conv2d" if self.kernel == "convolution" else self.kernel
        return f"{name}:{self.nth}"


@dataclass(frozen=True)
class Places:
    """For each kind of fault the places it may be in; every dtype has one of them."""

    scale: tuple[Place, ...]
    zero_channel: tuple[Place, ...]
    epsilon: tuple[str, ...]
    rolled: tuple[Place, ...]
    gradient: tuple[Place, ...]
    weight_gradient: tuple[Place, ...]
    norm: str
    heads: tuple[str, ...] = ()
    missing_bias: tuple[Place, ...] = ()
    stale_cache: tuple[str, ...] = ()
    positions: tuple[str, Injection] | None = None


def _decoder(
    layer: str = "model.layers", mlp: tuple[str, str, str] | None = ("gate_proj", "up_proj", "down_proj")
) -> dict[str, Any]:
    """Those built like LLaMA; without an ``mlp`` faults are in the attention."""
    one = f"{layer}.1.self_attn"
    zero = f"{layer}.0.self_attn"
    gate, up, down = (f"{{}}.mlp.{name}" for name in mlp) if mlp else ("{}.self_attn.q_proj",) * 3
    return {
        "scale": (Place(down.format(f"{layer}.1")), Place(f"{zero}.v_proj")),
        "zero_channel": (Place(f"{zero}.v_proj"), Place(up.format(f"{layer}.1"))),
        "epsilon": (f"{layer}.1.post_attention_layernorm", f"{layer}.0.input_layernorm"),
        "rolled": (Place(f"{zero}.o_proj"), Place(down.format(f"{layer}.1") if mlp else f"{one}.o_proj")),
        "gradient": (Place(up.format(f"{layer}.0")), Place(f"{one}.v_proj")),
        "weight_gradient": (Place(gate.format(f"{layer}.1")), Place(f"{zero}.o_proj")),
        "norm": "__add__",
        "heads": (one, zero),
        "stale_cache": (one, zero),
        "positions": ("model.rotary_emb", other_positions("model.rotary_emb", 1, restarted)),
    }


def _gpt2() -> Places:
    layer = "transformer.h"

    def place(path: str) -> Place:
        return Place(f"{layer}.{path}", "addmm")

    return Places(
        scale=(place("1.mlp.c_proj"), place("0.attn.c_attn")),
        zero_channel=(place("0.mlp.c_fc"), place("1.attn.c_proj")),
        epsilon=(f"{layer}.1.ln_2", f"{layer}.0.ln_1"),
        rolled=(place("0.attn.c_proj"), place("1.mlp.c_proj")),
        gradient=(place("0.mlp.c_fc"), place("1.attn.c_attn")),
        weight_gradient=(place("1.mlp.c_proj"), place("0.attn.c_proj")),
        norm="layer_norm",
        heads=(f"{layer}.1.attn", f"{layer}.0.attn"),
        missing_bias=(place("0.mlp.c_proj"), place("1.attn.c_attn")),
        stale_cache=(f"{layer}.1.attn", f"{layer}.0.attn"),
        positions=("transformer.wpe", other_positions("transformer.wpe", 0, restarted)),
    )


def _bert() -> Places:
    layer = "bert.encoder.layer"

    def place(path: str) -> Place:
        return Place(f"{layer}.{path}")

    positions = "bert.embeddings.position_embeddings"
    return Places(
        scale=(place("1.output.dense"), place("0.attention.self.value")),
        zero_channel=(place("0.intermediate.dense"), place("1.attention.output.dense")),
        epsilon=(f"{layer}.1.attention.output.LayerNorm", f"{layer}.0.output.LayerNorm"),
        rolled=(place("0.attention.output.dense"), place("1.output.dense")),
        gradient=(place("0.intermediate.dense"), place("1.attention.self.value")),
        weight_gradient=(place("1.output.dense"), place("0.attention.self.value")),
        norm="layer_norm",
        heads=(f"{layer}.1.attention.self", f"{layer}.0.attention.self"),
        missing_bias=(place("0.output.dense"), place("1.attention.self.value")),
        positions=(positions, other_positions(positions, 0, restarted)),
    )


def _t5() -> Places:
    encoder, decoder = "encoder.block", "decoder.block"
    bias = f"{encoder}.0.layer.0.SelfAttention.relative_attention_bias"
    return Places(
        scale=(
            Place(f"{encoder}.1.layer.1.DenseReluDense.wo"),
            Place(f"{decoder}.0.layer.0.SelfAttention.v"),
        ),
        zero_channel=(
            Place(f"{decoder}.0.layer.1.EncDecAttention.v"),
            Place(f"{encoder}.1.layer.1.DenseReluDense.wo"),
        ),
        epsilon=(f"{encoder}.1.layer.1.layer_norm", f"{decoder}.1.layer.2.layer_norm"),
        rolled=(
            Place(f"{encoder}.0.layer.0.SelfAttention.o"),
            Place(f"{decoder}.1.layer.2.DenseReluDense.wo"),
        ),
        gradient=(
            Place(f"{encoder}.1.layer.1.DenseReluDense.wi"),
            Place(f"{decoder}.1.layer.0.SelfAttention.v"),
        ),
        weight_gradient=(
            Place(f"{decoder}.1.layer.2.DenseReluDense.wi"),
            Place(f"{encoder}.0.layer.0.SelfAttention.o"),
        ),
        norm="__add__",
        heads=(f"{encoder}.1.layer.0.SelfAttention", f"{decoder}.0.layer.1.EncDecAttention"),
        positions=(
            bias,
            other_positions(bias, 0, lambda ids: aten.div.Scalar_mode(ids, 2, rounding_mode="floor")),
        ),
    )


def _vit() -> Places:
    layer = "vit.layers"

    def place(path: str) -> Place:
        return Place(f"{layer}.{path}")

    return Places(
        scale=(place("1.mlp.fc2"), place("0.attention.v_proj")),
        zero_channel=(
            place("0.mlp.fc1"),
            Place("vit.embeddings.patch_embeddings.projection", "convolution", dim=1),
        ),
        epsilon=(f"{layer}.1.layernorm_after", f"{layer}.0.layernorm_before"),
        rolled=(place("0.attention.o_proj"), place("1.mlp.fc2")),
        gradient=(place("0.mlp.fc1"), place("1.attention.v_proj")),
        weight_gradient=(
            place("1.mlp.fc2"),
            Place("vit.embeddings.patch_embeddings.projection", "convolution"),
        ),
        norm="layer_norm",
        heads=(f"{layer}.1.attention", f"{layer}.0.attention"),
        missing_bias=(place("0.mlp.fc2"), place("1.attention.v_proj")),
        positions=("vit.embeddings", shifted_patches("vit.embeddings")),
    )


def _convnext() -> Places:
    first, second = (f"convnext.encoder.stages.{stage}.layers.0" for stage in range(2))
    down = Place("convnext.encoder.stages.1.downsampling_layer.1", "convolution", dim=1)
    deep, wide = (Place(f"{layer}.dwconv", "convolution", dim=1) for layer in (first, second))
    return Places(
        scale=(Place(f"{second}.pwconv2"), deep),
        zero_channel=(deep, down),
        epsilon=(f"{second}.layernorm", f"{first}.layernorm"),
        rolled=(deep, Place(f"{second}.pwconv2")),
        gradient=(Place(f"{first}.pwconv1"), wide),
        weight_gradient=(Place(f"{second}.pwconv2"), deep),
        norm="layer_norm",
        missing_bias=(Place(f"{first}.pwconv1"), wide),
    )


def _resnet() -> Places:
    first, second = (f"resnet.encoder.stages.{stage}.layers.0.layer" for stage in range(2))
    place = {
        path: Place(f"{path}.convolution", "convolution", dim=1)
        for path in (f"{first}.0", f"{first}.1", f"{second}.0", f"{second}.1")
    }
    return Places(
        scale=(place[f"{second}.0"], place[f"{first}.1"]),
        zero_channel=(place[f"{first}.0"], place[f"{second}.1"]),
        epsilon=(f"{second}.0.normalization", f"{first}.1.normalization"),
        rolled=(place[f"{second}.0"], place[f"{first}.1"]),
        gradient=(place[f"{first}.1"], place[f"{second}.1"]),
        weight_gradient=(place[f"{second}.1"], place[f"{first}.0"]),
        norm="batch_norm",
        missing_bias=(Place("classifier.1"), Place(f"{first}.0.normalization", "batch_norm")),
    )


def places() -> dict[str, Places]:
    attention = tuple(f"model.layers.{layer}.self_attn" for layer in range(2))
    experts = Place("model.layers.1.mlp.experts", nth=1)
    return {
        "llama": Places(**_decoder()),
        "qwen2": Places(
            **_decoder(), missing_bias=(Place(f"{attention[0]}.v_proj"), Place(f"{attention[1]}.q_proj"))
        ),
        "mixtral": Places(**{**_decoder(mlp=None), "scale": (experts, Place(f"{attention[0]}.v_proj"))}),
        "gpt2": _gpt2(),
        "bert": _bert(),
        "t5": _t5(),
        "vit": _vit(),
        "convnext": _convnext(),
        "resnet": _resnet(),
    }
