"""torch.compile: compiled as without the tool, recorded from outside, and said once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs

# Functions of all kinds: some are part of the graph, some (pad, interpolate) are read by the compiler, and
# compiled code is used again only as long as they are what they were.
COMPILED = """
import warnings
warnings.simplefilter("ignore")
import torch._dynamo
torch._dynamo.config.error_on_recompile = True
backend = "BACKEND"

def f(x):
    y = F.softmax(F.dropout(F.layer_norm(x, (4,)), 0.0), -1)
    y = F.max_pool2d(y[None], 1)[0] + F.gelu(x).exp() + x.norm() + F.relu(x) + torch.einsum("ij,jk->ik", x, x)
    y = F.interpolate(y[None, None], scale_factor=1.0)[0, 0] + F.group_norm(x, 1) + F.pad(x, (0, 0)) + 1 / x
    return F.cross_entropy(y, torch.zeros(4, dtype=torch.long)) + (-y).mean()

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return F.pad(F.relu(self.linear(x)), (0, 0))

# Compiled code belongs to a function, and these are given different inputs.
class Second(Block):
    def forward(self, x):
        return F.pad(F.relu(self.linear(x)), (0, 0))

class Third(Block):
    def forward(self, x):
        return F.pad(F.relu(self.linear(x)), (0, 0))

class Root(Block):
    def forward(self, x):
        return F.pad(F.relu(self.linear(x)), (0, 0))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = torch.compile(Second(), backend=backend)
        self.third = Third()
        self.third.compile(backend=backend)

    def forward(self, x):
        return torch.tanh(self.third(self.second(self.first(x))))

def train(model, x):
    model.zero_grad()
    loss = model(x).sum() + compiled(x)
    loss.backward()
    return [loss.item(), *(p.grad.tolist() for p in model.parameters())]

torch.manual_seed(0)
x = torch.rand(4, 4) + 1
model = Model()
compiled = torch.compile(f, backend=backend)
root = torch.compile(Root(), backend=backend)
wanted = train(model, x), root(x).tolist()
debugger = PrecisionDebugger(config_path="./config.json")
outcome = [train(model, x) == wanted[0]]
for step in range(2):
    debugger.start(model)
    outcome.append(train(model, x) == wanted[0])
    debugger.stop()
    outcome.append(train(model, x) == wanted[0])
    debugger.step()
debugger.start(root)
outcome.append(root(x).tolist() == wanted[1])
torch.atan(x)
debugger.stop()
debugger.step()
torch._dynamo.reset()
debugger.start(model)
compiled = torch.compile(f, backend=backend)
outcome.append(train(model, x)[0] == wanted[0][0])
torch.atan(x)
debugger.stop()
debugger.step()
result(outcome)
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_is_recorded_from_outside(tmp_path: Path, backend: str) -> None:
    source = COMPILED.replace("BACKEND", backend)
    (tmp_path / "config.json").write_text(
        '{"task": "statistics", "dump_path": "./dump", "level": "mix", "statistics": {}}'
    )
    run = runs.run_script(tmp_path, source).ok()
    assert run.printed() == [True] * 7
    for step in range(2):
        forward = [name for name in run.data(step) if "forward" in name]
        # Before the loss: all of the model, nothing inside what is compiled.
        assert forward[:8] == [
            "Functional.linear.0.forward",
            "Module.first.linear.Linear.forward.0",
            "Functional.relu.0.forward",
            "Functional.pad.0.forward",
            "Module.first.Block.forward.0",
            "Module.second.Second.forward.0",
            "Module.third.Third.forward.0",
            "Torch.tanh.0.forward",
        ]
        assert not [name for name in run.data(step) if "stride" in name or "softmax" in name]
        assert "Module.second.Second.backward.0" in run.data(step)
    assert list(run.data(2)) == ["Module._orig_mod.Root.forward.0", "Torch.atan.0.forward"]
    assert "Torch.atan.0.forward" in run.data(3)
    assert not [name for name in run.data(3) if "softmax" in name or "einsum" in name]
    said = [line for line in run.log if "inside of torch.compile" in line]
    assert len(said) == 1
