"""Backward passes of modules are recorded in whichever thread autograd runs, and from the first node on.

The backward pass of an accelerator runs in a thread of its own, and its figures come later. Here another
thread calls ``backward``, and meta tensors stand for those on a device.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.collection.fake_device import FAKE_DEVICE

SCRIPT = """
import threading
import torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger
FAKE_DEVICE

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3, device="ON")
        self.b = nn.Linear(3, 3, device="ON")

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

model = nn.Sequential(Block(), Block())
debugger = PrecisionDebugger("./config.json")
for step in range(2):
    x = torch.ones(2, 3, device="ON", requires_grad=True)
    debugger.start(model)
    loss = model(x).square().sum()
    if IN_THREAD:
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    else:
        loss.backward()
    debugger.stop()
    debugger.step()
"""
MODULES = [
    "Module.1.b.Linear",
    "Module.1.a.Linear",
    "Module.1.Block",
    "Module.0.b.Linear",
    "Module.0.a.Linear",
    "Module.0.Block",
]


def run(folder: Path, device: str, in_thread: bool, level: str) -> runs.Result:
    script = SCRIPT.replace("FAKE_DEVICE", FAKE_DEVICE if device == "meta" else "")
    script = script.replace("IN_THREAD", str(in_thread)).replace('"ON"', f'"{device}"')
    config = {"task": "statistics", "dump_path": "./dump", "level": level, "statistics": {}}
    return runs.run_script(folder, script, config).ok()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_every_backward_pass_is_recorded(level: str, device: str, in_thread: bool, tmp_path: Path) -> None:
    result = run(tmp_path, device, in_thread, level)
    for step in range(2):
        passes = [name for name in result.data(step) if name.startswith("Module.") and ".backward." in name]
        assert passes == [f"{module}.backward.0" for module in MODULES]
        for name in passes:
            record = result.data(step)[name]
            for tensor in [*record["input"], *record["output"]]:
                assert tensor["shape"] == [2, 3] and isinstance(tensor["Norm"], float)
        construct = result.document("construct.json", step)
        for module in MODULES:
            parent = construct[f"{module}.backward.0"]
            outer = None if "Block" in module else f"Module.{module.split('.')[1]}.Block.backward.0"
            assert parent == outer


BEGIN = """
import torch
from torch import nn
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger("./config.json")

def leaf():
    return torch.ones(2, 4, requires_grad=True)

"""
END = """
debugger.stop()
debugger.step()
"""


def collect(folder: Path, script: str, level: str, task: str = "statistics", **options: Any) -> runs.Result:
    config = {"task": task, "dump_path": "./dump", "level": level, task: options}
    return runs.run_script(folder, BEGIN + textwrap.dedent(script) + END, config).ok()


def backward_tree(result: runs.Result) -> dict[str, str | None]:
    """Which backward pass is inside of which, in the order in which they began."""
    construct: dict[str, str | None] = result.document("construct.json")
    return {name: parent for name, parent in construct.items() if "backward" in name}


def backward_records(result: runs.Result) -> list[str]:
    return [name for name in result.data() if "backward" in name]


TWO_BACKWARDS = """
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    debugger.start(model)
    first, second = model(leaf()).sum(), model(leaf()).sum()
    first.backward()
    second.backward()
"""


def test_backward_passes_after_several_forward_passes(tmp_path: Path) -> None:
    result = collect(tmp_path, TWO_BACKWARDS, "L0")
    names = [f"Module.{module}.backward.{index}" for index in range(2) for module in ("1.Tanh", "0.Linear")]
    assert backward_tree(result) == dict.fromkeys(names)
    assert backward_records(result) == names


def test_a_graph_that_is_gone_through_twice(tmp_path: Path) -> None:
    script = """
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    debugger.start(model)
    loss = model(leaf()).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    model(leaf())
    """
    result = collect(tmp_path, script, "L0")
    assert set(result.document("construct.json").values()) == {None}
    assert backward_records(result) == ["Module.1.Tanh.backward.0", "Module.0.Linear.backward.0"]


def test_a_backward_pass_that_raises_leaves_nothing(tmp_path: Path) -> None:
    script = """
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("of the model")

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(Fails.apply(x))

    model = nn.Sequential(Block())
    debugger.start(model)
    try:
        model(leaf()).sum().backward()
    except ValueError:
        pass
    model(leaf())
    """
    construct = collect(tmp_path, script, "L0").document("construct.json")
    assert construct["Module.0.Block.forward.1"] is None
    assert construct["Module.0.fc.Linear.forward.1"] == "Module.0.Block.forward.1"


def test_what_is_called_during_backward_is_inside_the_module(tmp_path: Path) -> None:
    script = """
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight.register_hook(lambda grad: grad * 2)
    debugger.start(model)
    model(leaf()).sum().backward()
    """
    result = collect(tmp_path, script, "mix")
    assert result.document("construct.json")["Tensor.__mul__.0.forward"] == "Module.1.Linear.backward.0"
    assert backward_records(result)[-4:] == [
        "Functional.linear.1.backward",
        "Module.1.Linear.backward.0",
        "Functional.linear.0.backward",
        "Module.0.Linear.backward.0",
    ]


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_is_inside_the_module(reentrant: bool, tmp_path: Path) -> None:
    script = f"""
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return checkpoint(self.fc, x, use_reentrant={reentrant})

    model = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 4))
    debugger.start(model)
    model(leaf()).sum().backward()
    """
    result = collect(tmp_path, script, "L0")
    construct = result.document("construct.json")
    # Without reentrance it is a node of the module itself that needs what was thrown away.
    around = "Block" if reentrant else "fc.Linear"
    assert construct["Module.1.fc.Linear.forward.1"] == f"Module.1.{around}.backward.0"
    assert construct["Module.1.Block.backward.0"] is None
    assert [name for name in result.data() if "Block" in name or "2.Linear.backward" in name] == [
        "Module.1.Block.forward.0",
        "Module.2.Linear.backward.0",
        "Module.1.Block.backward.0",
    ]
    assert backward_records(result)[-1] == "Module.0.Linear.backward.0"


def test_a_dropout_that_does_nothing_does_not_end_the_block(tmp_path: Path) -> None:
    script = """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.drop = nn.Dropout(0.0)

        def forward(self, x, memory):
            return torch.tanh(self.drop(self.a(x))) + self.b(memory)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x, memory):
            return self.block(x, memory)

    model = Model()
    debugger.start(model)
    model(torch.ones(2, 4), leaf() * 2).sum().backward()
    """
    result = collect(tmp_path, script, "mix")
    tree = backward_tree(result)
    for name in ("Torch.tanh.0", "Functional.dropout.0", "Functional.linear.0"):
        assert tree[f"{name}.backward"] == "Module.block.Block.backward.0"
    assert backward_records(result)[-2:] == ["Module.block.Block.backward.0", "Tensor.__mul__.0.backward"]


def test_modules_that_give_their_input_back(tmp_path: Path) -> None:
    script = """
    model = nn.Sequential(
        nn.Identity(), nn.Linear(4, 4), nn.Sequential(nn.Sequential(nn.Dropout(0.0))), nn.Linear(4, 4)
    )
    debugger.start(model)
    model(leaf()).sum().backward()
    """
    result = collect(tmp_path, script, "L0")
    assert backward_tree(result) == {
        "Module.3.Linear.backward.0": None,
        "Module.2.Sequential.backward.0": None,
        "Module.2.0.Sequential.backward.0": "Module.2.Sequential.backward.0",
        "Module.2.0.0.Dropout.backward.0": "Module.2.0.Sequential.backward.0",
        "Module.1.Linear.backward.0": None,
        "Module.0.Identity.backward.0": None,
    }
    assert backward_records(result) == [
        "Module.3.Linear.backward.0",
        "Module.2.0.0.Dropout.backward.0",
        "Module.2.0.Sequential.backward.0",
        "Module.2.Sequential.backward.0",
        "Module.1.Linear.backward.0",
        "Module.0.Identity.backward.0",
    ]


MODEL = """
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Tanh())
    debugger.start(model)
    loss = model(leaf()).sum()
"""


@pytest.mark.parametrize("level", ["L0", "mix"])
@pytest.mark.parametrize(
    ("options", "end", "wanted"),
    [
        (
            {"list": ["Tanh"]},
            "",
            ["forward.0.input", "forward.0.output", "backward.0.input", "backward.0.output"],
        ),
        ({"list": ["Tanh"], "data_mode": ["backward", "input"]}, "", ["backward.0.input"]),
        ({"list": ["Tanh"]}, "debugger.stop()", ["forward.0.input", "forward.0.output"]),
        (
            {"scope": ["Module.2.Tanh.forward.0", "Module.2.Tanh.forward.0"]},
            "",
            ["forward.0.input", "forward.0.output"],
        ),
    ],
)
def test_only_records_have_tensor_files(
    options: dict[str, Any], end: str, wanted: list[str], level: str, tmp_path: Path
) -> None:
    script = MODEL + f"    {end}\n    loss.backward()\n"
    result = collect(tmp_path, script, level, "tensor", **options)
    files = sorted(
        path.name for path in (result.path() / "dump_tensor_data").iterdir() if "Module" in path.name
    )
    assert files == sorted(f"Module.2.Tanh.{part}.0.pt" for part in wanted)


def test_gradients_of_parameters_where_only_the_backward_pass_is_wanted(tmp_path: Path) -> None:
    scope = ["Module.2.Tanh.backward.0", "Module.0.Linear.backward.0"]
    data = collect(tmp_path, MODEL + "    loss.backward()\n", "L0", scope=scope).data()
    assert sorted(data) == [
        "Module.0.Linear.backward.0",
        "Module.0.Linear.parameters_grad",
        "Module.1.ReLU.backward.0",
        "Module.2.Tanh.backward.0",
    ]
    gradients = data["Module.0.Linear.parameters_grad"]
    assert list(gradients) == ["weight", "bias"] and gradients["bias"][0]["shape"] == [4]
