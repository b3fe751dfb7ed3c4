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


VIEWS = """
import torch
from msprobe.pytorch import PrecisionDebugger

debugger = PrecisionDebugger("./config.json")
x = torch.ones(100, 100)
wide = torch.arange(10000.0).reshape(100, 100)
debugger.start()
torch.neg(x)                      # 0: measured
torch.neg(x.reshape(50, 200))     # 1: the same elements
x.view(-1).mul_(2.0)              # both are written through a view
torch.neg(x.reshape(50, 200))     # 2
torch.neg(x.view(torch.int32))    # 3: the same memory, another dtype
torch.neg(x[:50])                 # 4: fewer elements
y = x.data
torch.neg(y)                      # 5
y.fill_(7.0)                      # x does not know of it
torch.neg(x.reshape(50, 200))     # 6
torch.neg(wide)                   # 7
torch.neg(wide.t().reshape(100, 100).t())  # 8: the same elements, copied, not in row-major order
torch.neg(wide.t())               # 9: the same memory, another order
z = torch.full((100, 100), 3.0)
torch.neg(z)                      # 10
place = z.data_ptr()
z.data = torch.zeros(1)           # its memory may become another tensor's
others = [torch.full((100, 100), 20.0 + value) for value in range(8)]
for other in others:              # 11..18
    torch.neg(other)
debugger.stop()
debugger.step()
"""


@pytest.mark.parametrize("summary_mode", ["statistics", "md5"])
def test_views_share_figures_only_while_they_are_the_same(tmp_path: Path, summary_mode: str) -> None:
    config = {
        "task": "statistics",
        "dump_path": "./dump",
        "level": "L1",
        "statistics": {"summary_mode": summary_mode},
        "list": ["neg"],
    }
    data = runs.run_script(tmp_path, VIEWS, config).ok().data()
    inputs = [data[f"Torch.neg.{n}.forward"]["input_args"][0] for n in range(19)]
    two_as_int = 0x40000000
    first = [1.0, 1.0, 2.0, two_as_int, 2.0, 2.0, 7.0, 9999.0, 9999.0, 9999.0, 3.0]
    assert [tensor["Max"] for tensor in inputs] == first + [20.0 + value for value in range(8)]
    if summary_mode == "md5":
        sums = [tensor["md5"] for tensor in inputs]
        assert sums[0] == sums[1] and sums[2] == sums[5] and sums[7] == sums[8] != sums[9]
        assert sums[2] == sums[3], "a checksum is of the bytes"
        assert len(set(sums)) == 7 + 8
