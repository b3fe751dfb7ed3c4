"""Both sides draw the same random numbers and drop nothing, while operators run and not after."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Callable

import torch
from torch.nn import functional

Function = Callable[..., Any]

DROPOUTS = ("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")
_NUMPY_SEEDS = 1 << 32
_DROPOUT_PLACE = 4

DRAWS = frozenset(
    [
        "bernoulli",
        "bernoulli_",
        "multinomial",
        "normal",
        "normal_",
        "uniform_",
        "random_",
        "exponential_",
        "geometric_",
        "cauchy_",
        "log_normal_",
        "poisson",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "randint",
        "randint_like",
        "randperm",
        "rrelu",
        "rrelu_",
        "gumbel_softmax",
        "fractional_max_pool2d",
        "fractional_max_pool3d",
        "fractional_max_pool2d_with_indices",
        "fractional_max_pool3d_with_indices",
    ]
)
"""Functions whose result is random numbers of the device's own: there is nothing to compare it with."""


def draws_random_numbers(kind: str, name: str) -> bool:
    """Whether two correct devices may give different results."""
    return kind in ("Functional", "Tensor", "Torch") and name in DRAWS


def seed(number: int) -> None:
    """Seeds every generator an operator may use."""
    random.seed(number)
    torch.manual_seed(number)
    # Not imported for the sake of being seeded.
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number % _NUMPY_SEEDS)


@contextmanager
def without_dropout() -> Iterator[None]:
    """Dropout of ``torch.nn.functional`` and ``torch`` keeps everything in this block."""
    attention = functional.scaled_dot_product_attention
    replaced: list[tuple[Any, str, Function]] = [(functional, "scaled_dot_product_attention", attention)]
    functional.scaled_dot_product_attention = keeping_all_attention(attention)
    for owner in (functional, torch):
        for name in DROPOUTS:
            original = getattr(owner, name, None)
            if original is not None:
                replaced.append((owner, name, original))
                setattr(owner, name, keeping_all(original))
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def keeping_all(original: Function) -> Function:
    """The function with ``p`` = 0."""

    @wraps(original)
    def function(input: Any, p: float = 0.0, *args: Any, **kwargs: Any) -> Any:
        return original(input, 0.0, *args, **kwargs)

    return function


def keeping_all_attention(original: Function) -> Function:
    """``scaled_dot_product_attention`` with ``dropout_p`` = 0."""

    @wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("dropout_p", None)
        return original(
            *args[:_DROPOUT_PLACE],
            *((0.0,) if len(args) > _DROPOUT_PLACE else ()),
            *args[_DROPOUT_PLACE + 1 :],
            **kwargs,
        )

    return function
