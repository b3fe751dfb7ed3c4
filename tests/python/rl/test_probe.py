"""RLProbe against stand-ins that note every call, and switched off in processes of its own."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
from collections import UserDict
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from msprobe.core.common.log import logger
from msprobe.rl import KEYS, PHASES, RLProbe
from msprobe.rl.plain import plain
from tests.python.collection import runs

LAYERS = {
    "actor_infer_dump": True,
    "actor_train_dump": True,
    "reference_dump": True,
    "critic_train_dump": True,
}
Calls = list[tuple[Any, ...]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What is called on the saver, the debugger and its service, in order."""
    noted: Calls = []

    class Service:
        def __init__(self) -> None:
            self.first_start = True
            self.config = SimpleNamespace(dump_path=None)
            self.takes_starts = True

        def reset_status(self) -> None:
            noted.append(("reset_status",))

    class Debugger:
        def __init__(self, **arguments: Any) -> None:
            noted.append(("PrecisionDebugger", arguments))
            self.service = Service()
            self.model: Any = None

        def start(self, **arguments: Any) -> None:
            service = self.service
            noted.append(("start", service.config.dump_path, service.first_start, arguments))
            self.model = arguments["model"]
            if service.takes_starts:
                service.first_start = False

        def stop(self) -> None:
            noted.append(("stop",))

        def step(self) -> None:
            noted.append(("debugger.step",))

    class Saver:
        def __init__(self, dump_path: str) -> None:
            noted.append(("SingleSave", dump_path))

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: noted.append((name, *arguments))

    for module, name, value in (
        ("msprobe.core", "SingleSave", Saver),
        ("msprobe.pytorch", "PrecisionDebugger", Debugger),
    ):
        fake = ModuleType(module)
        setattr(fake, name, value)
        monkeypatch.setitem(sys.modules, module, fake)
    return noted


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(logger, "warning", lines.append)
    return lines


def made(calls: Calls, **keys: Any) -> RLProbe:
    probe = RLProbe({"msprobe": True, "dump_path": "d", **keys})
    assert probe.enabled
    return probe


def test_names() -> None:
    assert KEYS == (
        "prompts",
        "responses",
        "values",
        "old_log_prob",
        "ref_log_prob",
        "advantages",
        "log_prob",
        "kl_loss",
        "loss",
    )


def test_debugger_only_for_layers(calls: Calls) -> None:
    probe = made(calls, key_data_dump=True, configurations_dump=True)
    assert calls == []
    for phase in PHASES:
        with probe.phase(phase, None):
            pass
    assert calls == []
    made(calls, reference_dump=True, step_start=1, step_end=3)
    arguments = {"task": "statistics", "level": "L0", "step": ["1-3"], "dump_path": "d"}
    assert calls == [("PrecisionDebugger", arguments)]


def test_what_is_called_for_a_phase(calls: Calls, warnings: list[str]) -> None:
    probe = made(calls, **LAYERS, token_range_start=1, token_range_end=2)
    calls.clear()
    actor, reference = torch.nn.Linear(1, 1), [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)]
    begin: Calls = [("reset_status",)]
    end: Calls = [("stop",), ("reset_status",)]

    with probe.phase("actor_generate_sequences", actor):
        tokens = {"model": actor, "token_range": [1, 2]}
        assert calls == [*begin, ("start", "d/actor_generate_sequences", True, tokens)]
        calls.clear()
    assert calls == end
    calls.clear()

    probe.begin("reference_compute_log_prob", reference)
    probe.end()
    assert calls == [*begin, ("start", "d/reference_compute_log_prob", True, {"model": reference}), *end]
    calls.clear()

    # Hooked already: the actor, and the list in any form.
    for phase, model in (
        ("actor_compute_log_prob", actor),
        ("actor_update", actor),
        ("critic_compute_values", tuple(reference)),
        ("critic_update", reference[1]),
    ):
        with probe.phase(phase, model):
            pass
        assert calls == [*begin, ("start", f"d/{phase}", False, {"model": model}), *end]
        calls.clear()
    probe.step()
    assert calls == [("SingleSave", "d"), ("step",), ("debugger.step",)]
    assert warnings == []


@pytest.mark.parametrize("switch", LAYERS)
def test_switches(switch: str, calls: Calls) -> None:
    probe = made(calls, **{switch: True})
    model = torch.nn.Linear(1, 1)
    for phase in PHASES:
        with probe.phase(phase, model):
            pass
    started = {call[1].removeprefix("d/") for call in calls if call[0] == "start"}
    assert (
        started
        == {
            "actor_infer_dump": {"actor_generate_sequences"},
            "actor_train_dump": {"actor_compute_log_prob", "actor_update"},
            "reference_dump": {"reference_compute_log_prob"},
            "critic_train_dump": {"critic_compute_values", "critic_update"},
        }[switch]
    )


def test_a_start_without_effect_hooks_nothing(calls: Calls) -> None:
    probe: Any = made(calls, reference_dump=True)
    model = torch.nn.Linear(1, 1)
    service = probe._debugger.service
    for takes_starts in (False, False, True, True):
        service.takes_starts = takes_starts
        with probe.phase("reference_compute_log_prob", model):
            pass
    assert [call[2] for call in calls if call[0] == "start"] == [True, True, True, False]


def test_unknown_phase(calls: Calls) -> None:
    probe = made(calls)
    for ask in (probe.phase, probe.begin):
        with pytest.raises(ValueError, match="'actor_train'") as error:
            ask("actor_train", None)
        assert all(phase in str(error.value) for phase in PHASES)


def test_unbalanced(calls: Calls, warnings: list[str]) -> None:
    probe = made(calls, actor_train_dump=True)
    model = torch.nn.Linear(1, 1)

    def names() -> list[str]:
        found = [call[0] for call in calls if call[0] in ("start", "stop", "debugger.step")]
        calls.clear()
        return found

    probe.end()
    assert (names(), len(warnings)) == ([], 1)
    assert "no phase is open" in warnings.pop()

    probe.begin("actor_update", model)
    probe.begin("actor_compute_log_prob", model)
    assert (names(), len(warnings)) == (["start", "stop", "start"], 1)
    assert "actor_compute_log_prob and ends actor_update" in warnings.pop()
    probe.end()
    assert (names(), warnings) == (["stop"], [])

    # Phases that are not collected count as phases.
    probe.begin("actor_update", model)
    probe.begin("critic_update")
    assert (names(), len(warnings)) == (["start", "stop"], 1)
    warnings.clear()
    probe.end()
    assert (names(), warnings) == ([], [])

    # The block around an inner phase, or a step, does not end anything twice.
    with probe.phase("actor_update", model):
        with probe.phase("actor_compute_log_prob", model):
            pass
        assert (names(), len(warnings)) == (["start", "stop", "start", "stop"], 1)
    with probe.phase("actor_update", model):
        probe.step()
    assert (names(), len(warnings)) == (["start", "stop", "debugger.step"], 2)


def test_an_exception_ends_the_phase(calls: Calls, warnings: list[str]) -> None:
    probe = made(calls, actor_train_dump=True)
    with pytest.raises(KeyError), probe.phase("actor_update", torch.nn.Linear(1, 1)):
        raise KeyError("of the user's")
    assert [call[0] for call in calls[1:]] == ["reset_status", "start", "stop", "reset_status"]
    assert warnings == []


def test_saves(calls: Calls) -> None:
    probe = made(calls)
    probe.save({"loss": 1})
    probe.save_config({"rl": 1})
    assert calls == []
    probe = made(calls, key_data_dump=True, configurations_dump=True)
    probe.save(UserDict({"loss": 1}))
    assert calls == [("SingleSave", "d"), ("save", {"loss": 1})]
    assert type(calls[1][1]) is dict
    probe.save_config({"dtype": torch.bfloat16})
    probe.step()
    assert calls[2:] == [("save_config", {"dtype": "torch.bfloat16"}), ("step",)]


class Colour(str, enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 9


class Hidden:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Missing(UserDict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise LookupError(key)

    def __str__(self) -> str:
        return "values are missing"


@dataclasses.dataclass
class Optimizer:
    rate: float


def test_configurations_become_plain() -> None:
    circle: dict[str, Any] = {"list": [1]}
    circle["list"].append(circle)
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    config = {
        "actor": UserDict({"shape": (1, 2), "dtype": torch.float16, "path": Path("a/b")}),
        3: None,
        (1, 2): {True: 1.5},
        "enums": [Colour.RED, Size.BIG, {Colour.RED: 1}],
        "optimizer": Optimizer(0.1),
        "hidden": Hidden(),
        "missing": Missing(a=1),
        "circle": circle,
        "set": {1},
    }
    expected = {
        "actor": {"shape": [1, 2], "dtype": "torch.float16", "path": "a/b"},
        3: None,
        "(1, 2)": {True: 1.5},
        "enums": ["red", 9, {"red": 1}],
        "optimizer": "Optimizer(rate=0.1)",
        "hidden": "<Hidden>",
        "missing": "values are missing",
        "circle": {"list": [1, str(circle)]},
        "set": "{1}",
    }
    got = plain(config)
    assert got == expected
    assert [type(item) for item in got["enums"][:2]] == [str, int]
    json.dumps([got, plain(deep)])


OFF = """\
import json, sys
import msprobe.rl
def loaded():
    return sorted(name for name in sys.modules if name.startswith("msprobe"))
def others():
    return sorted({"torch", "numpy", "yaml", "mindspore"} & set(sys.modules))
probe = msprobe.rl.RLProbe(%s)
assert isinstance(probe, msprobe.rl.RLProbe) and probe.enabled is False
probe.begin("actor_update", object())
probe.end()
probe.end()
with probe.phase("reference_compute_log_prob", [object()]):
    probe.save({"loss": 1})
    probe.save_config({})
try:
    with probe.phase("actor_update"):
        raise KeyError
except KeyError:
    probe.step()
print("RESULT " + json.dumps([loaded(), others()]))
"""
MODULES = ["msprobe", "msprobe._other_install", "msprobe.rl", "msprobe.rl.config", "msprobe.rl.probe"]


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("None", []),
        (
            "{'msprobe': False, 'key_data_dump': True, 'reference_dump': True, 'configurations_dump': True}",
            [],
        ),
        ("{'msprobe_config': {'msprobe': False, 'actor_train_dump': True}}", []),
        ("'train.yaml'", ["yaml"]),
    ],
)
def test_switched_off(source: str, others: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("msprobe_config: {msprobe: false, key_data_dump: true}\n")
    result = runs.run(tmp_path, "-c", OFF % source).ok()
    assert (result.printed(), result.stderr) == ([MODULES, others], "")
    assert [path.name for path in tmp_path.iterdir()] == ["train.yaml"]


def test_a_class_of_its_own_can_be_off_too(capsys: pytest.CaptureFixture[str]) -> None:
    class Own(RLProbe):
        pass

    probe = Own({"reference_dump": True})
    assert type(probe) is Own and not probe.enabled
    with probe.phase("actor_update"):
        probe.save({"loss": 1})
    probe.end()
    probe.save_config({})
    probe.step()
    assert capsys.readouterr().out == ""


FAILS = """\
import sys
import msprobe.rl
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == %r:
            raise ImportError("not on this\\nmachine")
sys.meta_path.insert(0, Refuse())
sys.modules.pop(%r, None)
probe = msprobe.rl.RLProbe({"msprobe": True, "reference_dump": True, "key_data_dump": True, "dump_path": "d"})
print(probe.enabled)
with probe.phase("reference_compute_log_prob", object()):
    pass
probe.step()
"""


@pytest.mark.parametrize(
    ("module", "name", "consequence", "enabled"),
    [
        ("msprobe.core", "SingleSave", "nothing is collected", False),
        ("msprobe.pytorch", "PrecisionDebugger", "no layers are collected", True),
    ],
)
def test_what_cannot_be_imported(
    module: str, name: str, consequence: str, enabled: bool, tmp_path: Path
) -> None:
    result = runs.run(tmp_path, "-c", FAILS % (module, module)).ok()
    line = f"[msprobe] cannot import {name} from {module}, so {consequence}: not on this machine"
    assert (result.stdout, result.stderr) == (f"{line}\n{enabled}\n", "")
