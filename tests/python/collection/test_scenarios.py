"""Windows, counters, filters and files, one training script per configuration."""

from __future__ import annotations

import functools
import stat
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.python.collection import runs
from tests.python.collection.runs import config

MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))

torch.manual_seed(0)
model = Net()
x = torch.ones(2, 3, requires_grad=True)
"""

END = "debugger.stop()\ndebugger.step()\n"
ONE_STEP = MODEL + "debugger.start(model=model)\nmodel(x).sum().backward()\n" + END

WINDOWS = """\
import os
ones = torch.ones(3)
torch.neg(ones)                         # before start
debugger.start()
torch.neg(ones)
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]))     # calls log_softmax
debugger.stop()
torch.neg(ones)                         # after stop
debugger.start()
torch.neg(ones)
debugger.stop()
torch.neg(ones)
debugger.step()                         # step 0
same = PrecisionDebugger(task="tensor", level="L0", dump_path="./other", step=[9]) is debugger
for _ in range(2):                      # steps 1, 2: counters begin again
    PrecisionDebugger.start()
    torch.neg(ones)
    PrecisionDebugger.forward_backward_dump_end()
    PrecisionDebugger.step()
debugger.set_init_step(40)
debugger.start()
torch.neg(ones)
debugger.stop()
debugger.step()
bad = []
for value in (-1, True, "1"):
    try:
        debugger.set_init_step(value)
    except Exception as error:
        bad.append([type(error).__name__, error.code])
debugger.start()                        # step 41
kept = torch.neg(torch.ones(3, requires_grad=True))
debugger.stop()
kept.sum().backward()                   # a backward after stop belongs to its forward
debugger.step()
debugger.start()                        # step 42, never stopped
torch.neg(ones)
result({"same": same, "bad": bad})
sys.exit(3)
"""

CUSTOM = """\
import types

def double(value, *, by=2):
    return value * by

named, unnamed = types.ModuleType("shelf"), types.SimpleNamespace(double=double)
named.double = double
debugger.register_custom_api(named, "double")
debugger.register_custom_api(unnamed, "double")
debugger.start()
named.double(torch.ones(2), by=3)
unnamed.double(torch.ones(2))
debugger.restore_custom_api(named, "double")
restored = named.double is double
named.double(torch.ones(2))
bad = []
for arguments in ((named, "absent"), (named, "double", 7)):
    try:
        debugger.register_custom_api(*arguments)
    except Exception as error:
        bad.append([type(error).__name__, error.code])
debugger.stop()
debugger.step()
result({"restored": restored, "bad": bad})
"""

COUNTERS = (
    MODEL
    + """\
model(x)                                # hooks are not there yet
debugger.start(model=model)
out = model(x)                          # modules 0
debugger.stop()
out.sum().backward()                    # stop before backward
model(x)                                # modules 1, not recorded
debugger.start(model=model)
model(x)                                # modules 2
debugger.stop()
debugger.step()
debugger.start(model=model)             # step 1
model(x).sum().backward()
debugger.stop()
debugger.step()
"""
)

TOKENS = (
    MODEL
    + """\
bad = []
for tokens in ([3, 1], [-1, 2], [1], "01", [0.5, 2]):
    try:
        debugger.start(model=model, token_range=tokens)
    except Exception as error:
        bad.append([type(error).__name__, error.code])
debugger.start(model=model, token_range=[1, 2])
for _ in range(5):
    model(x)
    torch.neg(x)
debugger.stop()
debugger.step()
result(bad)
"""
)

OVERFLOWS = """\
for step in range(3):
    debugger.start()
    torch.neg(torch.ones(2))
    torch.exp(torch.tensor([1.0, 1000.0]))
    torch.log(torch.tensor([0.0, 1.0]))
    debugger.stop()
    debugger.step()
"""

BACKWARD_LATER = """\
leaves = [torch.ones(2, requires_grad=True) for _ in range(3)]
debugger.start()
kept = [torch.neg(leaf) for leaf in leaves]
debugger.stop()
debugger.step()
kept[0].sum().backward()                # between the steps: dropped
debugger.start()
kept[1].sum().backward()                # in the next step, under its own number
debugger.stop()
kept[2].sum().backward()
debugger.step()
"""

SAVES = """\
for step in range(2):
    leaf = torch.ones(2, requires_grad=True)
    PrecisionDebugger.save(leaf * 3, "kept")
    PrecisionDebugger.save(leaf * 4, "kept", save_backward=False)
    PrecisionDebugger.save([leaf, {"deep": (leaf * 5, 1.5)}], "nest")
    PrecisionDebugger.save(leaf, 7)                         # warned
    PrecisionDebugger.save(leaf, "flag", save_backward=1)   # warned
    PrecisionDebugger.save(leaf, "frozen")
    (leaf * 2).sum().backward()
    debugger.start()
    debugger.stop()
    debugger.step()
"""

SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "windows": (WINDOWS, config("L1")),
    "custom": (CUSTOM, config("L1", section={"list": ["shelf", "Custom"]})),
    "counters": (COUNTERS, config("mix")),
    "tokens": (TOKENS, config("mix")),
    "rank filter": (ONE_STEP, config("mix", rank=[0])),
    "forward": (ONE_STEP, config("mix", section={"data_mode": ["forward"]})),
    "backward": (ONE_STEP, config("mix", section={"data_mode": ["backward"]})),
    "input": (ONE_STEP, config("mix", section={"data_mode": ["input"]})),
    "backward output": (ONE_STEP, config("mix", section={"data_mode": ["backward", "output"]})),
    "overflow 2": (OVERFLOWS, config("L1", "overflow_check", {"overflow_nums": 2})),
    "overflow all": (OVERFLOWS, config("L1", "overflow_check", {"overflow_nums": -1})),
    "tensor_list": (ONE_STEP, config("L0", section={"tensor_list": ["fc1.Linear.parameters_grad", "fc2"]})),
    "kernel": (ONE_STEP, config("L2", "tensor", {"list": ["Torch.relu.0.forward"]})),
    "saves": (SAVES, config("debug", step=[1], rank=[5])),
    "later": (BACKWARD_LATER, config("L1")),
    "silent": (ONE_STEP, config("L1")),
    "errors only": ("debugger.set_init_step(-1)\n", config("L1")),
}
ENVIRONMENT = {"silent": {"MSPROBE_LOG_LEVEL": "4"}, "errors only": {"MSPROBE_LOG_LEVEL": "3"}}
DEFAULT = "debugger = PrecisionDebugger()\ndebugger.start()\ntorch.neg(torch.ones(2))\n" + END


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("scenarios")
    jobs = {
        name: functools.partial(
            runs.run_script, root / name.replace(" ", "_"), source, settings, **ENVIRONMENT.get(name, {})
        )
        for name, (source, settings) in SCRIPTS.items()
    }
    jobs["default"] = functools.partial(runs.run_script, root / "default", DEFAULT)
    return runs.run_all(jobs)


def test_windows(ran: dict[str, runs.Result]) -> None:
    result = ran["windows"]
    assert result.returncode == 3  # of the script itself
    neg = "Torch.neg.{}.forward".format
    assert list(result.data(0)) == [neg(0), "Functional.cross_entropy.0.forward", neg(1)]
    assert list(result.data(1)) == list(result.data(2)) == [neg(0)]
    assert result.steps() == [f"step{step}" for step in (0, 1, 2, 40, 41, 42)]
    assert list(result.data(41)) == [neg(0), "Torch.neg.0.backward"]
    assert list(result.data(42)) == [neg(0)]
    assert not (result.folder / "other").exists()
    assert result.printed() == {"same": True, "bad": [["MsprobeException", 0]] * 3}


def test_custom_api(ran: dict[str, runs.Result]) -> None:
    result = ran["custom"].ok()
    data = result.data()
    assert list(data) == ["shelf.double.0.forward", "Custom.double.0.forward"]
    assert data["shelf.double.0.forward"]["input_kwargs"] == {"by": {"type": "int", "value": 3}}
    assert data["shelf.double.0.forward"]["output"][0]["Max"] == 3.0
    assert result.printed() == {"restored": True, "bad": [["MsprobeException", 0]] * 2}


def test_counters(ran: dict[str, runs.Result]) -> None:
    """Modules count every call, APIs only those in the window; after a stop modules have no backward."""
    data = ran["counters"].ok().data(0)
    assert [name for name in data if name.startswith("Module.fc1") and "forward" in name] == [
        "Module.fc1.Linear.forward.0",
        "Module.fc1.Linear.forward.2",
    ]
    linear = [name for name in data if name.startswith("Functional.linear") and "forward" in name]
    assert linear == [f"Functional.linear.{number}.forward" for number in range(4)]
    assert "Functional.linear.0.backward" in data
    assert not [name for name in data if name.startswith("Module.") and "backward" in name]
    assert data["Module.fc1.Linear.parameters_grad"] == {"weight": [None], "bias": [None]}
    after = ran["counters"].data(1)
    assert "Module.fc1.Linear.forward.0" in after
    assert "Functional.linear.0.forward" in after
    assert "Module.fc1.Linear.backward.0" in after
    assert after["Module.fc1.Linear.parameters_grad"]["bias"][0]["shape"] == [4]


def test_token_range(ran: dict[str, runs.Result]) -> None:
    result = ran["tokens"].ok()
    assert result.printed() == [["MsprobeException", 0]] * 5
    names = list(result.data())
    assert [name for name in names if name.startswith("Module.fc1") and "forward" in name] == [
        "Module.fc1.Linear.forward.1",
        "Module.fc1.Linear.forward.2",
    ]
    assert [name for name in names if "neg" in name] == ["Torch.neg.0.forward", "Torch.neg.1.forward"]


def test_rank_filter_without_ranks(ran: dict[str, runs.Result]) -> None:
    assert ran["rank filter"].ok().steps() == []


def sides(data: dict[str, Any]) -> dict[str, set[tuple[str, ...]]]:
    """The keys that records of each direction have."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for name, record in data.items():
        kind = "module" if name.startswith("Module.") else "api"
        direction = (
            "gradient" if "parameters_grad" in name else "backward" if "backward" in name else "forward"
        )
        if direction != "gradient":
            found.setdefault(f"{kind} {direction}", set()).add(tuple(record))
    return found


def test_data_mode(ran: dict[str, runs.Result]) -> None:
    inputs, always = ("input_args", "input_kwargs"), "is_recompute"
    assert sides(ran["forward"].ok().data()) == {
        "api forward": {(*inputs, always, "output")},
        "module forward": {(*inputs, "output", "parameters", always)},
    }
    assert sides(ran["backward"].ok().data()) == {
        "api backward": {("input", "output")},
        "module backward": {("input", "output")},
    }
    assert sides(ran["input"].ok().data()) == {
        "api forward": {(*inputs, always)},
        "module forward": {(*inputs, "parameters", always)},
        "api backward": {("input",)},
        "module backward": {("input",)},
    }
    assert sides(ran["backward output"].ok().data()) == {
        "api backward": {("output",)},
        "module backward": {("output",)},
    }


def test_data_mode_and_gradients(ran: dict[str, runs.Result]) -> None:
    """Forward alone leaves no gradients; structure and stacks are whole in every mode."""
    gradients = {
        mode: [name for name in ran[mode].ok().data() if "parameters_grad" in name]
        for mode in ("forward", "backward", "input")
    }
    both = ["Module.fc1.Linear.parameters_grad", "Module.fc2.Linear.parameters_grad"]
    assert gradients["forward"] == []
    assert sorted(gradients["backward"]) == sorted(gradients["input"]) == both
    structures = [ran[mode].document("construct.json") for mode in ("forward", "backward", "input")]
    assert structures[0] == structures[1] == structures[2] != {}
    assert ran["backward"].document("stack.json") != {}


def test_overflow_nums(ran: dict[str, runs.Result]) -> None:
    two, every = ran["overflow 2"].ok(), ran["overflow all"].ok()
    names = ["Torch.exp.0.forward", "Torch.log.0.forward"]
    assert list(two.data(0)) == names
    assert two.steps() == ["step0"]
    assert "[INFO] [msprobe] Reached the preset overflow times, current overflow times: 2." in two.log
    assert sum("msprobe ends successfully." in line for line in two.log) == 1
    assert [list(every.data(step)) for step in range(3)] == [names] * 3
    assert not any("ends successfully" in line for line in every.log)


def test_tensor_list(ran: dict[str, runs.Result]) -> None:
    result = ran["tensor_list"].ok()
    saved = {path.name for path in (result.path() / "dump_tensor_data").iterdir()}
    expected = {
        f"Module.fc{layer}.Linear.parameters_grad.{name}.pt"
        for layer in (1, 2)
        for name in ("weight", "bias")
    }
    forward, backward = "Module.fc2.Linear.forward.0", "Module.fc2.Linear.backward.0"
    expected |= {
        f"{forward}.{part}.pt" for part in ("input.0", "output.0", "parameters.weight", "parameters.bias")
    }
    expected |= {f"{backward}.input.0.pt", f"{backward}.output.0.pt"}
    assert saved == expected
    assert result.document("dump.json")["dump_data_dir"] == "./dump/step0/rank/dump_tensor_data"
    data = result.data()
    assert "data_name" not in data["Module.fc1.Linear.forward.0"]["output"][0]
    name = data["Module.fc2.Linear.forward.0"]["output"][0]["data_name"]
    assert torch.load(result.path() / "dump_tensor_data" / name).shape == (2, 2)


def test_kernel_level_without_npu(ran: dict[str, runs.Result]) -> None:
    result = ran["kernel"].ok()
    told = "The current environment is not a complete NPU environment, and kernel dump cannot be used."
    assert any("[WARNING]" in line and told in line for line in result.log)
    assert (result.folder / "dump/step0/kernel_config.json").exists()


def test_saves(ran: dict[str, runs.Result]) -> None:
    """Step filter and counters hold at level debug, the rank filter does not."""
    result = ran["saves"].ok()
    assert result.steps() == ["step1"]
    assert [path.name for path in result.path(1).iterdir()] == ["debug.json"]
    document = result.document("debug.json", 1)
    assert document["level"] == "debug"
    data = document["data"]
    assert list(data) == [
        "kept.0.debug",
        "kept_grad.0.debug",
        "kept.1.debug",
        "nest.0.debug",
        "nest_grad.0.debug",
        "frozen.0.debug",
        "frozen_grad.0.debug",
    ]
    assert data["kept.0.debug"]["Max"] == 3.0
    assert data["kept_grad.0.debug"] is None  # no gradient came by
    assert data["frozen_grad.0.debug"]["Max"] == 2.0
    assert data["nest.0.debug"][1]["deep"][0]["Max"] == 5.0
    assert data["nest_grad.0.debug"][0]["Max"] == 2.0
    assert data["nest_grad.0.debug"][1] == {"deep": [None, None]}
    assert sum("[WARNING]" in line for line in result.log) == 4


def test_backward_after_the_step(ran: dict[str, runs.Result]) -> None:
    result = ran["later"].ok()
    assert list(result.data(0)) == [f"Torch.neg.{number}.forward" for number in range(3)]
    late = [name for name in result.data(1) if "backward" in name and "neg" in name]
    assert late == ["Torch.neg.1.backward", "Torch.neg.2.backward"]


def test_log_levels(ran: dict[str, runs.Result]) -> None:
    silent = ran["silent"].ok()
    assert silent.stdout == ""
    assert silent.stderr == ""
    assert silent.data()
    errors = ran["errors only"]
    assert errors.returncode == 1
    assert all("[ERROR]" in line for line in errors.log)


def test_defaults(ran: dict[str, runs.Result]) -> None:
    document = ran["default"].ok().document("dump.json", dump="dump_path")
    assert list(document) == ["task", "level", "framework", "dump_data_dir", "data"]
    assert [document[key] for key in ("task", "level", "framework", "dump_data_dir")] == [
        "statistics",
        "L1",
        "pytorch",
        None,
    ]
    assert list(document["data"]) == ["Torch.neg.0.forward"]


def test_modes_of_files(ran: dict[str, runs.Result]) -> None:
    """Directories 0750, files 0640."""
    root: Path = ran["tensor_list"].ok().folder / "dump"
    for path in [root, *root.rglob("*")]:
        expected = 0o750 if path.is_dir() else 0o640
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
