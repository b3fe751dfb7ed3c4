"""PyTorch's functions on MindSpore's tensors (MSAdapter, mindtorch): whether they are in use."""

from __future__ import annotations

import sys
from types import ModuleType

import mindspore as ms


def adapter_module() -> ModuleType | None:
    """The module that stands for torch, if the script has imported one whose tensors are MindSpore's."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "tensor"):
        return None
    try:
        is_adapter = isinstance(torch.tensor(0.0), ms.Tensor)
    except Exception:
        return None
    return torch if is_adapter else None
