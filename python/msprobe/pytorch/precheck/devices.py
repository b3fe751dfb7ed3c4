"""Which device is tested: the one that is there, or the one asked for."""

from __future__ import annotations

import importlib
import re
from typing import Any, Union

import torch

from msprobe.pytorch.log import logger

DeviceChoice = Union[int, str]
"""A number of a device of the kind that is there, or a name such as ``cuda:1`` or ``cpu``."""

NAME = re.compile(r"[a-z][a-z0-9_]*(:\d+)?")


def available_kind() -> str:
    """``npu``, ``cuda``, another accelerator, or ``cpu``, whichever is there first."""
    if _has_npu():
        return "npu"
    if torch.cuda.is_available():
        return "cuda"
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        return str(accelerator.current_accelerator().type)
    return "cpu"


def _has_npu() -> bool:
    try:
        importlib.import_module("torch_npu")
    except Exception:
        # Absent, or installed without the driver it needs.
        return False
    npu = getattr(torch, "npu", None)
    return npu is not None and bool(npu.is_available())


def choose_device(choice: DeviceChoice) -> torch.device:
    """The device to test, made the current one of its kind."""
    name = choice if isinstance(choice, str) else _numbered(available_kind(), choice)
    try:
        if name.startswith("npu"):
            importlib.import_module("torch_npu")
        device = torch.device(name)
        module: Any = getattr(torch, device.type, None)
        if device.type != "cpu" and device.index is not None and hasattr(module, "set_device"):
            module.set_device(device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, ImportError, NotImplementedError, AttributeError) as error:
        logger.error(f"Set device id failed. device id is: [{choice}]")
        raise NotImplementedError(f"the device {name} cannot be used: {error}") from error
    return device


def _numbered(kind: str, number: int) -> str:
    return kind if kind == "cpu" else f"{kind}:{number}"


def switch_compilation(device: torch.device, is_on: bool) -> None:
    """Compilation of operators and internal formats of an NPU, both on or both off."""
    if device.type != "npu":
        return
    npu: Any = torch.npu
    npu.set_compile_mode(jit_compile=is_on)
    npu.config.allow_internal_format = is_on
