"""The NPU operators of the manual, with a stand-in for the extension that brings them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs
from tests.python.manual.snippets import NPU_OPERATORS

STANDINS = Path(__file__).with_name("standins")
NAMES = list(dict.fromkeys(NPU_OPERATORS))
PATHS = f"import sys; sys.path.insert(0, {str(STANDINS)!r})\n"

IMPORT = "import torch_npu\n"
DEBUGGER = "from msprobe.pytorch import PrecisionDebugger\n"
MADE = "debugger = PrecisionDebugger(task='statistics', dump_path='./dump', level='L1')\n"
CALLS = f"""
import torch
names = {NAMES!r}
x = torch.ones(3)
debugger.start()
for name in names:
    assert torch_npu.find(name)(x).tolist() == [2.0, 2.0, 2.0], name
debugger.stop()
debugger.step()
"""

ORDERS = {
    "before msprobe": PATHS + IMPORT + DEBUGGER + MADE + CALLS,
    "after msprobe": PATHS + DEBUGGER + IMPORT + MADE + CALLS,
    "after the debugger": PATHS + DEBUGGER + MADE + IMPORT + CALLS,
    "after an empty step": PATHS
    + DEBUGGER
    + MADE
    + "debugger.start(); debugger.stop(); debugger.step(); debugger.set_init_step(0)\n"
    + IMPORT
    + CALLS,
}


def test_the_table_has_77_operators() -> None:
    assert (len(NPU_OPERATORS), len(NAMES)) == (78, 77)


@pytest.mark.parametrize("order", ORDERS)
def test_every_operator_is_recorded_once(order: str, tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, ORDERS[order]).ok()
    assert list(result.data()) == [f"NPU.{name}.0.forward" for name in NAMES]
    assert all(record["output"][0]["Max"] == 2.0 for record in result.data().values())


def test_a_list_of_the_family_takes_only_them(tmp_path: Path) -> None:
    settings = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {"list": ["npu"]}}
    source = PATHS + IMPORT + CALLS.replace("debugger.stop()", "torch.add(x, x)\ndebugger.stop()")
    result = runs.run_script(tmp_path, source, settings).ok()
    assert len(result.data()) == 77
    assert "Torch.add" not in str(list(result.data()))
