"""A small network and its training, as text for scripts: the same with and without the tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEAD = """
import hashlib
import numpy as np
import mindspore as ms
from mindspore import nn, ops, mint, Tensor, Parameter
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(7)
rng = np.random.RandomState(3)

def array(*shape):
    return Tensor(rng.randn(*shape).astype(np.float32))

class Branch(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 8, weight_init=array(8, 8), bias_init=array(8))
        self.norm = nn.LayerNorm((8,))
    def construct(self, x, scale):
        y = self.norm(self.fc(x))
        return y * scale, ops.sigmoid(y)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.branch = Branch()
        self.head = nn.SequentialCell(nn.Dense(8, 4, weight_init=array(4, 8)), nn.Tanh())
        self.scale = Parameter(Tensor(np.float32(0.5)), name="scale")
        self.add = ops.Add()
    def construct(self, x):
        a, b = self.branch(x, self.scale)
        a, c = self.branch(self.add(a, b) + x, self.scale)
        # One tensor in three places: its gradient is a sum of three.
        return self.head(a * c + a + mint.add(a, b))

net = Net()
net.set_train()
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
loss_fn = nn.MSELoss()
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
x, y = array(5, 8), array(5, 4)

def fingerprint(loss, grads):
    text = loss.asnumpy().tobytes() + b"".join(each.asnumpy().tobytes() for each in grads)
    text += b"".join(each.asnumpy().tobytes() for each in optimizer.parameters)
    return hashlib.md5(text).hexdigest()
"""

TRAINING = """
for step in range(3):
    if debugger is not None:
        debugger.start(net)
    loss, grads = grad_fn(x, y)
    optimizer(grads)
    if debugger is not None:
        debugger.stop()
        debugger.step()
    print("FINGERPRINT", fingerprint(loss, grads))
"""

DEBUGGER = """
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger("config.json")
"""


def write_config(folder: Path, level: str, task: str = "statistics", **more: Any) -> None:
    config = {"task": task, "dump_path": "./output", "level": level, **more}
    (folder / "config.json").write_text(json.dumps(config))


def fingerprints(said: str) -> list[str]:
    return [line.split()[1] for line in said.splitlines() if line.startswith("FINGERPRINT")]
