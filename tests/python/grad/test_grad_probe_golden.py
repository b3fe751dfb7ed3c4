"""Recorded gradients through real parameters and a real optimizer: files as the reference wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from msprobe import _native
from msprobe.core import collect_config
from msprobe.core.tensor import describe
from msprobe.pytorch.framework import PYTORCH
from msprobe.pytorch.grad_probe.grad_monitor import GradientMonitor
from tests.python.grad.probing import GOLDEN, model_of, same_files, set_gradients, sgd


def recorded_gradients(case: str) -> list[dict[str, Any]]:
    """The gradients of each step by parameter."""
    folder = GOLDEN / case / "inputs"
    dtypes = folder / "dtypes.json"
    wanted = json.loads(dtypes.read_text()) if dtypes.exists() else {}
    steps = []
    for path in sorted(folder.glob("*.npz")):
        with numpy.load(path) as arrays:
            gradients: dict[str, Any] = {}
            for name in arrays.files:
                tensor = torch.from_numpy(arrays[name])
                gradients[name] = tensor.to(getattr(torch, wanted.get(name, "torch.float32").split(".")[1]))
            steps.append(gradients)
    return steps


@pytest.mark.parametrize("case", ["l0_basic", "l1_filter", "l2_bounds", "l2_edge_values"])
def test_files_are_those_of_the_reference(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frozen = {} if case == "l2_edge_values" else {"frozen.weight": None, "frozen.bias": None}
    steps = [{**gradients, **frozen} for gradients in recorded_gradients(case)]
    model = model_of(steps[0])
    probe = GradientMonitor(collect_config.resolve(PYTORCH, str(GOLDEN / case / "config.json")))
    probe.monitor([model])
    optimizer = sgd(model)
    for gradients in steps:
        set_gradients(model, gradients)
        optimizer.step()
    probe.flush()
    same_files(tmp_path / "output", GOLDEN / case / "output")
    output = capsys.readouterr().out
    assert "> parameter names:" in output
    assert ("grad is None: frozen.weight" in output) == bool(frozen)
    assert "[ERROR]" not in output


def test_the_core_needs_no_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an adapter of another framework does: names and arrays, nothing else."""
    monkeypatch.chdir(tmp_path)
    folder = GOLDEN / "ms_pynative_l2"
    config = collect_config.resolve(PYTORCH, str(folder / "config.json"))
    probe = _native.GradientProbe(config)
    for step in range(3):
        if not config.wants_step(step):
            continue
        begun = probe.begin(0, step)
        assert begun is not None
        with numpy.load(folder / "inputs" / f"grads_step{step}.npz") as arrays:
            for position, name in enumerate(arrays.files):
                assert begun.add(position, name, describe(arrays[name])) is None
        begun.finish()
    probe.flush()
    assert probe.take_failure() is None
    same_files(tmp_path / "output", folder / "output")
