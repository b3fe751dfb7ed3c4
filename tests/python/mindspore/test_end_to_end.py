"""The same network in MindSpore and in PyTorch: collected, compared, and the broken cell named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .nets import write_config
from .recorded import run

ROOT = Path(__file__).parents[3]
# PyTorch has an environment of its own; the package is the same.
TORCH_PYTHON = Path(os.environ.get("MSPROBE_TORCH_PYTHON", ROOT / ".venv/bin/python"))

MINDSPORE = """
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger("config.json")
weights = np.load("../weights.npz")

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(6, 5, weight_init=Tensor(weights["w1"]), bias_init=Tensor(weights["b1"]))
        self.act = nn.Tanh()
        self.fc2 = nn.Dense(5, 3, weight_init=Tensor(weights["w2"]), bias_init=Tensor(weights["b2"]))
    def construct(self, x):
        return self.fc2(self.act(self.fc1(x)))

net = Net()
BREAK
x = Tensor(weights["x"])
grad_fn = ms.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params())
debugger.start(net)
grad_fn(x)
debugger.stop()
debugger.step()
"""

BREAK = """
construct = net.act.construct
net.act.construct = lambda x: construct(x) * 1.05
"""

PYTORCH = """
import numpy as np
import torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger("config.json")
weights = np.load("../weights.npz")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 5)
        self.act = nn.Tanh()
        self.fc2 = nn.Linear(5, 3)
    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))

net = Net()
with torch.no_grad():
    for layer, number in ((net.fc1, 1), (net.fc2, 2)):
        layer.weight.copy_(torch.from_numpy(weights[f"w{number}"]))
        layer.bias.copy_(torch.from_numpy(weights[f"b{number}"]))
debugger.start(net)
net(torch.from_numpy(weights["x"]).requires_grad_()).sum().backward()
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    rng = np.random.RandomState(1)
    shapes = {"w1": (5, 6), "b1": (5,), "w2": (3, 5), "b2": (3,), "x": (4, 6)}
    np.savez(
        folder / "weights.npz",
        **{name: rng.randn(*shape).astype(np.float32) for name, shape in shapes.items()},
    )
    (folder / "cells.yaml").write_text("fc1.Dense: fc1.Linear\nfc2.Dense: fc2.Linear\n")
    side = folder / "golden"
    side.mkdir()
    write_config(side, "L0")
    (side / "run.py").write_text(PYTORCH)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([TORCH_PYTHON, "run.py"], cwd=side, env=environment, check=True, capture_output=True)
    return side


@pytest.mark.parametrize("is_broken", [False, True])
def test_across_frameworks(is_broken: bool, golden: Path) -> None:
    target = golden.parent / ("broken" if is_broken else "healthy")
    target.mkdir()
    write_config(target, "L0")
    (target / "run.py").write_text(MINDSPORE.replace("BREAK", BREAK if is_broken else ""))
    run(target)
    dumps = [str(side / "output/step0/rank") for side in (target, golden)]
    mapping = str(golden.parent / "cells.yaml")
    command = [sys.executable, "-m", "msprobe", "compare", "-tp", dumps[0], "-gp", dumps[1], "-cm", mapping]
    done = subprocess.run([*command, "-o", str(target / "out")], capture_output=True, text=True, check=False)
    if is_broken:
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Cell.act.Tanh.forward.0" in done.stdout
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("Within tolerance") or done.stdout.startswith("Identical"), done.stdout


def test_key_data_and_overflow_analysis(tmp_path: Path) -> None:
    write_config(tmp_path, "mix")
    (tmp_path / "run.py").write_text(
        """
import numpy as np
import mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
from msprobe.mindspore import PrecisionDebugger
from msprobe.core import SingleSave
debugger = PrecisionDebugger("config.json")
saver = SingleSave("keys", fmk="mindspore")
SingleSave.save({"rewards": Tensor(np.arange(3, dtype=np.float32))})
SingleSave.step()
net = nn.SequentialCell(nn.Dense(3, 3, weight_init="ones"))
debugger.start(net)
ops.log(net(Tensor(np.zeros((2, 3), np.float32))) - 1)
debugger.stop()
debugger.step()
"""
    )
    run(tmp_path)
    assert list((tmp_path / "keys").rglob("*.npy"))
    command = [sys.executable, "-m", "msprobe", "overflow_check", "-i", str(tmp_path / "output/step0")]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert "Functional.log.0.forward" in done.stdout, done.stdout + done.stderr
