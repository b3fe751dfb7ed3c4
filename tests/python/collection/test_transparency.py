"""Training does not notice the tool: the same bits, the same exceptions, nothing kept alive."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.collection.scripts.attach import MODES
from tests.python.collection.scripts.models import MODELS

COLLECTING = ["L0", "L1", "mix", "md5", "tensor"]


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("transparency")
    jobs = {
        mode: functools.partial(runs.run_worker, root / mode, "transparency", mode)
        for mode in ("absent", *MODES)
    }
    return runs.run_all(jobs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
def test_same_bits(model: str, mode: str, digests: dict[str, runs.Result]) -> None:
    assert digests[mode].ok().printed()[model] == digests["absent"].ok().printed()[model]


@pytest.mark.parametrize("mode", COLLECTING)
def test_it_was_collecting(mode: str, digests: dict[str, runs.Result]) -> None:
    """The bits above were those of a run that wrote records of every step."""
    result = digests[mode]
    assert not list(result.folder.rglob("dump_error_info.log"))
    for step in range(5 * len(MODELS)):
        names = result.data(step)
        modules = [name for name in names if name.startswith("Module.")]
        assert bool(modules) == (mode != "L1")
        assert (len(names) > len(modules)) == (mode != "L0")
        assert any(".backward" in name for name in names)


@pytest.mark.parametrize("mode", ["idle", "filtered"])
def test_idle_writes_nothing(mode: str, digests: dict[str, runs.Result]) -> None:
    assert digests[mode].steps() == []


SCENES = [
    "lifetime",
    "compiled",
    "compiled_inductor",
    "raising",
    "two_models",
    "nesting",
    "unencodable",
    "threads",
]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("scenes")
    jobs = {name: functools.partial(runs.run_worker, root / name, "scenes", name) for name in SCENES}
    return runs.run_all(jobs)


def scene(scenes: dict[str, runs.Result], name: str) -> Any:
    return scenes[name].ok().printed()


def test_nothing_is_kept_alive(scenes: dict[str, runs.Result]) -> None:
    told = scene(scenes, "lifetime")
    assert told["watched"] > 10
    assert told["alive"] == []


def test_compiled_module(scenes: dict[str, runs.Result]) -> None:
    told = scene(scenes, "compiled")
    assert told["with"] == told["without"]
    assert "Torch.neg.0.forward" in scenes["compiled"].data()


def test_compiled_to_machine_code(scenes: dict[str, runs.Result]) -> None:
    """Where the graph is cut decides what is fused, and so the last bits."""
    told = scene(scenes, "compiled_inductor")
    for collected, without in zip(told["with"], told["without"]):
        assert collected == pytest.approx(without, rel=1e-5, abs=1e-6)
    assert "Torch.neg.0.forward" in scenes["compiled_inductor"].data()


def test_exceptions_pass(scenes: dict[str, runs.Result]) -> None:
    told = scene(scenes, "raising")
    assert told["api"] == told["api without"]
    assert told["module"] == ["ValueError", "from the forward", True]
    names = list(scenes["raising"].data())
    assert "Torch.neg.0.forward" in names  # after the API that raised
    assert "Torch.neg.1.forward" in names  # after the module that raised
    assert "Module.good.Linear.forward.0" in names
    construct = scenes["raising"].document("construct.json")
    assert construct["Torch.neg.1.forward"] is None
    assert construct["Module.good.Linear.forward.0"] is None


def test_two_models_in_turn(scenes: dict[str, runs.Result]) -> None:
    scene(scenes, "two_models")
    names = [[name for name in scenes["two_models"].data(step) if "forward" in name] for step in range(3)]
    assert names[0] == ["Module.0.Linear.forward.0", "Module.1.Tanh.forward.0"]
    assert names[1] == ["Module.0.Conv1d.forward.0"]
    assert names[2] == names[0]


def test_deep_nesting(scenes: dict[str, runs.Result]) -> None:
    scene(scenes, "nesting")
    result = scenes["nesting"]
    data = result.data()
    value = data["Deep.probe.0.forward"]["input_args"][0]
    for _ in range(20):
        assert isinstance(value, list)
        value = value[0]
    assert value["type"] == "torch.Tensor"
    assert value["Max"] == 1.0
    assert "input_args" not in data.get("Deep.probe.1.forward", {})
    assert "forward_input_data_collect failed: name=Deep.probe.1.forward" in error_log(result)
    assert data["Deep.probe.2.forward"]["input_args"][0]["Max"] == 1.0


def error_log(result: runs.Result) -> str:
    return (result.path() / "dump_error_info.log").read_text()


def test_one_value_that_cannot_be_told(scenes: dict[str, runs.Result]) -> None:
    scene(scenes, "unencodable")
    result = scenes["unencodable"]
    data = result.data()
    # An object that raises at every touch is at worst the loss of its phase.
    assert data["Odd.probe.0.forward"]["output"][0]["Max"] == 2.0
    # A numpy complex has no JSON form: the value is null or the phase is missing, the rest is whole.
    assert data["Odd.probe.1.forward"]["output"][0]["Max"] == 2.0
    arguments = data["Odd.probe.1.forward"].get("input_args")
    assert arguments is None or arguments[1]["Max"] == 1.0
    # Later values, and their file names, are untouched.
    later = data["Odd.probe.2.forward"]
    assert later["input_args"][0]["data_name"] == "Odd.probe.2.forward.input.0.pt"
    assert list(later) == ["input_args", "input_kwargs", "is_recompute", "output"]


def test_threads(scenes: dict[str, runs.Result]) -> None:
    told = scene(scenes, "threads")
    result = scenes["threads"]
    data = result.data()
    assert told["with"] == told["without"]
    for name in ("Torch.neg", "Functional.gelu"):
        numbers = sorted(
            int(key.split(".")[2]) for key in data if key.startswith(name + ".") and "forward" in key
        )
        assert numbers == list(range(told["calls"]))
    # Each thread has its own module stack: no API gets a parent of another thread's model.
    construct = result.document("construct.json")
    parents = {construct[key] for key in data if key.startswith("Functional.gelu.") and "forward" in key}
    assert parents == {None}
    linear = [construct[key] for key in data if key.startswith("Functional.linear.") and "forward" in key]
    assert len(linear) == len(set(linear)) == told["calls"]
