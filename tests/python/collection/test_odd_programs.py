"""Programs that do unusual things: they go on as without the tool, and what they do is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs

SCRIPTING = """
import threading, warnings
warnings.simplefilter("ignore")
from torch.jit import script as script_by_value
from torch.nn.functional import gelu, max_pool2d

def helper(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x)

def nested(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(helper(x), -1) + F.gelu(helper(x)) + torch.matmul(x, F.dropout(x, 0.0))

def imported(x: torch.Tensor) -> torch.Tensor:
    return gelu(x) + max_pool2d(x[None], 1)[0]

def unscriptable(x: torch.Tensor) -> torch.Tensor:
    return helper(x).no_such_method()

@torch.jit.script_if_tracing
def when_traced(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return helper(F.softmax(self.linear(x), -1)) @ x

class Traced(nn.Module):
    def forward(self, x):
        return when_traced(torch.tanh(x))

class Scripted(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x):
        return F.relu(torch.matmul(x, x))

x = torch.rand(4, 4) - 0.5
model = Model()
outcome = {}

def same(name, got, wanted):
    outcome[name] = bool(torch.allclose(got, wanted))

def attempt(name, make, wanted):
    try:
        same(name, make()(x), wanted)
    except Exception as error:
        outcome[name] = f"{type(error).__name__}: {error}"[:300]

def everything(when):
    eager = nested(x), imported(x), model(x)
    wrapper = F.relu
    attempt(when + "nested", lambda: torch.jit.script(nested), eager[0])
    attempt(when + "script imported by value", lambda: script_by_value(nested), eager[0])
    attempt(when + "imported by value", lambda: torch.jit.script(imported), eager[1])
    attempt(when + "scripted module", lambda: torch.jit.script(model), eager[2])
    attempt(when + "traced module", lambda: torch.jit.trace(model, x), eager[2])
    attempt(when + "traced, then scripted", lambda: torch.jit.trace(Traced(), x), Traced()(x))
    attempt(when + "script method", Scripted, F.relu(x @ x))
    try:
        torch.jit.script(unscriptable)
    except RuntimeError:
        outcome[when + "failed"] = F.relu is wrapper
    script = lambda: torch.jit.script(nested)
    calls = [(f"{when}thread {i}", script, eager[0]) for i in range(4)]
    threads = [threading.Thread(target=attempt, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(when + "jvp", torch.func.jvp(torch.sin, (x,), (x,))[1], torch.cos(x) * x)
    outcome[when + "wrappers are back"] = F.relu is wrapper

everything("closed: ")
debugger.start(model)
everything("open: ")
torch.jit.script(nested)
F.celu(x)
model(x)
debugger.stop()
debugger.step()
result(outcome)
"""


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_scripting(tmp_path: Path, level: str) -> None:
    result = runs.run_script(tmp_path, SCRIPTING, runs.config(level)).ok()
    outcome = result.printed()
    assert len(outcome) == 28
    assert {name: value for name, value in outcome.items() if value is not True} == {}
    # Collection goes on after all of it.
    data = result.data()
    assert "Functional.celu.0.forward" in data
    last = next(reversed([name for name in data if name.startswith(("Module.", "Functional."))]))
    assert list(data).index(last) > list(data).index("Functional.celu.0.forward")
    assert ("Module.linear.Linear.forward.0" in data) == (level == "mix")


NAMES = """
class Metrics(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.key = key

    def forward(self, x):
        return {self.key: x * 2, "h": x * 1}

keys = ["loss/ce", "loss_ce", "../../up", "/abs", "nul\\0byte"]
keys += ["k" * 300, "k" * 299 + "j", "ä" * 200, "x\\ny"]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Metrics(key) for key in keys])
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        return self.last(sum(part(x)["h"] for part in self.parts))

model = Model()
for step in range(2):
    debugger.start(model)
    model(torch.rand(2, 4) + step).sum().backward()
    debugger.stop()
    debugger.step()
"""


def data_names(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for element in value for name in data_names(element)]
    if isinstance(value, dict):
        own = [value["data_name"]] if "data_name" in value else []
        return own + [name for element in value.values() for name in data_names(element)]
    return []


def check_files(result: runs.Result, step: int = 0, document: str = "dump.json") -> list[str]:
    """All tensors are told with a plain name of their own, and are there: these and no other files."""
    names = data_names(result.document(document, step)["data"])
    assert len(set(names)) == len(names)
    files = {path.name for path in (result.path(step) / "dump_tensor_data").iterdir()}
    assert files == set(names)
    return names


def made_by(result: runs.Result) -> set[str]:
    return {path.name for path in result.folder.iterdir()}


def test_keys_that_no_file_name_can_hold(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path / "in" / "here", NAMES, runs.config("L0", "tensor")).ok()
    assert result.errors() == []
    for step in range(2):
        names = check_files(result, step)
        outputs = result.data(step)
        assert len(outputs) == 9 + 3  # the linear module's forward, backward and gradients
        assert "Module.last.Linear.backward.0.input.0.pt" in names
    told = [next(iter(outputs[f"Module.parts.{i}.Metrics.forward.0"]["output"][0].items())) for i in range(9)]
    assert [key for key, _ in told][:2] == ["loss/ce", "loss_ce"]
    files = [tensor["data_name"] for _, tensor in told]
    start = "Module.parts.0.Metrics.forward.0.output.0.loss_ce_"
    assert files[0].startswith(start)
    assert len(files[0]) == len(start) + len("01234567.pt")
    assert files[1] == "Module.parts.1.Metrics.forward.0.output.0.loss_ce.pt"
    assert files[2].startswith("Module.parts.2.Metrics.forward.0.output.0..._.._up_")
    assert [len(name.encode()) for name in files[5:7]] == [255, 255]
    assert files[8] == "Module.parts.8.Metrics.forward.0.output.0.x\ny.pt"
    assert made_by(result) == {"dump", "config.json", "train.py"}
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"here"}


VARIABLES = """
import os
y = torch.ones(2, requires_grad=True)
for name in ("a/b", "a_b", "../../../escaped", os.path.abspath("absolute"), "long" * 80, "plain"):
    PrecisionDebugger.save(y * 1, name)
pair = y * 2
PrecisionDebugger.save({"k/l": pair}, "d")
pair.sum().backward()
debugger.step()
"""


def test_variables_stay_in_the_directory(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, VARIABLES, runs.config("debug", "tensor")).ok()
    assert result.errors() == []
    names = check_files(result, document="debug.json")
    assert {"a_b.0.debug.pt", "plain.0.debug.pt"} <= set(names)
    assert any(name.startswith("a_b_") and name.endswith(".0.debug.pt") for name in names)
    assert any(name.startswith("d_grad.0.debug.k_l_") for name in names)
    assert "a/b.0.debug" in result.document("debug.json")["data"]
    assert made_by(result) == {"dump", "config.json", "train.py"}


OVERFLOWING = """
import types
my = types.ModuleType("my")
my.probe = lambda x: {"loss/ce": x / 0, "../h": x * 2}
debugger.register_custom_api(my, "probe")
debugger.start()
my.probe(torch.ones(2))
torch.add(torch.tensor([float("inf")]), 1)
debugger.stop()
debugger.step()
"""


def test_names_of_overflowing_tensors(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path, OVERFLOWING, runs.config("L1", "overflow_check", {"overflow_nums": 5})
    ).ok()
    assert result.errors() == []
    names = check_files(result)
    assert any(name.startswith("my.probe.0.forward.output.0.loss_ce_") for name in names)
    assert "Torch.add.0.forward.output.0.pt" in names


TUPLES = """
import collections, dataclasses, types, typing

Pair = collections.namedtuple("Pair", "h aux")

class Typed(typing.NamedTuple):
    h: object
    rest: object = None

@dataclasses.dataclass
class Data:
    a: object
    b: object = 3

@dataclasses.dataclass
class Output(collections.OrderedDict):
    loss: object = None
    logits: object = None

    def __post_init__(self):
        if self.logits is not None:
            self["logits"] = self.logits

class Plain(tuple):
    pass

functions = {
    "pair": lambda x: Pair(x * 2, x + 1),
    "typed": lambda x: Typed(x * 2),
    "nested": lambda x: Pair((x * 2, [x]), {"k": x + 1}),
    "data": lambda x: Data(x * 2),
    "output": lambda x: Output(logits=x * 2),
    "plain": lambda x: Plain((x * 2, x)),
    "size": lambda x: x.shape,
    "returned": lambda x: torch.max(x * 2, dim=0),
    "inside": lambda x: (Pair(x * 2, x), x.shape),
    "listed": lambda x: [Pair(x * 2, x)],
}

class Returning(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x):
        return functions[self.name](x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({name: Returning(name) for name in functions})

    def forward(self, x):
        results = [part(x * 1.0) for part in self.parts.values()]
        results += [getattr(my, name)(x * 1.0) for name in functions]
        return results

def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name))
    elif isinstance(value, (tuple, list, dict)):
        for element in value.values() if isinstance(value, dict) else value:
            yield from tensors(element)

my = types.ModuleType("my")
for name, function in functions.items():
    setattr(my, name, function)
    debugger.register_custom_api(my, name)
model = Model()
debugger.start(model)
x = torch.rand(3, 3, requires_grad=True)
sum(tensor.sum() for tensor in tensors(model(x)) if tensor.is_floating_point()).backward()
debugger.stop()
debugger.step()
"""

SIZE = {"type": "torch.Size", "value": [3, 3]}
# What the reference tells of each: a tensor by the end of its file name.
OUTPUTS: dict[str, Any] = {
    "pair": {"h": "output.h.pt", "aux": "output.aux.pt"},
    "typed": {"h": "output.h.pt", "rest": None},
    "nested": {"h": ["output.h.0.pt", ["output.h.1.0.pt"]], "aux": {"k": "output.aux.k.pt"}},
    "data": [{"a": "output.0.a.pt", "b": {"type": "int", "value": 3}}],
    "output": [{"loss": None, "logits": "output.0.logits.pt"}],
    "plain": ["output.0.pt", "output.1.pt"],
    "size": SIZE,
    "returned": ["output.0.pt", "output.1.pt"],
    "inside": [{"h": "output.0.h.pt", "aux": "output.0.aux.pt"}, SIZE],
    "listed": [[{"h": "output.0.0.h.pt", "aux": "output.0.0.aux.pt"}]],
}


def told(value: Any, record: str) -> Any:
    if isinstance(value, list):
        return [told(element, record) for element in value]
    if isinstance(value, dict):
        if "data_name" in value:
            return value["data_name"].removeprefix(record + ".")
        return {key: told(element, record) for key, element in value.items()}
    return value


def test_tuples_with_names(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, TUPLES, runs.config("mix", "tensor")).ok()
    data = result.data()
    modules = {name: f"Module.parts.{name}.Returning.forward.0" for name in OUTPUTS}
    functions = {name: f"my.{name}.0.forward" for name in OUTPUTS}
    for records in (modules, functions):
        outputs = {name: told(data[record]["output"], record) for name, record in records.items()}
        assert outputs == OUTPUTS
    # The gradient of a function is that of its first tensor.
    backward = {name: f"my.{name}.0.backward" for name in OUTPUTS}
    with_gradients = [name for name, record in backward.items() if record in data]
    assert with_gradients == ["pair", "typed", "nested", "output", "plain", "returned", "inside", "listed"]
    for name in with_gradients:
        gradients = told(data[backward[name]], backward[name])
        assert (gradients["input"][0], gradients["output"][0]) == ("input.0.pt", "output.0.pt")
    for name in ("pair", "typed", "plain", "returned"):
        record = f"Module.parts.{name}.Returning.backward.0"
        assert told(data[record]["output"], record) == ["output.0.pt"]
    check_files(result)


SAVED = """
import collections
Pair = collections.namedtuple("Pair", "a b")
x = torch.ones(2, requires_grad=True)
y = x * 2
PrecisionDebugger.save(Pair(1, 2), "plain")
PrecisionDebugger.save(Pair(y, 1), "pair")
PrecisionDebugger.save([Pair(y, {"k": Pair(1, y)})], "list")
y.sum().backward()
debugger.step()
"""


def test_gradients_of_saved_tuples_with_names(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, SAVED, runs.config("debug", "tensor")).ok()
    data = result.document("debug.json")["data"]
    gradients = {
        name: told(data[f"{name}_grad.0.debug"], f"{name}_grad.0") for name in ("plain", "pair", "list")
    }
    assert gradients == {
        "plain": {"a": None, "b": None},
        "pair": {"a": "debug.a.pt", "b": None},
        "list": [{"a": "debug.0.a.pt", "b": {"k": {"a": None, "b": "debug.0.b.k.b.pt"}}}],
    }


DEVICES = """
import types
import numpy as np
my = types.ModuleType("my")
my.probe = lambda *args, **kwargs: 1
debugger.register_custom_api(my, "probe")
values = [torch.device("cpu"), torch.device("cuda", 1), "cuda:0", 1, True, None]
odd = [torch.float32, slice(1), np.float32(1), torch.channels_last, 1.5, torch.Size([1]), ...]
debugger.start()
for value in values + odd:
    my.probe(7, device=value)
for value in odd:
    my.probe(7, dtype=value)
debugger.stop()
debugger.step()
"""


def test_arguments_called_device(tmp_path: Path) -> None:
    result = runs.run_script(tmp_path, DEVICES, runs.config("L1")).ok()
    records = list(result.data().values())
    assert all(record["input_args"] == [{"type": "int", "value": 7}] for record in records)
    devices = [record["input_kwargs"]["device"] for record in records[:13]]
    known = ["cpu:None", "cuda:1", "cuda:0", 1, True]
    assert devices[:5] == [{"type": "torch.device", "value": value} for value in known]
    assert devices[5] is None
    assert devices[6:] == [{"type": "torch.device"}] * 7
    told_as = ["torch.float32", "slice(None, 1, None)", "1.0", "torch.channels_last"]
    told_as += ["1.5", "torch.Size([1])", "Ellipsis"]
    dtypes = [record["input_kwargs"]["dtype"] for record in records[13:]]
    assert dtypes == [{"type": "torch.dtype", "value": value} for value in told_as]
    assert not (result.path() / "dump_error_info.log").exists()
