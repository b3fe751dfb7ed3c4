"""The cases: a model, a kind of numbers, another way to compute the same, and a fault or none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..faults import inject
from ..faults.inject import Change, Injection, scaled, without_channel
from ..faults.models import Batch
from .changes import nothing_left, other_epsilon, rolled, stale, swapped_heads
from .kernel_faults import faulty
from .models import CONVOLUTIONAL, DTYPES, MODELS
from .places import Place, Places, places

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


def _is_exact(dtype: str) -> bool:
    return dtype == "float32"


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
    yield of_kernel("rolled", place, "output", rolled(place.dim), is_permuted=True)
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
        yield of_kernel("missing_bias", pick(chosen.missing_bias), "bias", nothing_left)
    if chosen.heads:
        place = Place(pick(chosen.heads), "matmul", nth=1)
        yield of_kernel("heads", place, "output", swapped_heads(), is_permuted=True)
    yield _wrong_epsilon(model, dtype, "sums", chosen)
    if chosen.stale_cache:
        path = pick(chosen.stale_cache)
        expected = Expected(path, call=1, is_inside=True)
        yield Case(model, dtype, "sums", "stale_cache", stale(path), expected, is_cached=True)
        yield Case(model, dtype, "sums", "healthy_cache", is_cached=True)
    if chosen.positions:
        path, injection = chosen.positions
        yield Case(model, dtype, "sums", "positions", injection, Expected(path, is_inside=True))


def _wrong_epsilon(model: str, dtype: str, variant: str, chosen: Places) -> Case:
    path = chosen.epsilon[DTYPES.index(dtype) % len(chosen.epsilon)]
    injection = other_epsilon(path, 0.05 if _is_exact(dtype) else 0.2)
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
