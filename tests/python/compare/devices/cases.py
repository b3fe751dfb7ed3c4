"""The cases: a model, a kind of numbers, another way to compute the same, and a fault or none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..faults import inject
from ..faults.inject import Change, Injection, aten, scaled, without_channel
from ..faults.models import Batch
from .models import CONVOLUTIONAL, DTYPES, MODELS
from .sums import faulty

HALVES = ("tuning", "held_out")
HEALTHY = "healthy"
# Chosen so that both halves have every model, dtype, variant and kind of fault.
_SALT = "devices-3215"

VARIANTS = ("sums", "attention", "channels_last", "threads", "compiled")


@dataclass(frozen=True)
class Expected:
    """Where a fault is.

    ``where`` is the path of the module, ``api`` the function in it as ``name`` or ``name:n``; without one the
    module itself is at fault.
    """

    where: str
    api: str | None = None
    direction: str = "forward"
    # Which call of the module.
    call: int = 0
    rank: int | None = None
    # The fault is in what the module does between its records: any of them may show it.
    is_inside: bool = False
    # The values are the same in other places: statistics show it where they are used next.
    is_permuted: bool = False
    parameters_grad: bool = False


@dataclass(frozen=True)
class Case:
    """Two trainings of a model: a plain one, and one that computes the same another way."""

    model: str
    dtype: str
    variant: str
    fault: str = HEALTHY
    inject: Injection = inject.nothing
    expected: Expected | None = None
    is_cached: bool = False
    world: int = 1

    @property
    def name(self) -> str:
        ranks = "-ranks" if self.world > 1 else ""
        return f"{self.model}-{self.dtype}-{self.variant}{ranks}-{self.fault}"

    @property
    def is_fault(self) -> bool:
        return self.expected is not None

    @property
    def half(self) -> str:
        digest = hashlib.sha256(f"{_SALT}:{self.name}".encode()).digest()
        return HALVES[digest[0] % 2]

    @property
    def seed(self) -> int:
        """The halves have other weights and data."""
        # With these, no token is so close to two experts that rounding decides between them.
        first = 20261120 if self.model == "mixtral" else 20261118
        return first + HALVES.index(self.half)

    @property
    def golden_key(self) -> str:
        """Cases with the same key share the plain training."""
        more = ("-cached" if self.is_cached else "") + ("-ranks" if self.world > 1 else "")
        return f"{self.model}-{self.dtype}-{self.half}{more}"


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


def _is_exact(dtype: str) -> bool:
    return dtype == "float32"


# ---- what a fault does


def _rolled(dim: int) -> Change:
    return lambda y: aten.roll.default(y, [3], [dim])


def _swapped_heads() -> Change:
    order = torch.tensor([1, 0, 2, 3])
    return lambda y: aten.index_select.default(y, 1, order)


def _nothing_left(y: torch.Tensor) -> torch.Tensor:
    return aten.zeros_like.default(y)


def _stale(path: str) -> Injection:
    """The last entries of a layer's cache are those of earlier tokens."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            cache = kwargs["past_key_values"].layers[module.layer_idx]
            if cache.get_seq_length():
                cache.keys, cache.values = _behind(cache.keys), _behind(cache.values)
            return original(*args, **kwargs)

        return forward

    return inject.forward_of(path, make)


def _behind(x: torch.Tensor) -> torch.Tensor:
    size = x.shape[-2]
    kept = aten.slice.Tensor(x, -2, 0, size - 3)
    return aten.cat.default([kept, aten.slice.Tensor(x, -2, 0, 3)], -2)


def _other_positions(path: str, which: int, change: Change) -> Injection:
    """A module is given other positions than those that are recorded; ``which`` argument they are."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if "position_ids" in kwargs:
                kwargs["position_ids"] = change(kwargs["position_ids"])
            else:
                args = tuple(change(x) if i == which else x for i, x in enumerate(args))
            return original(*args, **kwargs)

        return forward

    return inject.forward_of(path, make)


def _restarted(ids: torch.Tensor) -> torch.Tensor:
    """Positions start again after half of the tokens."""
    return aten.remainder.Scalar(ids, 8)


def _shifted_patches(path: str) -> Injection:
    """Patches get the position of their neighbour."""

    def make(module: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            positions = module.position_embeddings
            shift = aten.sub.Tensor(aten.roll.default(positions, [1], [1]), positions)
            return aten.add.Tensor(original(*args, **kwargs), shift)

        return forward

    return inject.forward_of(path, make)


def _epsilon(path: str, value: float) -> Injection:
    @contextmanager
    def change(model: nn.Module, batch: Batch) -> Iterator[None]:
        module = model.get_submodule(path)
        name = "variance_epsilon" if hasattr(module, "variance_epsilon") else "eps"
        with inject.setting(path, **{name: value})(model, batch):
            yield

    return change


# ---- where it is


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
        "positions": ("model.rotary_emb", _other_positions("model.rotary_emb", 1, _restarted)),
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
        positions=("transformer.wpe", _other_positions("transformer.wpe", 0, _restarted)),
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
        positions=(positions, _other_positions(positions, 0, _restarted)),
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
            _other_positions(bias, 0, lambda ids: aten.div.Scalar_mode(ids, 2, rounding_mode="floor")),
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
        positions=("vit.embeddings", _shifted_patches("vit.embeddings")),
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


# ---- all of them


def _on_device(model: str, dtype: str, chosen: Places) -> Iterator[Case]:
    """Faults of kernels of the other device, and around them."""
    turn = DTYPES.index(dtype)

    def pick(choices: tuple[Any, ...]) -> Any:
        return choices[turn % len(choices)]

    def of_kernel(kind: str, place: Place, stage: str, change: Change, **more: Any) -> Case:
        injection = faulty(place.kernel, stage, change, place.path, place.nth)
        return Case(model, dtype, "sums", kind, injection, Expected(place.path, place.api, **more))

    factor = 1.01 if _is_exact(dtype) else 1.04
    steeper = 1.02 if _is_exact(dtype) else 1.1
    yield of_kernel("scale", pick(chosen.scale), "output", scaled(factor))
    place = pick(chosen.zero_channel)
    yield of_kernel("zero_channel", place, "output", without_channel(5, place.dim))
    place = pick(chosen.rolled)
    yield of_kernel("rolled", place, "output", _rolled(place.dim), is_permuted=True)
    yield of_kernel(
        "gradient", pick(chosen.gradient), "input_gradient", scaled(steeper), direction="backward"
    )
    yield of_kernel(
        "weight_gradient",
        pick(chosen.weight_gradient),
        "weight_gradient",
        scaled(steeper),
        direction="backward",
        parameters_grad=True,
    )
    if chosen.missing_bias:
        yield of_kernel("missing_bias", pick(chosen.missing_bias), "bias", _nothing_left)
    if chosen.heads:
        place = Place(pick(chosen.heads), "matmul", nth=1)
        yield of_kernel("heads", place, "output", _swapped_heads(), is_permuted=True)
    yield _wrong_epsilon(model, dtype, "sums", chosen)
    if chosen.stale_cache:
        path = pick(chosen.stale_cache)
        expected = Expected(path, call=1, is_inside=True)
        yield Case(model, dtype, "sums", "stale_cache", _stale(path), expected, is_cached=True)
        yield Case(model, dtype, "sums", "healthy_cache", is_cached=True)
    if chosen.positions:
        path, injection = chosen.positions
        yield Case(model, dtype, "sums", "positions", injection, Expected(path, is_inside=True))


def _wrong_epsilon(model: str, dtype: str, variant: str, chosen: Places) -> Case:
    path = chosen.epsilon[DTYPES.index(dtype) % len(chosen.epsilon)]
    injection = _epsilon(path, 0.05 if _is_exact(dtype) else 0.2)
    return Case(model, dtype, variant, "epsilon", injection, Expected(path, chosen.norm))


def _elsewhere(model: str, dtype: str, variant: str, chosen: Places) -> Iterator[Case]:
    """Faults beside kernels that are torch's own."""
    turn = DTYPES.index(dtype)
    # Experts are called for some of the tokens, and are no module of their own.
    scale = chosen.scale[1] if chosen.scale[0].nth else chosen.scale[turn % 2]
    factor = 1.01 if _is_exact(dtype) else 1.04
    yield Case(
        model, dtype, variant, "scale", inject.output_of(scale.path, scaled(factor)), Expected(scale.path)
    )
    place = chosen.zero_channel[turn % 2]
    change = without_channel(5, place.dim)
    yield Case(
        model, dtype, variant, "zero_channel", inject.output_of(place.path, change), Expected(place.path)
    )
    yield _wrong_epsilon(model, dtype, variant, chosen)


def _left_out(path: str) -> Injection:
    """This rank goes on without the sum of all parts; see ranks.py."""

    @contextmanager
    def leave_out(model: nn.Module, batch: Batch) -> Iterator[None]:
        model.get_submodule(path).leaves_out_sum = True
        yield

    return leave_out


RANKS = {"llama": "model.layers.{}.mlp", "gpt2": "transformer.h.{}.mlp"}
"""Modules that are split between ranks."""


def _in_ranks(model: str, dtype: str) -> Iterator[Case]:
    path = RANKS[model].format(DTYPES.index(dtype) % 2)
    yield Case(model, dtype, "sums", world=2)
    expected = Expected(path, rank=1, is_inside=True)
    yield Case(model, dtype, "sums", "all_reduce", _left_out(path), expected, world=2)


SDPA = ("llama", "qwen2", "mixtral", "gpt2", "bert", "t5", "vit")
COMPILED = {
    "llama": "model.layers.1.mlp",
    "bert": "bert.encoder.layer.1.intermediate",
    "vit": "vit.layers.1.mlp",
}
"""What is compiled of a model."""


def all_cases() -> list[Case]:
    cases: list[Case] = []
    known = places()
    for model in MODELS:
        for dtype in DTYPES:
            cases.append(Case(model, dtype, "sums"))
            cases.extend(_on_device(model, dtype, known[model]))
            if model in RANKS:
                cases.extend(_in_ranks(model, dtype))
            if model in SDPA:
                cases.append(Case(model, dtype, "attention"))
                cases.extend(_elsewhere(model, dtype, "attention", known[model]))
            if model in CONVOLUTIONAL:
                cases.append(Case(model, dtype, "channels_last"))
                cases.extend(_elsewhere(model, dtype, "channels_last", known[model]))
            cases.append(Case(model, dtype, "threads"))
            if model in COMPILED:
                cases.append(Case(model, dtype, "compiled"))
                cases.append(_wrong_epsilon(model, dtype, "compiled", known[model]))
    assert len({case.name for case in cases}) == len(cases)
    return cases
