"""Key data of two kinds of devices: another order of sums is no finding, a fault beside it is."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .test_rl_command import rl_compare, save, verdict

STEPS = 3


class Policy(nn.Module):  # type: ignore[misc]
    """A small language model; ``order`` is that in which the device sums up its products."""

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order
        self.embed = nn.Embedding(64, 48)
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(6))
        self.head = nn.Linear(48, 64)

    def product(self, layer: nn.Linear, x: Tensor) -> Tensor:
        if self.order == 0:
            return F.linear(x, layer.weight, layer.bias)
        parts = [
            F.linear(x[..., at : at + self.order], layer.weight[:, at : at + self.order])
            for at in range(0, x.shape[-1], self.order)
        ]
        return torch.stack(parts).sum(0) + layer.bias

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + torch.tanh(self.product(layer, x))
        logits = self.product(self.head, x).float()
        return logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def train(root: Path, order: int, dtype: torch.dtype, reference_scale: float = 1.0) -> Path:
    """Three updates of a policy; what a trainer would save of them."""
    torch.manual_seed(1)
    actor, reference = Policy(order).to(dtype), Policy(order).to(dtype)
    reference.load_state_dict(actor.state_dict())
    prompts = torch.randint(64, (4, 12), generator=torch.Generator().manual_seed(2))
    rewards = torch.linspace(-1, 1, 4).unsqueeze(-1)
    for step in range(STEPS):
        place = f"step{step}/rank0/micro_step0"
        with torch.no_grad():
            old, ref = actor(prompts), reference(prompts) * reference_scale
        new = actor(prompts)
        kl = (ref - new).exp() - (ref - new) - 1
        loss = (-rewards * (new - old).exp() + 0.1 * kl).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in actor.parameters():
                assert parameter.grad is not None
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        saved = {"prompts": prompts, "old_log_prob": old, "ref_log_prob": ref, "log_prob": new}
        saved |= {"advantages": rewards, "kl_loss": kl, "loss": loss}
        for key, values in saved.items():
            save(root, key, values.detach().float().numpy(), place)
    return root


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_order_of_sums_is_within_tolerance_and_a_fault_is_not(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    golden = train(tmp_path / "golden", 0, dtype)
    for order in (5, 16):
        done = rl_compare(train(tmp_path / f"order{order}", order, dtype), golden, tmp_path / "out")
        assert done.returncode == 0, done.stdout
        found = verdict(tmp_path / "out")
        assert (found["status"], found["limits"]) == ("within_tolerance", "rounding"), done.stdout
    broken = train(tmp_path / "broken", 16, dtype, reference_scale=1.05)
    for first, second in ((broken, golden), (golden, broken)):
        done = rl_compare(first, second, tmp_path / "out")
        found = verdict(tmp_path / "out")
        assert (done.returncode, found["key"], found["step"]) == (1, "ref_log_prob", 0), done.stdout


def test_noise_runs_show_what_the_model_of_rounding_cannot_know(tmp_path: Path) -> None:
    golden = train(tmp_path / "golden", 0, torch.bfloat16)
    noise = [train(tmp_path / f"noise{order}", order, torch.bfloat16) for order in (3, 7)]
    flags = [flag for run in noise for flag in ("--noise", str(run))]
    done = rl_compare(train(tmp_path / "other", 16, torch.bfloat16), golden, tmp_path / "out", *flags)
    assert (done.returncode, verdict(tmp_path / "out")["limits"]) == (0, "noise"), done.stdout
    # One per cent is less than what the model tolerates of bfloat16, and more than the noise.
    broken = train(tmp_path / "broken", 16, torch.bfloat16, reference_scale=1.012)
    assert rl_compare(broken, golden, tmp_path / "out").returncode == 0
    done = rl_compare(broken, golden, tmp_path / "out", *flags)
    assert (done.returncode, verdict(tmp_path / "out")["key"]) == (1, "ref_log_prob"), done.stdout


def test_runs_on_one_machine_are_judged_to_the_last_bit(tmp_path: Path) -> None:
    golden = train(tmp_path / "golden", 0, torch.float32)
    again = train(tmp_path / "again", 0, torch.float32)
    assert verdict_of(again, golden, tmp_path)["status"] == "identical"
    path = again / "data" / "old_log_prob" / "step1" / "rank0" / "micro_step0" / "old_log_prob.npy"
    values = numpy.load(path)
    values.flat[3] = numpy.nextafter(values.flat[3], numpy.float32(0))
    numpy.save(path, values)
    found = verdict_of(again, golden, tmp_path)
    assert (found["status"], found["key"], found["limits"]) == ("diverged", "old_log_prob", "exact")
    assert rl_compare(again, golden, tmp_path / "out", "--tolerance", "1e-5").returncode == 0
    refused = rl_compare(again, golden, tmp_path / "out", "--tolerance", "much")
    assert refused.returncode == 2 and "is not a tolerance" in refused.stderr


def verdict_of(first: Path, second: Path, folder: Path) -> dict[str, object]:
    rl_compare(first, second, folder / "out")
    return verdict(folder / "out")
