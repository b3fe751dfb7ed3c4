"""What the training scripts share: the tool, made from a level and a task, and handing back results."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

MODES: dict[str, dict[str, Any]] = {
    "idle": {"level": "mix"},
    "filtered": {"level": "mix", "step": [1000]},
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "tensor": {"level": "mix", "task": "tensor"},
}


class Absent:
    """No tool at all."""

    def start(self, model: Any = None) -> None:
        pass

    def stop(self) -> None:
        pass

    def step(self) -> None:
        pass


class Idle(Absent):
    """Made, never started."""

    def __init__(self, debugger: Any) -> None:
        self.debugger = debugger


def attach(mode: str, **keys: Any) -> Any:
    """The debugger of a mode; it writes to ./dump."""
    if mode == "absent":
        return Absent()
    settings = {"task": "statistics", "dump_path": "./dump", **MODES[mode], **keys}
    path = Path("config.json")
    path.write_text(json.dumps(settings))
    debugger = importlib.import_module("msprobe.pytorch").PrecisionDebugger(config_path="./config.json")
    return Idle(debugger) if mode == "idle" else debugger


def result(value: Any) -> None:
    print("RESULT " + json.dumps(value), flush=True)


def digest(tensors: Iterable[Any]) -> str:
    """A hash of the bits."""
    sum_of_all = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            sum_of_all.update(b"none")
            continue
        plain = tensor.detach().contiguous().reshape(-1)
        sum_of_all.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        sum_of_all.update(plain.view(torch.uint8).numpy().tobytes())
    return sum_of_all.hexdigest()
