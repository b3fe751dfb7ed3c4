"""The manual's configurations and scripts of collection, run as they stand on a tiny model."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.manual import snippets

MODEL = """\
import random, numpy, torch, json
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
x = torch.ones(3, 4)
"""
FORWARD = "loss = model(x).sum()"
BACKWARD = "loss.backward()\ntorch.sigmoid(x)"


def fill(snippet: str, **parts: str) -> str:
    """The user's code in place of the marks."""
    for name, text in parts.items():
        snippet = snippet.replace(f"{{{name}}}", text)
    return snippet


def run(folder: Path, config: dict[str, Any] | None, source: str, **env: str) -> runs.Result:
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "train.py").write_text(source)
    return runs.run(folder, "train.py", **env).ok()


@pytest.mark.parametrize("script", [snippets.TWO_WINDOWS, snippets.ON_THE_CLASS], ids=["object", "class"])
def test_whole_net(script: str, tmp_path: Path) -> None:
    """Both windows are in one step, with all files and every tensor."""
    source = fill(script, before=MODEL, first=FORWARD, second=BACKWARD)
    result = run(tmp_path, snippets.WHOLE_NET, source)
    data = result.data(dump="npu_dump")
    assert list(data)[:4] == [
        "Functional.linear.0.forward",
        "Functional.relu.0.forward",
        "Functional.linear.1.forward",
        "Tensor.sum.0.forward",
    ]
    assert {"Functional.linear.0.backward", "Torch.sigmoid.0.forward"} <= set(data)
    place = result.path(dump="npu_dump")
    assert {"dump.json", "stack.json", "construct.json", "dump_tensor_data"} <= {
        p.name for p in place.iterdir()
    }
    tensor = data["Functional.relu.0.forward"]["output"][0]
    assert {"Max", "Min", "Mean", "Norm", "data_name"} <= set(tensor)
    assert (place / "dump_tensor_data" / tensor["data_name"]).is_file()
    assert not [line for line in result.log if "[WARNING]" in line or "[ERROR]" in line]


def test_seed_and_determinism_of_the_file_act(tmp_path: Path) -> None:
    """When the debugger is made: numbers drawn from then on are those of the seed, and one line says so."""
    draw = (
        "print('RESULT ' + json.dumps([random.random(), float(numpy.random.rand()), float(torch.rand(())),"
        " torch.are_deterministic_algorithms_enabled(),"
        " float(torch.nn.functional.dropout(torch.ones(1), 1.0))]))"
    )
    head = "import random, numpy, torch, json\n"
    tail = fill(snippets.TEMPLATE, before=draw, first="")

    def drawn(name: str, before: str = "", **keys: Any) -> tuple[list[Any], runs.Result]:
        config = {key: value for key, value in {**snippets.WHOLE_NET, **keys}.items() if value is not None}
        result = run(tmp_path / name, config, head + before + tail)
        return result.printed(), result

    first, result = drawn("first")
    again, _ = drawn("again", before="random.random(); torch.rand(9); numpy.random.rand(4)\n")
    other, _ = drawn("other", seed=7)
    assert first == again
    assert all(one != two for one, two in zip(first[:3], other[:3]))
    seeded = head + "random.seed(1234); numpy.random.seed(1234); torch.manual_seed(1234)\n" + draw
    assert run(tmp_path / "own", None, seeded).printed()[:3] == first[:3]
    # Dropout is nobody's to take out unasked; everything is dropped with p = 1.
    assert first[3:] == [False, 0.0]
    told = [line for line in result.log if "seeds all random numbers" in line]
    assert len(told) == 1 and "1234" in told[0] and "deterministic algorithms are off" in told[0]

    on = "torch.use_deterministic_algorithms(True)\n"
    assert drawn("deterministic", is_deterministic=True)[0][3] is True
    assert drawn("off", before=on)[0][3] is False
    assert drawn("left", before=on, is_deterministic=None)[0][3] is True
    untouched = "torch.manual_seed(99)\n"
    without, quiet = drawn("none", before=untouched, seed=None, is_deterministic=None)
    assert not [line for line in quiet.log if "random numbers" in line]
    plain = run(tmp_path / "plain", None, head + untouched + draw).printed()
    assert without[2] == plain[2]


def test_template(tmp_path: Path) -> None:
    config = {"task": "statistics", "dump_path": "./dump", "level": "L1", "statistics": {}}
    result = run(tmp_path, config, fill(snippets.TEMPLATE, before=MODEL, first=FORWARD))
    assert "Functional.linear.0.forward" in result.data()


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("4", set()),
        ("3", {"ERROR"}),
        ("2", {"WARNING", "ERROR"}),
        ("1", {"INFO", "WARNING", "ERROR"}),
        ("0", {"DEBUG", "INFO", "WARNING", "ERROR"}),
    ],
)
def test_log_levels(setting: str, shown: set[str], tmp_path: Path) -> None:
    source = "from msprobe.core.common.log import logger\n" + "".join(
        f"logger.{level}('x')\n" for level in ("debug", "info", "warning", "error")
    )
    result = run(tmp_path, None, source, MSPROBE_LOG_LEVEL=setting)
    assert {line.split("[")[1].split("]")[0] for line in result.log} == shown


def test_overflow(tmp_path: Path) -> None:
    """Calls with normal inputs and an overflowing output, three of them, then collection is over."""
    script = fill(
        snippets.TWO_WINDOWS,
        before="import torch\nbig = torch.full((2,), 1000.0)",
        first="torch.add(big, 1); torch.exp(big); torch.exp(big)",
        second="torch.exp(big); torch.exp(big)",
    )
    result = run(tmp_path, snippets.OVERFLOW, script)
    data = result.data(dump="npu_dump")
    assert list(data) == [f"Torch.exp.{n}.forward" for n in range(3)]
    for record in data.values():
        tensor = record["output"][0]
        assert tensor["Max"] == float("inf")
        assert (result.path(dump="npu_dump") / "dump_tensor_data" / tensor["data_name"]).is_file()


def test_analysis_of_overflow(tmp_path: Path) -> None:
    """Run where the dump of ``test_overflow`` lies."""
    script = fill(
        snippets.TWO_WINDOWS,
        before="import torch\nbig = torch.full((2,), 1000.0)",
        first="torch.exp(big)",
        second="torch.add(big, 1)",
    )
    dump = run(tmp_path, snippets.OVERFLOW, script).path(dump="npu_dump")
    result = runs.run(dump, "-m", "msprobe", *snippets.OVERFLOW_ANALYSIS)
    assert result.returncode == 0, result.stderr
    assert "Torch.exp.0" in result.stdout and "normal overflow" in result.stdout


# Two processes that meet in a file, and use every function of the table that their backend has.
RANKS = """\
import sys, torch, torch.distributed as dist
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
x = torch.full((4,), float(rank + 1))
two = [torch.zeros(4), torch.zeros(4)]
"""
FIRST = """\
torch.add(x, x)
dist.all_reduce(x)
dist.broadcast(x, 0)
dist.reduce(x, 0)
dist.all_gather(two, x)
dist.gather(x, two if rank == 0 else None, 0)
dist.scatter(x, two if rank == 0 else None, 0)
"""
SECOND = """\
if rank == 0:
    dist.send(x, 1)
    dist.isend(x, 1).wait()
else:
    dist.recv(x, 0)
    dist.irecv(x, 0).wait()
dist._all_gather_base(torch.zeros(8), x)
dist._reduce_scatter_base(torch.zeros(2), x)
dist.reduce_scatter(torch.zeros(4), two)
"""


def test_communication_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(snippets.COMMUNICATION))
    source = fill(snippets.TWO_WINDOWS, before="", first=FIRST, second=SECOND)
    (tmp_path / "train.py").write_text(RANKS + source)
    jobs = {
        str(rank): lambda rank=rank: runs.run(tmp_path, "train.py", str(rank), str(tmp_path / "meet"))
        for rank in (0, 1)
    }
    results = runs.run_all(jobs)
    seen = set()
    for rank in (0, 1):
        result = results[str(rank)].ok()
        names = list(result.data(rank=rank, dump="npu_dump"))
        assert names and all(name.startswith("Distributed.") for name in names)
        seen |= {name.split(".")[1] for name in names}
    assert seen >= set(snippets.COMMUNICATION_APIS)


def test_a_filter_that_matches_nothing_says_so(tmp_path: Path) -> None:
    """Without communication there is nothing to record, and the log says why."""
    source = fill(snippets.TWO_WINDOWS, before=MODEL, first=FORWARD, second=BACKWARD)
    result = run(tmp_path, snippets.COMMUNICATION, source)
    assert result.data(dump="npu_dump") == {}
    told = [line for line in result.log if "[WARNING]" in line]
    assert len(told) == 1, told
    assert '"distributed"' in told[0] and "the nearest names seen are" in told[0]

    scoped = copy.deepcopy(snippets.WHOLE_NET)
    scoped["tensor"]["scope"] = ["Functional.linaer.0.forward", "Functional.linear.1.forward"]
    result = run(tmp_path / "scope", scoped, source)
    told = [line for line in result.log if "[WARNING]" in line]
    assert len(told) == 1, told
    assert 'no "Functional.linaer.0.forward"' in told[0]
    assert "the nearest names seen are Functional.linear.1.forward" in told[0]


def test_keys_that_mean_nothing_are_named(tmp_path: Path) -> None:
    config = copy.deepcopy(snippets.WHOLE_NET)
    config["tensor"]["lsit"] = ["relu"]
    config["levle"] = "L0"
    result = run(tmp_path, config, fill(snippets.TEMPLATE, before=MODEL, first=FORWARD))
    told = [line for line in result.log if "[WARNING]" in line]
    assert len(told) == 2
    assert 'did you mean "level"?' in told[0] and 'did you mean "list"?' in told[1]
    assert "Functional.linear.0.forward" in result.data(dump="npu_dump")


MORE: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "structure": (
        {"task": "structure", "level": "mix", "structure": {}},
        "debugger.start(model)\nmodel(x).sum().backward()\ndebugger.stop()",
        ["construct.json", "dump.json", "stack.json"],
    ),
    "debug": (
        {"task": "statistics", "level": "debug", "statistics": {"summary_mode": "md5"}},
        "PrecisionDebugger.save(x, 'x')\ndebugger.save({'a': [x]}, 'nest', save_backward=False)",
        ["debug.json"],
    ),
    "modules": (
        {"task": "tensor", "level": "L0", "tensor": {"data_mode": ["forward"]}},
        "debugger.start(model=model)\nmodel(x)\ndebugger.stop()",
        ["construct.json", "dump.json", "dump_tensor_data", "stack.json"],
    ),
    "one module and one function": (
        {"task": "statistics", "level": "L1", "statistics": {}},
        "import types\nmyops = types.SimpleNamespace(scale=lambda x: x * 2)\n"
        "debugger.register_custom_api(myops, 'scale', 'myops')\ndebugger.start()\nmyops.scale(x)\n"
        "module_dump(model[0], 'first')\nmodel(x)\nmodule_dump_end()\ndebugger.stop()\n"
        "debugger.restore_custom_api(myops, 'scale')",
        ["construct.json", "dump.json", "stack.json"],
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_other_tasks_and_calls(name: str, tmp_path: Path) -> None:
    config, calls, files = MORE[name]
    source = (
        "from msprobe.pytorch import PrecisionDebugger, seed_all, module_dump, module_dump_end\n"
        "seed_all(seed=1234, mode=False)\n"
        "debugger = PrecisionDebugger(config_path='./config.json')\n" + MODEL + calls + "\ndebugger.step()\n"
    )
    result = run(tmp_path, {"dump_path": "./dump", "rank": [], "step": [], **config}, source)
    assert sorted(path.name for path in result.path().iterdir() if not path.name.startswith(".")) == files
    if "debug.json" in files:
        assert list(result.document("debug.json")["data"]) == ["x.0.debug", "x_grad.0.debug", "nest.0.debug"]
    elif name == "one module and one function":
        names = list(result.data())
        assert names[0] == "myops.scale.0.forward" and "Module.first.Linear.forward.0" in names
    elif name == "modules":
        assert "Module.0.Linear.forward.0" in result.data()
    else:
        assert result.data() == {} and "Module.0.Linear.forward.0" in result.document("construct.json")


def test_kernels_need_the_device(tmp_path: Path) -> None:
    """Level L2 is for NPUs: here it says so, writes its configuration and lets the training run."""
    config = copy.deepcopy(snippets.WHOLE_NET)
    config.update(level="L2")
    config["tensor"] = {"scope": [], "list": ["Functional.linear.0.forward"]}
    result = run(tmp_path, config, fill(snippets.TEMPLATE, before=MODEL, first=FORWARD))
    assert [line for line in result.log if "kernel dump cannot be used" in line]
    assert list((tmp_path / "npu_dump/step0").glob("kernel_config*.json"))


def test_batches_drive_the_debugger(tmp_path: Path) -> None:
    config = {
        "task": "statistics",
        "dump_path": "./dump",
        "enable_dataloader": True,
        "level": "L1",
        "statistics": {},
    }
    source = (
        "from msprobe.pytorch import PrecisionDebugger\n"
        "debugger = PrecisionDebugger(config_path='./config.json')\n"
        + MODEL
        + "for batch in torch.utils.data.DataLoader(torch.ones(6, 4), batch_size=3):\n    model(batch)\n"
    )
    result = run(tmp_path, config, source)
    assert {"step0", "step1"} <= set(result.steps())
    assert "Functional.linear.0.forward" in result.data(step=1)


def test_what_is_not_in_this_version_says_so(tmp_path: Path) -> None:
    for task in ("free_benchmark", "run_ut"):
        config: dict[str, Any] = {"task": task, "dump_path": "./dump", "level": "L1", task: {}}
        folder = tmp_path / task
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "train.py").write_text(fill(snippets.TEMPLATE, before="", first=""))
        result = runs.run(folder, "train.py")
        assert result.returncode != 0
        text = result.stdout + result.stderr
        assert f"the task {task} is not" in text and "msprobe compare" in text, text
    for statement in (
        "from msprobe.pytorch import TrainerMon",
        "from msprobe.mindspore import TrainerMon",
    ):
        result = runs.run(tmp_path, "-c", statement)
        assert result.returncode != 0
        assert "ImportError" in result.stderr and "is not in this version" in result.stderr, result.stderr


@pytest.mark.parametrize(
    "module, name", [("msprobe.pytorch", "TrainerMon"), ("msprobe.mindspore", "TrainerMon")]
)
def test_asking_for_what_is_not_in_this_version_is_no_error(module: str, name: str) -> None:
    loaded = importlib.import_module(module)
    assert not hasattr(loaded, name)
    with pytest.raises(AttributeError, match="is not in this version"):
        getattr(loaded, name)
    with pytest.raises(ImportError, match="is not in this version"):
        exec(f"from {module} import {name}")
    assert not hasattr(loaded, "nobody_has_heard_of_this")
