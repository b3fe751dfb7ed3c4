"""What the tool does for its own sake is seen by nobody: no subclass, no mode, no saved model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.collection import runs

MODEL = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_subclasses_and_modes_see_only_what_is_called(tmp_path: Path, level: str) -> None:
    script = (
        MODEL
        + """
from torch.overrides import TorchFunctionMode

seen = []

class Watching(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", str(func)))
        torch.rand(1)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))

def work():
    seen.clear()
    torch.manual_seed(1)
    x = torch.ones(2, 3).as_subclass(Watching)
    model(x)
    torch.relu(x)
    y = torch.ones(2, 3)
    with Mode():
        torch.relu(model(y)).sum().backward()
    return list(seen), torch.rand(2).tolist()

before = work()
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start(model=model)
inside = work()
debugger.stop()
debugger.step()
result([before, inside, work()])
"""
    )
    before, inside, after = runs.run_script(tmp_path, script, runs.config(level)).ok().printed()
    assert "relu" in before[0]
    assert inside == before
    assert after == before


def test_parameters_can_be_exchanged_after_a_window(tmp_path: Path) -> None:
    script = (
        MODEL
        + """
debugger = PrecisionDebugger(config_path="./config.json")
def step():
    debugger.start(model=model)
    model(torch.ones(1, 3, dtype=model[0].weight.dtype)).sum().backward()
    debugger.stop()
    debugger.step()
step()
model.zero_grad()
torch.__future__.set_swap_module_params_on_conversion(True)
model.double()
step()
result(str(model[0].weight.dtype))
"""
    )
    done = runs.run_script(tmp_path, script, runs.config("mix")).ok()
    assert done.printed() == "torch.float64"
    assert done.data()["Module.0.Linear.parameters_grad"]["weight"][0]["dtype"] == "torch.float32"
    # torch does not call hooks of a parameter that was exchanged, the user's neither; the rest is recorded.
    assert done.data(1)["Module.0.Linear.forward.0"]["output"][0]["dtype"] == "torch.float64"


def test_a_saved_model_does_not_need_the_tool(tmp_path: Path) -> None:
    script = (
        MODEL
        + """
import copy, subprocess, sys
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start(model=model)
model(torch.ones(1, 3))
debugger.stop()
debugger.step()
torch.save(model, "model.pt")
torch.save(copy.deepcopy(model), "copy.pt")
LOAD = '''
import sys
sys.modules["msprobe"] = None
import torch
for name in ("model.pt", "copy.pt"):
    print(torch.load(name, weights_only=False)(torch.ones(1, 3)).sum().item())
'''
found = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True)
loaded = torch.load("model.pt", weights_only=False)
debugger.start(model=loaded)
loaded(torch.ones(1, 3))
debugger.stop()
debugger.step()
result([found.stdout.split(), found.stderr, model(torch.ones(1, 3)).sum().item()])
"""
    )
    done = runs.run_script(tmp_path, script, runs.config("L0")).ok()
    sums, errors, expected = done.printed()
    assert [float(number) for number in sums] == [expected, expected], errors
    assert "Module.0.Linear.forward.0" in done.data(1)


def test_export_inside_a_window(tmp_path: Path) -> None:
    script = """
model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.ReLU())
x = torch.ones(1, 3, 4)
import torch.export
def graphs():
    return [str(torch.export.export(model, (x,), strict=strict).graph) for strict in (True, False)]
before = graphs()
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start(model=model)
model(x)
inside = graphs()
debugger.stop()
debugger.step()
result([before, inside])
"""
    done = runs.run_script(tmp_path, script, runs.config("L1")).ok()
    before, inside = done.printed()
    assert inside == before
    assert list(done.data()) == ["Functional.conv1d.0.forward", "Functional.relu.0.forward"]


def test_tensors_without_elements_are_nobodys_calls(tmp_path: Path) -> None:
    script = """
from torch._subclasses.fake_tensor import FakeTensorMode
mode = FakeTensorMode()
with mode:
    torch.relu(torch.ones(3))
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start()
with mode:
    fake = torch.relu(torch.ones(3))
fake.stride()
torch.relu(torch.ones(3))
debugger.stop()
debugger.step()
"""
    done = runs.run_script(tmp_path, script, runs.config("L1")).ok()
    assert list(done.data()) == ["Torch.relu.0.forward"]
    assert "could not be measured" not in done.stdout


def test_complex32_has_two_parts(tmp_path: Path) -> None:
    script = """
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start()
for imaginary in (2.0, 7.0):
    torch.cat([torch.complex(torch.tensor([1.0]), torch.tensor([imaginary])).to(torch.complex32)])
debugger.stop()
debugger.step()
"""
    done = runs.run_script(tmp_path, script, runs.config("L1", section={"summary_mode": "md5"})).ok()
    first, second = (done.data()[f"Torch.cat.{call}.forward"]["output"][0] for call in (0, 1))
    assert first["Max"] == pytest.approx(5**0.5)
    assert first["md5"] != second["md5"]


def test_a_tensor_list_that_matches_nothing_says_so(tmp_path: Path) -> None:
    script = """
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start()
torch.relu(torch.ones(3))
debugger.stop()
debugger.step()
"""
    section = {"tensor_list": ["rellu", "relu", "x.parameters_grad"]}
    done = runs.run_script(tmp_path, script, runs.config("L1", section=section)).ok()
    told = [line for line in done.log if "tensor_list has" in line]
    assert len(told) == 1 and "rellu" in told[0] and "Torch.relu.0.forward" in told[0], told


def test_functions_can_be_pickled_inside_a_window(tmp_path: Path) -> None:
    script = """
import pickle

def refused():
    names = []
    for place, owner in {"torch": torch, "Tensor": torch.Tensor, "F": F}.items():
        for name in dir(owner):
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, type):
                try:
                    pickle.loads(pickle.dumps(value))
                except Exception:
                    names.append(f"{place}.{name}")
    return names

before = refused()
debugger = PrecisionDebugger(config_path="./config.json")
debugger.start()
inside, kept = refused(), pickle.dumps(torch.conv2d)
debugger.stop()
debugger.step()
result([before, inside, pickle.loads(kept) is torch.conv2d])
"""
    before, inside, is_same = runs.run_script(tmp_path, script, runs.config("L1")).ok().printed()
    # The same function as ``__rdiv__``, which is recorded under that name only.
    assert sorted(set(inside) - set(before)) == ["Tensor.__rtruediv__"]
    assert is_same
