"""The debugger's front: one instance, its calls and their arguments, and what it says when they are wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end
from msprobe.pytorch.debugger import precision_debugger

from .helpers import NotingService, log_lines, write_config

pytestmark = pytest.mark.usefixtures("services")

MODEL = torch.nn.Linear(2, 2)
OTHER = torch.nn.Tanh()
CALLS: dict[str, tuple[Any, ...]] = {
    "start": (),
    "stop": (),
    "forward_backward_dump_end": (),
    "step": (),
    "save": (1, "one"),
    "set_init_step": (0,),
    "register_custom_api": (types, "ModuleType"),
    "restore_custom_api": (types, "ModuleType"),
    "monitor": (MODEL,),
}


def debugger(directory: Path, **keys: Any) -> Any:
    return PrecisionDebugger(write_config(directory, **keys))


def calls(made: Any) -> list[tuple[Any, ...]]:
    service = made.service
    assert isinstance(service, NotingService)
    return service.calls


def invalid(text: str, call: Callable[..., object], *arguments: Any) -> None:
    with pytest.raises(MsprobeException) as raised:
        call(*arguments)
    assert (raised.value.code, raised.value.error_info) == (0, text)


def test_importing_msprobe_does_not_import_torch() -> None:
    code = "import sys, msprobe, msprobe.core.collect_config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


# One instance


def test_a_second_construction_returns_the_first(here: Path, services: list[NotingService]) -> None:
    first = debugger(here, level="L0")
    second = PrecisionDebugger(config_path="nowhere.json", task="foo", step=3)  # type: ignore[arg-type]
    assert second is first
    assert (len(services), first.config.level) == (1, "L0")


def test_a_second_construction_with_other_arguments_says_so(
    here: Path, services: list[NotingService], capsys: pytest.CaptureFixture[str]
) -> None:
    PrecisionDebugger(dump_path="./dump", level="L1", step=[1])
    capsys.readouterr()
    PrecisionDebugger()
    PrecisionDebugger(dump_path="./dump", level="L1", step=[1])
    assert capsys.readouterr().out == ""
    PrecisionDebugger(dump_path="./dump", level="L0")
    (line,) = log_lines(capsys.readouterr().out)
    assert line.startswith("[WARNING] There is a PrecisionDebugger in this process already")
    assert "level='L0' is ignored" in line
    assert "dump_path" not in line


def test_a_failed_construction_leaves_none(here: Path) -> None:
    with pytest.raises(FileCheckException):
        PrecisionDebugger("nowhere.json")
    with pytest.raises(Exception, match="PrecisionDebugger instance is not created"):
        PrecisionDebugger.start()
    assert debugger(here).config.dump_path == "./dump"


def test_threads_get_the_same_one(here: Path, services: list[NotingService]) -> None:
    path, found = write_config(here), []
    together = threading.Barrier(8)

    def construct() -> None:
        together.wait()
        found.append(PrecisionDebugger(path))

    threads = [threading.Thread(target=construct) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len({id(one) for one in found}) == 1 and len(services) == 1


@pytest.mark.parametrize("name", CALLS)
def test_no_call_before_construction(name: str) -> None:
    with pytest.raises(Exception) as raised:
        getattr(PrecisionDebugger, name)(*CALLS[name])
    assert type(raised.value) is Exception
    assert str(raised.value) == "PrecisionDebugger instance is not created."


def test_no_module_dump_before_construction() -> None:
    with pytest.raises(MsprobeException) as raised:
        module_dump(MODEL, "name")
    assert raised.value.code == MsprobeException.INTERFACE_USAGE_ERROR
    with pytest.raises(MsprobeException) as raised:
        module_dump_end()
    assert raised.value.code == MsprobeException.INTERFACE_USAGE_ERROR


def test_calls_work_on_class_and_instance(here: Path) -> None:
    made = debugger(here)
    expected = []
    for target in (made, PrecisionDebugger):
        target.start()
        target.stop()
        target.forward_backward_dump_end()
        target.step()
        target.set_init_step(4)
        expected += [("start", None, None), ("stop",), ("stop",), ("step",), ("set_init_step", 4)]
    assert calls(made) == expected


def test_a_call_may_come_from_inside_another(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = debugger(here)
    monkeypatch.setattr(made.service, "stop", lambda: PrecisionDebugger.step(), raising=False)
    made.stop()
    assert calls(made) == [("step",)]


def test_calls_of_threads_do_not_mix(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = debugger(here)
    thread = threading.Thread(target=made.step)

    def stop() -> None:
        thread.start()
        thread.join(timeout=0.2)
        assert thread.is_alive()
        made.service.calls.append(("stopped",))

    monkeypatch.setattr(made.service, "stop", stop, raising=False)
    made.stop()
    thread.join()
    assert calls(made) == [("stopped",), ("step",)]


# start


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_modules_need_a_model(level: str, here: Path) -> None:
    made = debugger(here, level=level)
    invalid("missing the parameter 'model'", made.start)
    invalid("missing the parameter 'model'", made.start, [])
    made.start(MODEL)
    made.start([MODEL, OTHER])
    made.start((OTHER,))
    assert calls(made) == [
        ("start", [("Module.", MODEL)], None),
        ("start", [("Module.0.", MODEL), ("Module.1.", OTHER)], None),
        ("start", [("Module.0.", OTHER)], None),
    ]


@pytest.mark.parametrize("level", ["L1", "debug"])
def test_other_levels_have_no_use_for_a_model(level: str, here: Path) -> None:
    made = debugger(here, level=level)
    made.start(MODEL)
    made.start("anything")
    assert calls(made) == [("start", None, None)] * 2


def test_a_model_stays_until_the_next(here: Path) -> None:
    made = debugger(here, level="L0")
    made.start(MODEL)
    made.start()
    made.start(OTHER)
    made.start()
    assert [models[0][1] for _, models, _ in calls(made)] == [MODEL, MODEL, OTHER, OTHER]


SCRIPTED = torch.jit.ScriptModule()


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (3, "<class 'int'>"),
        ({"m": MODEL}, "<class 'dict'>"),
        ([MODEL, None], "<class 'NoneType'>"),
        ([[MODEL]], "<class 'list'>"),
        (SCRIPTED, str(type(SCRIPTED))),
    ],
    ids=["int", "dict", "none in a list", "list in a list", "script module"],
)
def test_a_model_is_a_module(model: Any, kind: str, here: Path) -> None:
    made = debugger(here, level="L0")
    invalid(
        "The 'model' parameter must be a torch.nn.Module or list[torch.nn.Module] type, "
        f"currently there is an unsupported {kind} type.",
        made.start,
        model,
    )
    assert calls(made) == []


def test_token_range(here: Path) -> None:
    made = debugger(here)
    made.start(MODEL, [0, 0])
    made.start([MODEL], (1, 3))
    invalid("missing the parameter 'model'", debugger(here).start, [], [1, 2])
    assert calls(made) == [
        ("start", [("Module.", MODEL)], (0, 0)),
        ("start", [("Module.0.", MODEL)], (1, 3)),
    ]


def test_token_range_needs_a_model(here: Path) -> None:
    invalid("missing the parameter 'model'", debugger(here).start, None, [1, 2])


@pytest.mark.parametrize(
    "token_range",
    [3, "01", {1, 2}, [], [1], [1, 2, 3], [2, 1], [-1, 2], [0.0, 1], [True, 2], ["1", "2"], [None, 1]],
    ids=str,
)
def test_wrong_token_ranges_are_logged(
    token_range: Any, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = debugger(here)
    with pytest.raises(MsprobeException) as raised:
        made.start(MODEL, token_range)
    assert raised.value.code == 0
    assert log_lines(capsys.readouterr().out) == [f"[ERROR] {raised.value.error_info}"]
    assert calls(made) == []


# Other calls


def test_the_model_argument_is_deprecated(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(write_config(here, level="L0"), model=MODEL)
    (line,) = log_lines(capsys.readouterr().out)
    assert line.startswith("[WARNING] ") and "deprecated" in line
    made.start()
    assert calls(made) == [("start", [("Module.", MODEL)], None)]


@pytest.mark.parametrize("step", [-1, True, 1.0, "1", None])
def test_the_first_step_is_a_natural_number(step: Any, here: Path) -> None:
    made = debugger(here)
    with pytest.raises(MsprobeException) as raised:
        made.set_init_step(step)
    assert raised.value.code == 0
    assert calls(made) == []


def test_custom_apis(here: Path) -> None:
    made = debugger(here)
    holder = types.SimpleNamespace(api=len)
    named = types.ModuleType("myops")
    named.__dict__["api"] = len
    made.register_custom_api(holder, "api")
    made.register_custom_api(named, "api")
    made.register_custom_api(named, "api", "MyOps")
    made.restore_custom_api(named, "api")
    assert calls(made) == [
        ("register_custom_api", holder, "api", "Custom"),
        ("register_custom_api", named, "api", "myops"),
        ("register_custom_api", named, "api", "MyOps"),
        ("restore_custom_api", named, "api"),
    ]
    made.service.calls.clear()
    invalid("api_prefix must be string", made.register_custom_api, named, "api", 3)
    invalid(f"module {named} does not have nothing", made.register_custom_api, named, "nothing")
    invalid(f"module {named} does not have 3", made.register_custom_api, named, 3)
    assert calls(made) == []


def test_module_dump(here: Path) -> None:
    made = debugger(here)
    module_dump(MODEL, "MyNet")
    module_dump_end()
    assert calls(made) == [("module_dump", MODEL, "MyNet"), ("module_dump_end",)]
    wrong: list[Any] = [(3, "MyNet"), (SCRIPTED, "MyNet"), ([MODEL], "MyNet"), (MODEL, 3), (MODEL, None)]
    for module, name in wrong:
        with pytest.raises(MsprobeException) as raised:
            module_dump(module, name)
        assert raised.value.code == 0
    assert len(calls(made)) == 2


def test_frameworks_steer_the_service(here: Path) -> None:
    made = debugger(here, level="L0")
    made.service.config.dump_path = "./dump/actor"
    made.service.first_start = True
    made.service.reset_status()
    assert (made.config.dump_path, made.service.config.native.dump_path) == ("./dump/actor", "./dump/actor")
    assert calls(made) == [("reset_status",)]


# save

NOT_SAVED = (
    "[WARNING] PrecisionDebugger.save variable type not valid, should be one of (<class 'torch.Tensor'>, "
    "<class 'int'>, <class 'float'>, <class 'str'>, <class 'dict'>, <class 'tuple'>, <class 'list'>)"
    "Skip current save process."
)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "variable",
    [
        torch.zeros(2),
        MODEL.weight,
        1,
        2.5,
        "s",
        True,
        [],
        (),
        {},
        {"a": [torch.zeros(1), (1, "s")]},
        nested(50),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_what_can_be_saved(task: str, variable: Any, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = debugger(here, task=task, level="debug")
    PrecisionDebugger.save(variable, "x")
    made.save(variable, "x", save_backward=False)
    assert [(name, value is variable, *rest) for name, value, *rest in calls(made)] == [
        ("save", True, "x", True),
        ("save", True, "x", False),
    ]
    assert capsys.readouterr().out == ""


ENDLESS: list[Any] = []
ENDLESS += [ENDLESS, ENDLESS]


@pytest.mark.parametrize(
    "variable",
    [None, {1: 2}, {"a": {2: 3}}, [1, None], {1}, 1j, torch.float32, nested(51), ENDLESS],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_saved_is_skipped(
    variable: Any, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = debugger(here, level="debug")
    made.save(variable, "x")
    assert calls(made) == []
    assert log_lines(capsys.readouterr().out) == [NOT_SAVED]


@pytest.mark.parametrize(("name", "save_backward"), [(3, True), (None, True), ("x", 1), ("x", None)])
def test_wrong_names_and_flags_are_skipped(
    name: Any, save_backward: Any, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = debugger(here, level="debug")
    made.save(1, name, save_backward)
    assert calls(made) == []
    expected = (
        "save_backward name not valid, should be bool. Skip"
        if isinstance(name, str)
        else "save name not valid, should be string. skip"
    )
    assert log_lines(capsys.readouterr().out) == [
        f"[WARNING] PrecisionDebugger.{expected} current save process."
    ]


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        ({"level": "L1"}, {}),
        ({"level": "mix"}, {}),
        ({"level": "debug", "task": "overflow_check"}, {}),
        # The file's task decides, not the argument's.
        ({"level": "debug", "task": "overflow_check"}, {"task": "statistics"}),
    ],
)
def test_elsewhere_save_is_silent(
    keys: dict[str, Any], arguments: dict[str, Any], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = PrecisionDebugger(write_config(here, **keys), **arguments)
    made.save(torch.zeros(2), "x")
    made.save(None, "x")
    assert calls(made) == []
    assert capsys.readouterr().out == ""


# Tasks that are other features


def test_under_grad_probe_only_monitor_means_something(here: Path, services: list[NotingService]) -> None:
    made = debugger(here, task="grad_probe")
    assert (made.service, made.config, made.task, services) == (None, None, "grad_probe", [])
    for name in CALLS:
        getattr(made, name)(*CALLS[name])
    module_dump(MODEL, "name")
    module_dump_end()


def test_grad_probe_is_chosen_by_file_or_argument(here: Path, services: list[NotingService]) -> None:
    assert PrecisionDebugger(write_config(here), task="grad_probe").task == "grad_probe"
    assert services == []


@pytest.mark.parametrize("task", ["statistics", "tensor", "overflow_check"])
def test_elsewhere_monitor_is_ignored(task: str, here: Path) -> None:
    made = debugger(here, task=task)
    made.monitor(MODEL)
    assert calls(made) == []


def test_free_benchmark_is_refused(here: Path, services: list[NotingService]) -> None:
    invalid(
        "the task free_benchmark is not part of this version; collect the run on both devices with the task "
        "statistics or tensor and compare the dumps with `msprobe compare` instead",
        PrecisionDebugger,
        write_config(here, task="free_benchmark"),
    )
    assert services == []


def test_the_service_is_imported_when_it_is_needed(here: Path) -> None:
    assert "Service" not in vars(sys.modules["msprobe.pytorch"])
    assert precision_debugger._service(debugger(here).config.native).config.dump_path == "./dump"
