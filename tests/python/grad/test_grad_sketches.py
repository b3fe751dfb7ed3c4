"""Gradients kept as sketches: real training, two runs, and what is said of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from msprobe import GradComparator
from tests.python.grad.probing import listing, monitor, names

STEPS = 5
SKETCHED = {"sketch": True}


class Run:
    """A small MLP in training; remembers the gradients the probe was shown."""

    def __init__(self, folder: Path, section: dict[str, Any], dtype: torch.dtype = torch.float32) -> None:
        folder.mkdir()
        self.path = folder / "out"
        self.gradients: list[dict[str, torch.Tensor]] = []
        self._probe = monitor(folder, section)
        torch.manual_seed(3)
        self.model = nn.Sequential(
            nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 8)
        )
        self.model.to(dtype)
        self._dtype = dtype
        self._probe.monitor([self.model])

    def train(self, perturbed: str | None = None, noise: float = 0.0) -> Run:
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        random = torch.Generator().manual_seed(11)
        others = torch.Generator().manual_seed(12)
        for step in range(STEPS):
            inputs = torch.randn(32, 64, generator=random).to(self._dtype)
            optimizer.zero_grad()
            self.model(inputs).float().square().mean().backward()
            for name, parameter in self.model.named_parameters():
                assert parameter.grad is not None
                if name == perturbed and step >= 2:
                    parameter.grad += parameter.grad.std() * torch.randn(parameter.shape, generator=others)
                if noise:
                    factors = 1 + noise * torch.randn(parameter.shape, generator=others)
                    parameter.grad *= factors.to(parameter.grad.dtype)
            kept = {name: item.grad.clone() for name, item in self.model.named_parameters()}
            self.gradients.append(kept)
            optimizer.step()
        self._probe.flush()
        return self


def compared(first: Run, second: Run, output: Path) -> dict[str, Any]:
    GradComparator.compare_distributed(first.path, second.path, output, pictures="none", html=False)
    verdict: dict[str, Any] = json.loads((output / "verdict.json").read_text())
    return verdict


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    angle = torch.nn.functional.cosine_similarity(a.double().flatten(), b.double().flatten(), dim=0)
    return float(angle)


def test_files_stay_as_they_are_without_the_key(tmp_path: Path) -> None:
    plain, off = Run(tmp_path / "a", {}).train(), Run(tmp_path / "b", {"sketch": False}).train()
    assert listing(plain.path) == listing(off.path)
    for name in listing(plain.path):
        assert (plain.path / name).read_bytes() == (off.path / name).read_bytes(), name
    sketched = Run(tmp_path / "c", SKETCHED).train()
    found = listing(sketched.path)
    assert found == sorted(
        [f"rank0/grad_summary_{step}.csv" for step in range(STEPS)]
        + [f"rank0/step{step}/sketches.json" for step in range(STEPS)]
    )
    for step in range(STEPS):
        table = f"rank0/grad_summary_{step}.csv"
        assert (plain.path / table).read_bytes() == (sketched.path / table).read_bytes()
        content = json.loads((sketched.path / f"rank0/step{step}/sketches.json").read_text())
        assert content["version"] == 1
        assert list(content["sketches"]) == names(sketched.path, step), "in the order of the model"
        assert (sketched.path / f"rank0/step{step}/sketches.json").stat().st_mode & 0o7777 == 0o640


def test_equal_runs_are_identical(tmp_path: Path) -> None:
    first, second = (Run(tmp_path / name, SKETCHED).train() for name in "ab")
    verdict = compared(first, second, tmp_path / "out")
    assert verdict["status"] == "identical"


@pytest.mark.parametrize("culprit", ["0.weight", "2.bias", "4.weight"])
def test_a_perturbed_parameter_is_named(culprit: str, tmp_path: Path) -> None:
    first = Run(tmp_path / "a", SKETCHED).train(perturbed=culprit)
    second = Run(tmp_path / "b", SKETCHED).train()
    verdict = compared(first, second, tmp_path / "out")
    assert (verdict["status"], verdict["step"]) == ("diverged", 2)
    assert verdict["parameters"] == [culprit]
    (curve,) = [curve for curve in verdict["ranks"][0]["curves"] if curve["name"] == culprit]
    flag = curve["flagged"][0]
    low, high = flag["cosine_interval_95"]
    assert low <= flag["cosine"] <= high < 1
    assert "95 of 100 cases" in verdict["text"]


def test_noise_of_bfloat16_is_called_diverged_no_more_often_than_by_signs(tmp_path: Path) -> None:
    verdicts = {}
    for form, section in (("signs", {}), ("sketches", SKETCHED)):
        exact = Run(tmp_path / f"{form}_exact", section, torch.bfloat16).train()
        noisy = Run(tmp_path / f"{form}_noisy", section, torch.bfloat16).train(noise=2**-8)
        verdicts[form] = compared(noisy, exact, tmp_path / f"{form}_out")["status"]
    assert verdicts["sketches"] == "within_tolerance"
    assert verdicts["signs"] in ("within_tolerance", "diverged")


def test_cosines_are_near_those_of_the_gradients(tmp_path: Path) -> None:
    first = Run(tmp_path / "a", SKETCHED).train(noise=0.2)
    second = Run(tmp_path / "b", SKETCHED).train()
    compared(first, second, tmp_path / "out")
    rows = table(tmp_path / "out/rank0/cosines.csv")
    assert [row["step"] for row in rows[:-1]] == list(first.gradients[0])
    inside, cells = 0, 0
    for row in rows[:-1]:
        for step in range(STEPS):
            a, b = first.gradients[step][row["step"]], second.gradients[step][row["step"]]
            true, found = cosine(a, b), float(row[str(step)])
            cells += 1
            # Half and twice the angle: a quarter and four times this.
            inside += (1 - true) / 4 <= 1 - found <= (1 - true) * 4
    assert inside >= 0.95 * cells
    whole = [torch.cat([part.flatten() for part in run.gradients[1].values()]) for run in (first, second)]
    assert abs(float(rows[-1]["1"]) - cosine(*whole)) < 0.05


def test_cosines_between_steps(tmp_path: Path) -> None:
    run = Run(tmp_path / "a", SKETCHED).train()
    compared(run, run, tmp_path / "out")
    rows = table(tmp_path / "out/rank0/step_cosines.csv")
    assert [row["run"] for row in rows] == ["first"] * 7 + ["second"] * 7
    errors = []
    for row in rows[:6]:
        assert row["0"] == ""
        for step in range(1, STEPS):
            true = cosine(run.gradients[step][row["step"]], run.gradients[step - 1][row["step"]])
            errors.append(abs(float(row[str(step)]) - true))
    # Gradients of other batches are nearly at right angles, where an estimate is off by a quarter.
    assert sum(errors) / len(errors) < 0.3 and max(errors) < 0.9


def test_signs_and_sketches_cannot_be_compared(tmp_path: Path) -> None:
    sketched = Run(tmp_path / "a", SKETCHED).train()
    signed = Run(tmp_path / "b", {}).train()
    with pytest.raises(RuntimeError, match="these cannot be compared"):
        compared(sketched, signed, tmp_path / "out")


def test_a_sketch_needs_no_signs(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="compact_direction and sketch cannot both be true"):
        Run(tmp_path / "a", {"sketch": True, "compact_direction": True})
    low = Run(tmp_path / "b", {"sketch": True, "grad_level": "L0"}).train()
    assert not list(low.path.rglob("sketches.json")), "the lowest level has no directions"
