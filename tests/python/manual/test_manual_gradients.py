"""The manual's gradient probe: configuration, `monitor`, what it writes, and the comparison of two runs."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.python.collection import runs
from tests.python.manual import snippets

TRAIN = """\
import sys, torch
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """
for step in range(STEPS):
    optimizer.zero_grad()
    model(torch.randn(5, 4)).square().sum().backward()
    optimizer.step()
"""


def train(folder: Path, config: dict[str, Any], steps: int = 2, seed: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    monitor = snippets.MONITOR.replace("{config_json_path}", "config.json")
    (folder / "train.py").write_text(TRAIN + monitor + LOOP.replace("STEPS", str(steps)))
    runs.run(folder, "train.py", str(seed)).ok()
    ranks = list((folder / "dump_path").iterdir())
    assert len(ranks) == 1 and ranks[0].name.startswith("rank")
    return ranks[0]


def header(path: Path) -> list[str]:
    return next(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))


@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_levels(level: str, tmp_path: Path) -> None:
    config = copy.deepcopy(snippets.GRADIENTS)
    config["grad_probe"]["grad_level"] = level
    rank = train(tmp_path, config)
    assert sorted(path.name for path in rank.glob("*.csv")) == ["grad_summary_0.csv", "grad_summary_1.csv"]
    assert header(rank / "grad_summary_0.csv") == snippets.GRADIENT_HEADERS[level]
    directions = sorted(path.name for path in rank.glob("step0/*"))
    parameters = ["0.bias.npy", "0.weight.npy", "1.bias.npy", "1.weight.npy"]
    assert directions == ([] if level == "L0" else parameters)
    if directions:
        assert numpy.load(rank / "step0/0.weight.npy").dtype == bool


def test_steps_and_parameters(tmp_path: Path) -> None:
    config = copy.deepcopy(snippets.GRADIENTS)
    config["step"] = snippets.GRADIENT_STEPS
    config["grad_probe"]["param_list"] = ["0.weight"]
    rank = train(tmp_path, config, steps=8)
    found = sorted(int(path.stem.removeprefix("grad_summary_")) for path in rank.glob("*.csv"))
    assert found == [0, 1, 2, 4, 5, 6]
    assert [path.name for path in rank.glob("step4/*")] == ["0.weight.npy"]


def test_the_distribution_of_the_text(tmp_path: Path) -> None:
    """[9.3, 5.4, -1.0, -12.3] between -10, 0 and 10: one, one, two and none of four."""
    config = copy.deepcopy(snippets.GRADIENTS)
    config["grad_probe"].update(grad_level="L2", bounds=[-10, 0, 10])
    (tmp_path / "config.json").write_text(json.dumps(config))
    source = (
        "import torch\nmodel = torch.nn.Linear(4, 1, bias=False)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        + snippets.MONITOR.replace("{config_json_path}", "config.json")
        + "model.weight.grad = torch.tensor([[9.3, 5.4, -1.0, -12.3]])\noptimizer.step()\n"
    )
    (tmp_path / "train.py").write_text(source)
    runs.run(tmp_path, "train.py").ok()
    (path,) = (tmp_path / "dump_path").rglob("grad_summary_0.csv")
    (row,) = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
    shares = [float(row[name]) for name in ("(-inf, -10]", "(-10, 0]", "(0, 10]", "(10, inf)", "=0")]
    assert shares == [0.25, 0.25, 0.5, 0.0, 0.0]


def test_comparison(tmp_path: Path) -> None:
    """Ranks carry the process number on the CPU, so both runs are put under one."""
    for name, seed in (("npu", 0), ("gpu", 1)):
        rank = train(tmp_path / name, snippets.GRADIENTS, seed=seed)
        rank.rename(rank.with_name("rank0"))
    script = snippets.COMPARE_GRADIENTS
    for mark, path in (("first", "npu/dump_path"), ("second", "gpu/dump_path"), ("output", "result")):
        script = script.replace(f"{{{mark}}}", path)
    (tmp_path / "compare.py").write_text(script)
    runs.run(tmp_path, "compare.py").ok()
    rank = tmp_path / "result/rank0"
    assert (rank / "similarities.csv").is_file()
    pictures = {path.name for path in (rank / "similarities_picture").iterdir()}
    # The manual leaves out a part of the names, which scripts know as they are.
    assert {"0.weight_similarities.png", "0.bias_similarities.png", "summary_similarities.png"} <= pictures
