"""Functions stay the objects they are: whoever compares them finds what they would find without the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs


@pytest.mark.parametrize("mode", ["L1", "mix"])
def test_every_layer_computes_the_same(tmp_path: Path, mode: str) -> None:
    """Built before and after: the same bits, gradients, random numbers and warnings, fast paths included."""
    told = runs.run_worker(tmp_path, "layers", mode).ok().printed()
    assert told["missing"] == []
    assert len(told["layers"]) > 140
    differing = {
        layer: [when for when, digest in digests.items() if digest != digests["absent"]]
        for layer, digests in told["layers"].items()
    }
    assert {layer: when for layer, when in differing.items() if when} == {}
    # The nested tensor says so: the fast path was taken.
    assert "NestedTensor" in told["layers"]["TransformerEncoder"]["absent"]


# Where functions live, all that can be looked up there, and what torch.Tensor itself holds.
OBJECTS = """
import inspect, os, pickle
import torch.distributed as dist

PLACES = {"torch": torch, "F": F, "Tensor": torch.Tensor, "_VF": torch._VF, "linalg": torch.linalg}
PLACES |= {"dist": dist, "utils": nn.utils, "checkpoint": torch.utils.checkpoint, "jit": torch.jit}
# Those that are made anew whenever they are asked for are not compared.
FUNCTIONS = {(place, name): value for place, owner in PLACES.items() for name in dir(owner)
             if callable(value := getattr(owner, name, None)) and getattr(owner, name, None) is value}
OWN = {place: set(vars(owner)) for place, owner in PLACES.items()}
CODES = {key: value.__code__ for key, value in FUNCTIONS.items() if inspect.isfunction(value)}
WAIT = dist.Work.__dict__.get("wait")

def changed():
    others = [".".join(key) for key, value in FUNCTIONS.items()
              if getattr(PLACES[key[0]], key[1], None) is not value]
    for place, owner in PLACES.items():
        others += [f"{place} has {name}" for name in set(vars(owner)) ^ OWN[place]]
    return others + ["wait"] * (dist.Work.__dict__.get("wait") is not WAIT)

def recoded():
    # Modules keep their hooks, and are scripted without them.
    return [".".join(key) for key, code in CODES.items()
            if FUNCTIONS[key].__code__ is not code and key[1] != "script"]
"""

CLOSED = (
    OBJECTS
    + """
debugger = PrecisionDebugger(config_path="./config.json")
outcome = {}
def note(when):
    outcome[when] = changed() + recoded()
note("made")
model = nn.Sequential(nn.Linear(2, 2))
for step in range(2):
    debugger.start(model)
    model(torch.ones(2, 2)).sum().backward()
    debugger.stop()
    note(f"stopped {step}")
    debugger.step()
debugger.start(model, token_range=[1, 1])
model(torch.ones(2, 2)); note("before the token")
model(torch.ones(2, 2)); outcome["at the token"] = bool(recoded())
model(torch.ones(2, 2)); note("after the token")
debugger.stop(); debugger.step()
debugger.start(model)
child = os.fork()
if child == 0:
    os._exit(1 if changed() or recoded() else 0)
outcome["child"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
outcome["open, in the parent"] = bool(recoded())
debugger.step(); note("step without stop")
os.chmod("dump", 0o500)
debugger.service.config.dump_path = "/dev/null/nowhere"
try:
    debugger.start(model)
except Exception:
    pass
note("failed")
result(outcome)
"""
)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_everything_is_put_back(tmp_path: Path, level: str) -> None:
    (tmp_path / "config.json").write_text(
        f'{{"task": "statistics", "dump_path": "./dump", "level": "{level}", "statistics": {{}}}}'
    )
    outcome = runs.run_script(tmp_path, CLOSED).ok().printed()
    assert (outcome.pop("at the token"), outcome.pop("open, in the parent")) == (level != "L0",) * 2
    assert outcome.pop("child") == 0
    assert {when: left for when, left in outcome.items() if left} == {}


OPEN = (
    OBJECTS
    + """
debugger = PrecisionDebugger(config_path="./config.json")
table = {F.relu: "relu", F.gelu: "gelu", torch.add: "add", torch.Tensor.add: "Tensor.add", F.linear: "linear"}
debugger.start(nn.Sequential(nn.Linear(2, 2)))
outcome = {
    "others": changed(),
    "found": [table.get(each) for each in (F.relu, F.gelu, torch.add, torch.Tensor.add, F.linear)],
    "signature": str(inspect.signature(F.softmax)),
    "source": inspect.getsource(F.softmax).splitlines()[0],
    "pickled": all(pickle.loads(pickle.dumps(each)) is each for each in (F.relu, F.gelu, torch.add)),
    "defaults": F.softmax.__defaults__ is not None and F.relu.__name__ == "relu",
}
debugger.stop()
result(outcome)
"""
)


def test_open_windows_keep_the_objects(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"task": "statistics", "dump_path": "./dump", "level": "mix", "statistics": {}}'
    )
    outcome = runs.run_script(tmp_path, OPEN).ok().printed()
    # One object under two names that are recorded as two: the second name is another object in a window.
    assert {
        name for name in outcome["others"] if name.split(".")[0] in ("F", "dist", "linalg", "utils")
    } == set()
    assert len(outcome["others"]) < 45
    assert {"torch.conv2d", "Tensor.__neg__"} <= set(outcome["others"])
    assert not {"torch.add", "Tensor.add", "Tensor.neg", "torch.matmul"} & set(outcome["others"])
    assert outcome["found"] == ["relu", "gelu", "add", "Tensor.add", "linear"]
    assert outcome["signature"].startswith("(input: torch.Tensor, dim: int | None = None")
    assert outcome["source"] == "def softmax("
    assert outcome["pickled"]
    assert outcome["defaults"]


HOLDERS = """
import functools, types, sys
from torch import matmul as before, conv2d as conv_before, sub as sub_before
from torch.nn.functional import gelu as gelu_before, relu as relu_before
from torch.utils.checkpoint import checkpoint as checkpoint_before
debugger = PrecisionDebugger(config_path="./config.json")
from torch import mul as after
from torch.nn.functional import silu as silu_after

class Activation(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = F.gelu

    def forward(self, x, negative=F.elu):
        return self.act(x) + negative(x)

table = {"softmax": F.softmax, "exp": torch.exp, "method": torch.Tensor.tanh}
model = nn.Sequential(Activation())
x = torch.ones(2, 2)
bound = x.cosh
debugger.start(model)
before(x, x); gelu_before(x); relu_before(x); sub_before(x, x)
after(x, x); silu_after(x)
model(x)
table["softmax"](x, -1); table["exp"](x); table["method"](x)
functools.partial(torch.log1p)(x)
list(map(torch.Tensor.sigmoid, [x]))
getattr(x, "sinh")()
from torch import atan as inside
inside(x)
debugger.stop()
inside(x); before(x, x)
debugger.step()
"""


def test_whoever_holds_a_function_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {}}'
    )
    result = runs.run_script(tmp_path, HOLDERS).ok()
    names = [name.removesuffix(".forward") for name in result.data()]
    assert names == [
        "Torch.matmul.0", "Functional.gelu.0", "Functional.relu.0", "Torch.sub.0", "Torch.mul.0",
        "Functional.silu.0", "Functional.gelu.1", "Functional.elu.0", "Tensor.__add__.0",
        "Functional.softmax.0", "Torch.exp.0", "Tensor.tanh.0", "Torch.log1p.0", "Tensor.sigmoid.0",
        "Tensor.sinh.0", "Torch.atan.0",
    ]  # fmt: skip


SUBCLASS = """
def library(functions):
    # A tensor subclass with a table of implementations, as libraries of quantised tensors have.
    table = {}

    class Scaled(torch.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            cls.calls.append(getattr(func, "__name__", str(func)))
            if func in table:
                return table[func](*args, **kwargs)
            if func is F.linear:
                return ("linear", len(args))
            if func is torch.conv2d or func is F.conv2d:
                return ("conv2d", len(args))
            if func is torch.Tensor.mul or func is torch.Tensor.__mul__:
                return ("mul", len(args))
            if func is torch.Tensor.__setitem__:
                return ("setitem",)
            if func is torch.Tensor.neg:
                return ("neg",)
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)

    for function in functions():
        table[function] = lambda *args, function=function, **kwargs: ("table", function.__name__)
    return Scaled

def functions():
    return [F.relu, F.gelu, torch.matmul, torch.Tensor.add, torch.add, F.softmax, torch.einsum, torch.cat]

def run(cls):
    x = torch.ones(2, 2).as_subclass(cls)
    plain = torch.ones(2, 2)
    image = torch.ones(1, 1, 2, 2)
    def told(value):
        return [each if isinstance(each, str) else type(each).__name__ for each in value]
    return [told(value) for value in (
        F.relu(x), F.gelu(x), torch.matmul(plain, x), x.add(1), torch.add(x, 1), F.softmax(x, -1),
        torch.einsum("ij,jk->ik", x, x), torch.cat([plain, x]), F.linear(plain, x),
        F.linear(input=x, weight=plain),
        F.conv2d(image, image.as_subclass(cls)), torch.conv2d(image, weight=image.as_subclass(cls)),
        x.mul(2), x * 2, -x)]

absent = library(functions)
wanted = run(absent)
outcome = {}
debugger = PrecisionDebugger(config_path="./config.json")
made = library(functions)
outcome["made"] = [run(made) == wanted, run(library(functions)) == wanted]
model = nn.Sequential(nn.Linear(2, 2))
debugger.start(model)
inside = library(functions)
outcome["started"] = [run(each) == wanted for each in (absent, made, inside)]
x = torch.ones(2, 2).as_subclass(absent)
absent.calls.clear()
x[0] = 1
outcome["setitem"] = [[name for name in absent.calls if name != "__get__"], torch.conv2d is F.conv2d]
debugger.stop()
outcome["stopped"] = [run(each) == wanted for each in (absent, made, inside)]
debugger.step()
result(outcome)
"""


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_tensor_subclasses(tmp_path: Path, level: str) -> None:
    (tmp_path / "config.json").write_text(
        f'{{"task": "statistics", "dump_path": "./dump", "level": "{level}", "statistics": {{}}}}'
    )
    result = runs.run_script(tmp_path, SUBCLASS).ok()
    outcome = result.printed()
    assert outcome["made"] == [True] * 2
    assert outcome["started"] == [True] * 3
    assert outcome["stopped"] == [True] * 3
    # Put back around one call, and there again after it.
    assert outcome["setitem"] == [["__setitem__"], False]
    assert {"Functional.linear.0.forward", "Torch.conv2d.0.forward"} <= set(result.data())


QUANTISED = """
import warnings
warnings.simplefilter("ignore")
from torchao.quantization import Int8WeightOnlyConfig, quantize_

def build():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    quantize_(model, Int8WeightOnlyConfig())
    return model

x = torch.linspace(-1, 1, 32).reshape(2, 16)
earlier = build()
wanted = earlier(x)
debugger = PrecisionDebugger(config_path="./config.json")
outcome = []
def note():
    outcome.extend([torch.equal(earlier(x), wanted), torch.equal(build()(x), wanted)])
note()
debugger.start(earlier)
note()
debugger.stop()
note()
debugger.step()
result(outcome)
"""


def test_quantised_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"task": "statistics", "dump_path": "./dump", "level": "mix", "statistics": {}}'
    )
    result = runs.run_script(tmp_path, QUANTISED).ok()
    assert result.printed() == [True] * 6
    assert "Functional.linear.0.forward" in result.data()


TRANSFORMS = """
from torch.func import grad, vmap, jacrev, functional_call
from torch.export import export

def f(x):
    return (F.softmax(torch.matmul(x, x.t()), -1) + F.gelu(x) - x.exp() / 2).sum() + F.pad(x, (1, 1)).norm()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return F.relu(F.softmax(self.linear(x), -1) + F.pad(x, (0, 0)))

torch.manual_seed(0)
model, x, batch = Model(), torch.randn(4, 4), torch.randn(3, 4, 4)

def graph(program):
    return [str(node.target) for node in program.graph.nodes]

def everything():
    exported = export(model, (x,))
    traced = torch.jit.trace(model, x)
    scripted = torch.jit.script(model)
    values = [
        grad(f)(x), vmap(f)(batch), jacrev(lambda x: F.gelu(x))(x[0]), vmap(grad(f))(batch),
        functional_call(model, dict(model.named_parameters()), (x,)),
        exported.module()(x), traced(x), scripted(x),
        torch.fx.symbolic_trace(model)(x),
    ]
    texts = [graph(exported), graph(torch.fx.symbolic_trace(model)), str(scripted.graph)]
    return [value.tolist() for value in values], texts

wanted = everything()
debugger = PrecisionDebugger(config_path="./config.json")
outcome = {}
def note(when):
    got = everything()
    outcome[when] = [a == b for a, b in zip(got[0], wanted[0])] + [a == b for a, b in zip(got[1], wanted[1])]
note("made")
debugger.start(model)
note("started")
torch.atan(x)
debugger.stop()
note("stopped")
debugger.step()
result(outcome)
"""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_transforms_export_and_script(tmp_path: Path, level: str) -> None:
    """torch.func, torch.export, torch.fx and TorchScript: the same numbers and the same graphs."""
    (tmp_path / "config.json").write_text(
        f'{{"task": "statistics", "dump_path": "./dump", "level": "{level}", "statistics": {{}}}}'
    )
    result = runs.run_script(tmp_path, TRANSFORMS).ok()
    outcome: dict[str, Any] = result.printed()
    assert outcome == {when: [True] * 12 for when in ("made", "started", "stopped")}
    assert ("Torch.atan.0.forward" in result.data()) == (level != "L0")
