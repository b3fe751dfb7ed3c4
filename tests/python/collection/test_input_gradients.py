"""``input_gradients``: backward records of functions hold the gradients of their inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.python.collection import runs

# A step that a loop runs with and without the tool. `keep` notes tensors whose gradients are asked for.
STEP = """
import torch.utils.checkpoint
torch.manual_seed(0)
weight = torch.randn(5, 8, requires_grad=True)
bias = torch.randn(5, requires_grad=True)
source = torch.randn(2, 3, 8, requires_grad=True)

def keep(name, tensor):
    tensor.retain_grad()
    kept[name] = tensor
    return tensor

def step():
    kept.clear()
    x = keep("x", source * 1.5)
    h = keep("h", F.linear(x, weight, bias=bias))
    squared = keep("squared", torch.mul(h, h))
    inplace = keep("inplace", torch.relu(squared) * 1.0)
    changed = torch.clone(inplace).mul_(3.0)
    first, second = torch.split(changed, [2, 3], dim=-1)
    joined = keep("joined", torch.cat([second, first], dim=-1))
    norm = keep("norm", F.layer_norm(joined, (5,), weight=torch.ones(5), bias=None))
    same = F.dropout(norm, 0.5, training=False)
    again = torch.utils.checkpoint.checkpoint(lambda value: torch.exp(value * 0.1), same, use_reentrant=False)
    (again.square().sum() + h[..., 0].sum()).backward()

kept = {}
"""


def collected(folder: Path, level: str, task: str) -> runs.Result:
    script = (
        STEP
        + """
model = nn.Identity()
debugger.start(model); step(); debugger.stop(); debugger.step()
result({name: value.grad.tolist() for name, value in {**kept, "weight": weight, "bias": bias}.items()})
"""
    )
    return runs.run_script(folder, script, runs.config(level, task, input_gradients=True)).ok()


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_records_hold_the_gradients_of_inputs(tmp_path: Path, level: str) -> None:
    result = collected(tmp_path, level, "tensor")
    grads = {name: torch.tensor(values) for name, values in result.printed().items()}
    saved = result.path() / "dump_tensor_data"

    def gradients(record: str, role: str) -> list[Any]:
        values = result.data()[record][role]
        return [value and torch.load(saved / value["data_name"]) for value in values]

    def assert_equal(found: list[Any], *names: str) -> None:
        assert len(found) == len(names)
        for tensor, name in zip(found, names):
            assert torch.equal(tensor, grads[name]), name

    # Of three dimensions, the node at the output is a reshape: its gradient is that of nobody.
    linear = "Functional.linear.0.backward"
    assert [list(value["shape"]) for value in result.data()[linear]["input"]] == [[2, 3, 5]]
    x, weight, bias = gradients(linear, "output")
    assert torch.equal(weight, grads["weight"]) and torch.equal(bias, grads["bias"])
    assert torch.equal(x, grads["x"])
    assert_equal(gradients("Torch.cat.0.backward", "input"), "joined")
    assert_equal(gradients("Functional.layer_norm.0.backward", "output"), "joined")
    assert_equal(gradients("Torch.relu.0.backward", "output"), "squared")
    # The same tensor twice: its whole gradient through the call. Something else uses it too.
    both = gradients("Torch.mul.0.backward", "output")
    assert len(both) == 2 and torch.equal(both[0], both[1])
    through_index = torch.zeros(2, 3, 5)
    through_index[..., 0] = 1.0
    assert torch.allclose(both[0] + through_index, grads["h"])
    assert len(gradients("Torch.cat.0.backward", "output")) == 2


def test_training_keeps_its_bits(tmp_path: Path) -> None:
    with_tool = collected(tmp_path / "with", "mix", "statistics").printed()
    script = (
        STEP
        + """
step()
result({name: value.grad.tolist() for name, value in {**kept, "weight": weight, "bias": bias}.items()})
"""
    )
    assert with_tool == runs.run_script(tmp_path / "without", script).ok().printed()


def test_two_implementations_of_a_function_have_records_of_one_form(tmp_path: Path) -> None:
    """A custom function with its own autograd node instead of torch's: names, shapes and numbers agree."""
    other = """
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.ops.aten.matmul(x, weight.t()) + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        flat = grad.reshape(-1, grad.shape[-1])
        return grad @ weight, flat.t() @ x.reshape(-1, x.shape[-1]), flat.sum(0)

F.linear = lambda x, weight, bias=None: Linear.apply(x, weight, bias)
"""
    body = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3))
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start(model)
model(torch.randn(2, 4, 8)).square().sum().backward()
debugger.stop(); debugger.step()
"""
    data = {}
    for name, extra in {"own": "", "other": other}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(runs.config(input_gradients=True)))
        data[name] = runs.run_script(folder, extra + body).ok().data()
    backward = [name for name in data["own"] if name.startswith("Functional.linear") and "backward" in name]
    assert len(backward) == 2
    for record in backward:
        for role in ("input", "output"):
            own, others = data["own"][record][role], data["other"][record][role]
            assert [value["shape"] for value in own] == [value["shape"] for value in others]
            for value, partner in zip(own, others):
                assert value["Norm"] == pytest.approx(partner["Norm"], rel=1e-5)


def test_the_switch_is_a_boolean(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, "", runs.config(input_gradients="yes"))
    assert result.returncode != 0
    assert "input_gradients is invalid, it should be a boolean" in result.stdout + result.stderr
