"""Sketches in dump.json: there when asked for, of the elements as they count, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe import _native
from msprobe.core.tensor import describe
from tests.python.collection import runs
from tests.python.collection.sketches import read_sketch

SOURCE = """
import torch
from msprobe.pytorch import PrecisionDebugger

torch.manual_seed(1)
debugger = PrecisionDebugger("./config.json")
x = torch.randn(16, 1024)
narrow = x.bfloat16()
debugger.start()
torch.neg(x)                              # 0
torch.neg(x.view(2, 8, 1024))             # 1: the same rows and columns
torch.neg(x.view(8, 2048))                # 2: other columns
torch.neg(x.t())                          # 3: another order, in the same memory
torch.neg(x[:, ::2])                      # 4
torch.neg(narrow)                         # 5
torch.neg(torch.tensor(2.0))              # 6
torch.neg(torch.ones(0, 3))               # 7
torch.neg(torch.arange(5))                # 8
torch.neg(torch.view_as_complex(x.view(-1, 2)))  # 9
x.mul_(2.0)
torch.neg(x)                              # 10
debugger.stop()
debugger.step()
"""


def collect(folder: Path, section: dict[str, Any]) -> Any:
    folder.mkdir()
    config = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": section}
    return runs.run_script(folder, SOURCE, config).ok().document("dump.json")


def without_sketches(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_sketches(member) for key, member in value.items() if key != "sketch"}
    return [without_sketches(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("summary_mode", ["statistics", "md5"])
def test_sketches_are_of_the_elements(tmp_path: Path, summary_mode: str) -> None:
    plain = collect(tmp_path / "plain", {"summary_mode": summary_mode, "sketch": False})
    assert "sketch" not in json.dumps(plain["data"])
    document = collect(tmp_path / "sketched", {"summary_mode": summary_mode, "sketch": True})
    for side in (plain, document):
        side["dump_data_dir"] = None
    assert json.dumps(without_sketches(document)) == json.dumps(plain)
    calls = [document["data"][f"Torch.neg.{n}.forward"] for n in range(11)]
    torch.manual_seed(1)
    x = torch.randn(16, 1024)
    views = [
        x,
        x.view(2, 8, 1024),
        x.view(8, 2048),
        x.t().contiguous(),
        x[:, ::2].contiguous(),
        x.bfloat16(),
        torch.tensor(2.0),
        torch.ones(0, 3),
        torch.arange(5),
        torch.view_as_complex(x.view(-1, 2)),
        x * 2,
    ]
    for at, (call, value) in enumerate(zip(calls, views)):
        tensor = call["input_args"][0]
        assert list(tensor)[-1] == "sketch", at
        assert tensor["sketch"] == _native.sketch(describe(value)), at
        assert call["output"][0]["sketch"] == _native.sketch(describe(-value)), at
    texts = [call["input_args"][0]["sketch"] for call in calls]
    assert max(len(text) for text in texts) <= 163
    assert texts[0] == texts[1]
    sketches = [read_sketch(text) for text in texts]
    assert sketches[0].hash == sketches[2].hash != sketches[3].hash
    assert sketches[10].norm == pytest.approx(2 * sketches[0].norm)
    assert sketches[6].components == sketches[7].components == ()


def test_another_type_is_refused(tmp_path: Path) -> None:
    config = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {"sketch": 1}}
    result = runs.run_script(tmp_path, SOURCE, config)
    assert result.returncode != 0
    assert "sketch is invalid, it should be a boolean" in result.stdout + result.stderr
