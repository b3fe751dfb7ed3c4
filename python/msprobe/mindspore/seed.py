"""Randomness made the same in every run."""

from __future__ import annotations

import os
import random
from typing import Any

import mindspore as ms
from mindspore import mint, ops

from msprobe.core.collection.arguments import invalid


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = True) -> None:
    """Sets all seeds, deterministic computing if ``mode``, and takes dropout out unless told not to."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise invalid(f"seed must be an integer from 0 to {2**32 - 1}, currently it is {seed!r}")
    if not isinstance(mode, bool):
        raise invalid(f"seed_all mode must be bool, currently it is {mode!r}")
    if not isinstance(rm_dropout, bool):
        raise invalid(f"The rm_dropout parameter must be bool, currently it is {rm_dropout!r}")
    ms.set_seed(seed)
    random.seed(seed)
    ms.set_context(deterministic="ON" if mode else "OFF")
    # Afterwards: the context sets and removes some itself.
    os.environ["PYTHONHASHSEED"] = str(seed)
    os.environ["HCCL_DETERMINISTIC"] = str(mode)
    if rm_dropout:
        _remove_dropout()


def _remove_dropout() -> None:
    """What is made from now on drops nothing."""
    for name in ("Dropout", "Dropout2D", "Dropout3D"):
        kept = _keeping(getattr(ops, name))
        setattr(ops, name, kept)
        setattr(ops.operations, name, kept)
    nn: Any = getattr(mint, "nn", None)
    if hasattr(nn, "Dropout"):
        nn.Dropout = _without_probability(nn.Dropout)
    if hasattr(nn, "functional"):
        nn.functional.dropout = _identity


def _keeping(cls: Any) -> Any:
    """An operator that keeps everything, whatever it is asked for."""
    if getattr(cls, "_msprobe_keeps", False):
        return cls

    class Kept(cls):  # type: ignore[misc]
        _msprobe_keeps = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("keep_prob", None)
            super().__init__(1.0, *args[1:], **kwargs)

    Kept.__name__ = cls.__name__
    return Kept


def _without_probability(cls: Any) -> Any:
    if getattr(cls, "_msprobe_keeps", False):
        return cls

    class Kept(cls):  # type: ignore[misc]
        _msprobe_keeps = True

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("p", None)
            super().__init__(0, *args[1:], **kwargs)

    Kept.__name__ = cls.__name__
    return Kept


def _identity(input: Any, *args: Any, **kwargs: Any) -> Any:
    return input
