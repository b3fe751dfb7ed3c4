"""Repeatable runs: all random seeds, deterministic algorithms, and no dropout."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional

from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch.device import npu_is_available
from msprobe.pytorch.log import logger

MAX_SEED = 2**32 - 1
DEFAULT_SEED = 1234
# From this version on, cuBLAS is deterministic only with a workspace of a fixed size.
_CUBLAS_WORKSPACE_SINCE = (10, 2)
_DROPOUTS = ("dropout", "dropout2d", "dropout3d")


def seed_all(seed: int = DEFAULT_SEED, mode: bool = False, rm_dropout: bool = True) -> None:
    """Seeds Python, numpy and torch on every device.

    ``mode`` makes torch use deterministic algorithms only. ``rm_dropout`` makes dropout keep everything; call
    this before ``PrecisionDebugger`` is made, so that dropout is still collected.
    """
    _check(seed, mode, rm_dropout)
    try:
        _seed(seed, mode)
        if rm_dropout:
            remove_dropout()
    except Exception as error:
        # A run without repeatable seeds is better than no run.
        logger.error(f"seed_all did not finish: {error}")


def seed_as_configured(seed: int | None, is_deterministic: bool | None) -> None:
    """What ``seed`` and ``is_deterministic`` of a configuration ask for; neither leaves everything alone.

    As ``seed_all`` does it, except for what nobody asked for: dropout stays, and so does the choice of
    algorithms where only a seed is given.
    """
    if seed is None and not is_deterministic:
        return
    seed = DEFAULT_SEED if seed is None else seed
    mode = torch.are_deterministic_algorithms_enabled() if is_deterministic is None else is_deterministic
    seed_all(seed, mode, rm_dropout=False)
    logger.info(
        f"The configuration seeds all random numbers with {seed}, deterministic algorithms are "
        f"{'on' if mode else 'off'}; dropout stays as it is, seed_all({seed}, {mode}) takes it out too."
    )


def remove_dropout() -> None:
    """Replaces torch's dropout functions, which its modules call too, by ones that drop nothing."""
    for name in _DROPOUTS:
        original = getattr(torch.nn.functional, name)
        if not hasattr(original, "_msprobe_keeps_all"):
            setattr(torch.nn.functional, name, _keeping_all(original))
    logger.info("For precision comparison, the probability p in the dropout method is set to 0.")


def _keeping_all(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if p < 0.0 or p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        return original(input, 0.0, training, inplace)

    # As part of the function, so that whoever wraps it later passes it on.
    dropout.__dict__["_msprobe_keeps_all"] = True
    return dropout


def _check(seed: object, mode: object, rm_dropout: object) -> None:
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        _refuse(f"the seed must be an integer between 0 and {MAX_SEED}, currently it is {seed!r}")
    for name, value in (("mode", mode), ("rm_dropout", rm_dropout)):
        if not isinstance(value, bool):
            _refuse(f"{name} must be True or False, currently it is {value!r}")


def _refuse(text: str) -> None:
    logger.error(text)
    raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _seed(seed: int, mode: bool) -> None:
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    os.environ["HCCL_DETERMINISTIC"] = str(mode)
    _seed_numpy(seed)
    torch.manual_seed(seed)
    cuda = _version(torch.version.cuda)
    if cuda is not None and cuda >= _CUBLAS_WORKSPACE_SINCE:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(mode)
    if npu_is_available():
        torch.npu.manual_seed_all(seed)
    elif torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def _seed_numpy(seed: int) -> None:
    try:
        import numpy
    except ImportError:
        # torch runs without it, and then there is nothing to seed.
        return
    numpy.random.seed(seed)


def _version(text: str | None) -> tuple[int, ...] | None:
    """The numbers of a version such as ``12.8``; ``None`` where torch was built without CUDA."""
    return None if text is None else tuple(int(part) for part in text.split(".") if part.isdigit())
