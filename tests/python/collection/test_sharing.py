"""Figures measured for one record serve the next one only while the tensor stays what it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs

SOURCE = """
import ctypes
import torch
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger("./config.json")
x = torch.ones(100, 100)
flipped = torch.arange(10000.0).reshape(100, 100).t()
debugger.start()
torch.neg(x)                      # 0: measured
torch.neg(x)                      # 1: the same
x.data.mul_(2.0)                  # autograd's version counter does not see this
torch.neg(x)                      # 2
x.mul_(2.0)
torch.neg(x)                      # 3
ctypes.memset(x.data_ptr(), 0, 4 * x.numel())   # nor does it see this
torch.neg(x)                      # 4
torch.neg(flipped)                # 5: dense, but not row-major
flipped.data.add_(1.0)
torch.neg(flipped)                # 6
for value in range(3):            # 7..9: new tensors that may get the memory of old ones
    torch.neg(torch.full((100, 100), float(value)))
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("summary_mode", ["statistics", "md5"])
def test_changes_are_seen(tmp_path: Path, summary_mode: str) -> None:
    config = {
        "task": "statistics",
        "dump_path": "./dump",
        "level": "L1",
        "statistics": {"summary_mode": summary_mode},
    }
    data = runs.run_script(tmp_path, SOURCE, config).ok().data()
    inputs = [data[f"Torch.neg.{n}.forward"]["input_args"][0] for n in range(10)]
    assert [tensor["Max"] for tensor in inputs] == [1.0, 1.0, 2.0, 4.0, 0.0, 9999.0, 10000.0, 0.0, 1.0, 2.0]
    if summary_mode == "md5":
        sums = [tensor["md5"] for tensor in inputs]
        assert sums[0] == sums[1] == sums[8]
        assert len(set(sums)) == 6  # 1, 2, 4, 0 and the two flipped ones
