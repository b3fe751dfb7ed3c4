"""Which devices torch has here."""

from __future__ import annotations

import torch


def npu_is_available() -> bool:
    """Whether torch has an NPU: its extension puts ``torch.npu`` there when a script imports it."""
    npu = getattr(torch, "npu", None)
    return npu is not None and bool(npu.is_available())
