"""Backward passes of modules are recorded in whichever thread autograd runs, and from the first node on.

The backward pass of an accelerator runs in a thread of its own, and its figures come later. Here another
thread calls ``backward``, and meta tensors stand for those on a device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs
from tests.python.collection.fake_device import FAKE_DEVICE

SCRIPT = """
import threading
import torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger
FAKE_DEVICE

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3, device="ON")
        self.b = nn.Linear(3, 3, device="ON")

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

model = nn.Sequential(Block(), Block())
debugger = PrecisionDebugger("./config.json")
for step in range(2):
    x = torch.ones(2, 3, device="ON", requires_grad=True)
    debugger.start(model)
    loss = model(x).square().sum()
    if IN_THREAD:
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    else:
        loss.backward()
    debugger.stop()
    debugger.step()
"""
MODULES = [
    "Module.1.b.Linear",
    "Module.1.a.Linear",
    "Module.1.Block",
    "Module.0.b.Linear",
    "Module.0.a.Linear",
    "Module.0.Block",
]


def run(folder: Path, device: str, in_thread: bool, level: str) -> runs.Result:
    script = SCRIPT.replace("FAKE_DEVICE", FAKE_DEVICE if device == "meta" else "")
    script = script.replace("IN_THREAD", str(in_thread)).replace('"ON"', f'"{device}"')
    config = {"task": "statistics", "dump_path": "./dump", "level": level, "statistics": {}}
    return runs.run_script(folder, script, config).ok()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_every_backward_pass_is_recorded(level: str, device: str, in_thread: bool, tmp_path: Path) -> None:
    result = run(tmp_path, device, in_thread, level)
    for step in range(2):
        passes = [name for name in result.data(step) if name.startswith("Module.") and ".backward." in name]
        assert passes == [f"{module}.backward.0" for module in MODULES]
        for name in passes:
            record = result.data(step)[name]
            for tensor in [*record["input"], *record["output"]]:
                assert tensor["shape"] == [2, 3] and isinstance(tensor["Norm"], float)
        construct = result.document("construct.json", step)
        for module in MODULES:
            parent = construct[f"{module}.backward.0"]
            outer = None if "Block" in module else f"Module.{module.split('.')[1]}.Block.backward.0"
            assert parent == outer
