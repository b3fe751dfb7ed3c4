"""A perturbed run: last bits are changed, the same for the same seed, and nothing is left behind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from msprobe.pytorch import perturbed
from tests.python.compare.faults.score import binary

from . import runs

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def bits(values: torch.Tensor) -> torch.Tensor:
    return values.detach().clone().view(BITS[values.element_size()]).to(torch.int64)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_last_bits_change_by_one_and_come_back(dtype: torch.dtype) -> None:
    model = nn.Linear(40, 30).to(dtype)
    with torch.no_grad():
        model.bias[:3] = torch.tensor([0.0, float("inf"), torch.finfo(dtype).max])
    before = [bits(each) for each in model.parameters()]
    state = torch.get_rng_state()
    with perturbed(model, seed=3):
        inside = [bits(each) for each in model.parameters()]
    for was, is_inside, after in zip(before, inside, map(bits, model.parameters())):
        moved = (is_inside - was).abs()
        assert moved.max() == 1
        assert 0.4 < float((moved == 1).double().mean()) < 0.9
        assert torch.equal(was, after)
    assert torch.equal(inside[1][:3], before[1][:3])
    assert torch.equal(state, torch.get_rng_state())
    assert not model._forward_pre_hooks


def test_the_seed_decides() -> None:
    model = nn.Linear(40, 30)

    def run(seed: int) -> torch.Tensor:
        with perturbed(model, seed=seed):
            return bits(model.weight)

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_inputs_change_and_keep_their_gradient() -> None:
    model = nn.Identity()
    values = torch.randn(1000, requires_grad=True)
    with perturbed(model):
        result = model(values)
    moved = (bits(result) - bits(values)).abs()
    assert moved.max() == 1
    result.sum().backward()
    assert torch.equal(values.grad, torch.ones(1000))
    with perturbed(model):
        assert torch.equal(model(torch.arange(5)), torch.arange(5))


def test_an_exception_leaves_the_model_as_it_was() -> None:
    model = nn.Linear(4, 3)
    before = bits(model.weight)
    with pytest.raises(ValueError, match="stop"), perturbed(model):
        raise ValueError("stop")
    assert torch.equal(bits(model.weight), before)


SCRIPT = """
from contextlib import nullcontext
from msprobe.pytorch import perturbed

class Scaled(nn.Linear):
    def forward(self, values):
        return super().forward(values) * SCALE

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), Scaled(128, 64), nn.LayerNorm(64)).bfloat16()
data = torch.randn(32, 64).bfloat16()
debugger.start(model)
with nullcontext() if SEED is None else perturbed(model, seed=SEED):
    model(data).float().square().mean().backward()
debugger.stop()
debugger.step()
"""


def test_noise_of_a_perturbed_run_is_tolerated_and_a_fault_is_not(tmp_path: Path) -> None:
    def collect(name: str, seed: int | None, scale: float = 1.0) -> Path:
        script = SCRIPT.replace("SEED", str(seed)).replace("SCALE", str(scale))
        runs.run_script(tmp_path / name, script, runs.config(level="L0")).ok()
        return tmp_path / name / "dump"

    golden, noise = collect("golden", None), collect("noise", 1)
    healthy, broken = collect("healthy", 2), collect("broken", 3, scale=1.2)

    def compare(target: Path) -> tuple[int, dict[str, object]]:
        out = tmp_path / f"out_{target.parent.name}"
        command = [str(binary()), "compare", str(target), str(golden), "--noise", str(noise), "-o", str(out)]
        done = subprocess.run(command, capture_output=True)
        return done.returncode, json.loads((out / "verdict.json").read_text())

    code, verdict = compare(healthy)
    assert (code, verdict["status"], verdict["noise_runs"]) == (0, "within_tolerance", 1)
    code, verdict = compare(broken)
    assert (code, verdict["status"]) == (1, "diverged")
    assert verdict["culprit"] == "Module.2.Scaled.forward.0"
