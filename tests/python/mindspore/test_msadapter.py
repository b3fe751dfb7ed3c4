"""PyTorch's functions on MindSpore's tensors, with a small stand-in for them."""

from __future__ import annotations

from pathlib import Path

from .nets import write_config
from .recorded import read, run

STAND_IN = '''
"""What MSAdapter is to msprobe: a module torch whose tensors are MindSpore's."""
import sys
import types
import mindspore as ms
from mindspore import nn as ms_nn, ops

torch = types.ModuleType("torch")
torch.Tensor, torch.tensor = ms.Tensor, ms.Tensor
torch.nn = types.ModuleType("torch.nn")
torch.nn.functional = types.ModuleType("torch.nn.functional")

class Module(ms_nn.Cell):
    def __init__(self):
        super().__init__()
    def construct(self, *args, **kwargs):
        return self.forward(*args, **kwargs)
    def named_modules(self):
        return self.cells_and_names()
    @property
    def _parameters(self):
        return self._params

torch.nn.Module = Module
torch.nn.functional.relu = lambda input: ops.relu(input)
torch.matmul = lambda input, other: ops.matmul(input, other)
for name in ("torch", "torch.nn", "torch.nn.functional"):
    sys.modules[name] = torch if name == "torch" else eval(name)
'''

SCRIPT = """
import numpy as np
import mindspore as ms
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
import stand_in
import torch
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger("config.json")

class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(np.eye(3, dtype=np.float32)), name="weight")
    def forward(self, x):
        return torch.matmul(x, self.weight)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = Linear()
    def forward(self, x):
        return torch.nn.functional.relu(self.fc(x))

net = Net()
x = torch.tensor(np.ones((2, 3), np.float32))
debugger.start(net)
ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(x)
debugger.stop()
debugger.step()
"""


def test_names_of_the_one_and_values_of_the_other(tmp_path: Path) -> None:
    write_config(tmp_path, "mix", "tensor")
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "run.py").write_text(SCRIPT)
    run(tmp_path)
    step = tmp_path / "output/step0/rank"
    dump = read(step / "dump.json")
    assert dump["framework"] == "mindtorch"
    names = list(dump["data"])
    assert names[:3] == [
        "Torch.matmul.0.forward",
        "Module.fc.Linear.forward.0",
        "Module.fc.Linear.parameters_grad",
    ]
    assert "Functional.relu.0.forward" in names and "Module.fc.Linear.backward.0" in names
    assert read(step / "construct.json")["Torch.matmul.0.forward"] == "Module.fc.Linear.forward.0"
    tensor = dump["data"]["Torch.matmul.0.forward"]["output"][0]
    assert tensor["type"] == "mindspore.Tensor" and tensor["dtype"] == "Float32"
    assert (step / "dump_tensor_data" / "Module.fc.Linear.parameters_grad.weight.npy").is_file()
