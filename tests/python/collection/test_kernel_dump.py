"""Level L2 where there is no NPU: it says so, writes what a device would read, and collects nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from msprobe.core.common.exceptions import FileCheckException
from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end
from msprobe.pytorch.kernel_dump import KernelService, write_kernel_config

from .helpers import NotingService, log_lines, write_config

pytestmark = pytest.mark.usefixtures("services")

WARNING = (
    "[WARNING] The current environment is not a complete NPU environment, and kernel dump cannot be used."
)
STARTED = "[INFO] msprobe: debugger.start() is set successfully"
STOPPED = (
    "[INFO] msprobe: debugger.stop() is set successfully. "
    "Please set debugger.start() to turn on the dump switch again. "
)
END = [
    "[INFO] ****************************************************************************",
    "[INFO] *                        msprobe ends successfully.                        *",
    "[INFO] ****************************************************************************",
]


def l2_config(directory: Path, **keys: object) -> str:
    return write_config(
        directory, task="tensor", level="L2", tensor={"list": ["Torch.relu.0.forward"]}, **keys
    )


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*.*") if path.is_file())


def test_one_step(here: Path, services: list[NotingService], capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(l2_config(here))
    assert isinstance(made.service, KernelService) and services == []
    made.start()
    torch.relu(torch.zeros(2))
    made.stop()
    made.stop()
    made.step()
    assert log_lines(capsys.readouterr().out) == [
        WARNING,
        STARTED,
        "[INFO] Dump switch is turned on at step 0. ",
        "[INFO] Dump data will be saved in ./dump/step0.",
        STOPPED,
    ]
    assert files(here) == ["config.json", "dump/step0/kernel_config.json"]
    text = (here / "dump/step0/kernel_config.json").read_text()
    assert json.loads(text) == {
        "dump": {
            "dump_list": [],
            "dump_path": "./dump/step0",
            "dump_mode": "all",
            "dump_op_switch": "on",
        }
    }
    assert text.startswith('{\n    "dump": {\n        "dump_list": [],')


def test_steps_are_filtered_and_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(l2_config(here, step=[5, 7]))
    made.set_init_step(4)
    for _ in range(6):
        made.start()
        made.stop()
        made.step()
    assert files(here / "dump") == ["step5/kernel_config.json", "step7/kernel_config.json"]
    lines = log_lines(capsys.readouterr().out)
    assert lines.count(WARNING) == 1 and lines.count(STARTED) == lines.count(STOPPED) == 2
    assert lines[-3:] == END and lines.count(END[1]) == 1


def test_a_rank_filter_never_matches_without_a_rank(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(l2_config(here, rank=[0]))
    made.start()
    made.stop()
    assert made.service is not None and made.service.first_start
    assert files(here) == ["config.json"] and capsys.readouterr().out == ""


def test_nothing_else_is_done(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = PrecisionDebugger(l2_config(here))
    relu = torch.relu
    made.register_custom_api(torch, "relu")
    assert torch.relu is relu
    made.restore_custom_api(torch, "relu")
    module_dump(torch.nn.Tanh(), "name")
    module_dump_end()
    made.save(torch.zeros(2), "x")
    assert made.service is not None
    made.service.reset_status()
    assert files(here) == ["config.json"] and capsys.readouterr().out == ""


def test_ranks_have_files_of_their_own(here: Path) -> None:
    for rank, name in [(None, "kernel_config.json"), (3, "kernel_config_3.json")]:
        path = write_kernel_config("./dump/step0", rank)
        assert path == Path("dump/step0", name)
        assert oct(path.stat().st_mode & 0o777) == "0o640"
    assert oct(Path("dump/step0").stat().st_mode & 0o777) == "0o750"
    assert files(here / "dump/step0") == ["kernel_config.json", "kernel_config_3.json"]


def test_paths_with_special_characters_are_refused(here: Path) -> None:
    made = PrecisionDebugger(l2_config(here), dump_path="./a b")
    with pytest.raises(FileCheckException) as raised:
        made.start()
    assert raised.value.code == FileCheckException.ILLEGAL_PATH_ERROR
