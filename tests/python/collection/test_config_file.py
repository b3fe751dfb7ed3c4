"""The configuration file: which files are read, what they mean, and how a wrong one is refused."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from msprobe import _native
from msprobe.core import collect_config
from msprobe.core.common import file_check
from msprobe.core.common.exceptions import CodedException, FileCheckException, MsprobeException
from msprobe.pytorch import PrecisionDebugger
from msprobe.pytorch.framework import PYTORCH

from .helpers import REMARKS, log_lines, write_config

pytestmark = pytest.mark.usefixtures("services")

resolve = functools.partial(collect_config.resolve, PYTORCH)

GOLDEN = Path(__file__).parents[2] / "golden/dump_pytorch/config_validation/cases.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_the_recorded_cases_are_there() -> None:
    assert len(CASES) == 47
    assert sum("ok" in case for case in CASES) == 13


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_case(case: dict[str, Any], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "config.json").write_text(json.dumps(case["config"]))
    if "ok" in case:
        config = PrecisionDebugger("./config.json", **case["kwargs"]).config
        assert {key: getattr(config, key) for key in case["ok"]} == case["ok"]
    else:
        with pytest.raises(Exception) as raised:
            PrecisionDebugger("./config.json", **case["kwargs"])
        assert type(raised.value).__name__ == case["exception"]
        assert str(raised.value) == case["message"]
        assert getattr(raised.value, "code", None) == case.get("code")
        assert PrecisionDebugger._instance is None
    assert log_lines(capsys.readouterr().out) == REMARKS.get(case["name"], []) + case["log"]


def test_without_a_path_the_packaged_file_is_used(here: Path) -> None:
    for path in (None, ""):
        config = resolve(path)
        assert (config.task, config.level, config.dump_path) == ("statistics", "L1", "./dump_path")
        assert (config.rank, config.step, config.list, config.scope) == ([], [], [], [])
        assert not config.enable_dataloader and not config.async_dump


def test_every_section_of_the_packaged_file_is_accepted() -> None:
    for task in ("statistics", "tensor", "overflow_check", "structure"):
        level = "mix" if task == "structure" else "L1"
        assert resolve(task=task, level=level).task == task


@pytest.mark.parametrize("path", [3, Path("config.json"), b"config.json"])
def test_a_path_is_a_string(path: Any) -> None:
    with pytest.raises(MsprobeException, match="config_path must be a string") as raised:
        resolve(path)
    assert raised.value.code == 0


def refused(path: str) -> FileCheckException:
    with pytest.raises(FileCheckException) as raised:
        resolve(path)
    assert path in str(raised.value)
    return raised.value


def test_a_missing_file_is_an_illegal_path(here: Path) -> None:
    assert refused("./config.json").code == FileCheckException.ILLEGAL_PATH_ERROR
    (here / "file").write_text("")
    assert refused("./file/config.json").code == FileCheckException.ILLEGAL_PATH_ERROR


def test_a_link_is_not_followed(here: Path) -> None:
    write_config(here)
    (here / "link.json").symlink_to("config.json")
    assert refused("./link.json").code == FileCheckException.SOFT_LINK_ERROR
    (here / "gone.json").symlink_to("nowhere")
    assert refused("./gone.json").code == FileCheckException.SOFT_LINK_ERROR


def test_a_link_above_the_file_is_followed(here: Path) -> None:
    (here / "real").mkdir()
    write_config(here / "real")
    (here / "link").symlink_to("real")
    assert resolve("link/config.json").dump_path == "./dump"


def test_only_files_are_read(here: Path) -> None:
    (here / "directory.json").mkdir()
    assert refused("directory.json").code == FileCheckException.INVALID_FILE_ERROR
    os.mkfifo("pipe.json")
    assert refused("pipe.json").code == FileCheckException.INVALID_FILE_ERROR


@pytest.mark.parametrize("name", ["a b.json", "a;b.json", "a@b.json", "配置.json", "a\n.json", "a.json\n"])
def test_a_path_is_plain(name: str, here: Path) -> None:
    (here / name).write_text('{"dump_path": "./dump"}')
    assert refused(name).code == FileCheckException.ILLEGAL_PATH_ERROR


def test_a_path_has_an_end(here: Path) -> None:
    for path in ["a" * 256 + ".json", "./" * 2050 + "config.json", "a\0.json"]:
        assert refused(path).code == FileCheckException.ILLEGAL_PATH_ERROR


@pytest.mark.parametrize("name", ["config.yaml", "config", "config.JSON", "config.json.txt"])
def test_the_name_ends_in_json(name: str, here: Path) -> None:
    (here / name).write_text('{"dump_path": "./dump"}')
    assert refused(name).code == FileCheckException.INVALID_FILE_ERROR


def test_a_colon_is_plain(here: Path) -> None:
    (here / "a:b-1_2.json").write_text('{"dump_path": "./dump"}')
    assert resolve("a:b-1_2.json").dump_path == "./dump"


def test_a_file_below_a_gibibyte_is_read(here: Path) -> None:
    path = write_config(here)
    os.truncate(path, 1 << 30)
    assert refused(path).code == FileCheckException.FILE_TOO_LARGE_ERROR


def test_a_file_belongs_to_its_reader(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lstat = write_config(here), os.lstat

    def of_user_7(path: str) -> os.stat_result:
        found = list(lstat(path))
        found[4] = 7
        return os.stat_result(found)

    monkeypatch.setattr(os, "lstat", of_user_7)
    monkeypatch.setattr(os, "getuid", lambda: 8)
    assert refused(path).code == FileCheckException.FILE_PERMISSION_ERROR
    for caller in (7, 0):
        monkeypatch.setattr(os, "getuid", lambda caller=caller: caller)
        assert resolve(path).dump_path == "./dump"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{'task': 1}", b'{"a": 1,}', b"\xff\xfe", b'{"dump_path": "\xe9"}', b"[" * 100_000],
)
def test_what_is_no_json_is_a_runtime_error(content: bytes, here: Path) -> None:
    (here / "config.json").write_bytes(content)
    with pytest.raises(RuntimeError, match=r"cannot read ./config\.json: .+"):
        resolve("./config.json")


def test_a_section_has_to_be_an_object(here: Path) -> None:
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'get'"):
        resolve(write_config(here, statistics=None))


def test_arguments_win_over_the_file(here: Path) -> None:
    path = write_config(
        here, task="tensor", level="L0", step=[1], rank=[2, "4-5"], statistics={"list": ["a"]}
    )
    config = resolve(path)
    assert (config.task, config.file_task, config.level, config.step) == ("tensor", "tensor", "L0", [1])
    config = resolve(path, "statistics", "./other", "mix", ["3-4", 9])
    assert (config.task, config.file_task, config.level) == ("statistics", "tensor", "mix")
    assert (config.dump_path, config.step, config.rank) == ("./other", [3, 4, 9], [2, 4, 5])
    # The section is the one of the argument.
    assert (config.list, config.tensor_list) == (["a"], [])
    assert resolve(path, step=[]).step == []
    assert resolve(path, dump_path="").dump_path == "./dump"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"task": ""}, "task must be one of ['tensor', "),
        ({"task": 1}, "task must be one of ['tensor', "),
        ({"task": "统计"}, "task must be one of ['tensor', "),
        ({"task": "\ud800"}, "task must be one of ['tensor', "),
        ({"task": object()}, "task must be one of ['tensor', "),
        ({"level": "l1"}, "level must be one of ['L0', 'L1', 'L2', 'mix', 'debug']"),
        ({"level": {1}}, "level must be one of ['L0', 'L1', 'L2', 'mix', 'debug']"),
        ({"dump_path": Path("a")}, "dump_path must be a string"),
        ({"dump_path": "\ud800"}, "dump_path must be a string of characters: "),
        ({"step": (1, 2)}, "step is invalid, it should be a list"),
        ({"step": range(3)}, "step is invalid, it should be a list"),
        ({"step": 0}, "step is invalid, it should be a list"),
        ({"step": [True]}, "step element True must be an integer or string."),
        ({"step": [None]}, "step element None must be an integer or string."),
        ({"step": [1.0]}, "step element 1.0 must be an integer or string."),
        ({"step": [float("nan")]}, "step element nan must be an integer or string."),
        ({"step": [[1]]}, "step element [1] must be an integer or string."),
        ({"step": [{2}]}, "step element {2} must be an integer or string."),
        ({"step": [-1]}, "Each element of step must be between 0 and 1000000, currently it is -1."),
    ],
    # Without addresses: tests that run side by side have to have the same names everywhere.
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(MsprobeException) as raised:
        resolve(**arguments)
    assert raised.value.code == 0
    assert raised.value.error_info.startswith(text)


def test_every_value_can_be_read(here: Path) -> None:
    tensor = {"file_format": "npy", "online_run_ut": True, "nfs_path": str(here)}
    config = resolve(write_config(here, task="tensor", tensor=tensor))
    assert (config.file_format, config.check_mode, config.tensor_list) == ("npy", None, None)
    assert (config.online_run_ut, config.nfs_path, config.online_run_ut_recompute) == (True, str(here), False)
    assert (config.host, config.port, config.tls_path) == ("", -1, "./")
    overflow = {"overflow_nums": 5, "check_mode": "aicore"}
    config = resolve(write_config(here, task="overflow_check", overflow_check=overflow))
    assert (config.overflow_nums, config.check_mode, config.online_run_ut) == (5, "aicore", False)
    scope = ["Torch.relu.0.forward", "Torch.relu.1.forward"]
    statistics = {"scope": scope, "data_mode": ["forward", "output"], "summary_mode": "md5"}
    config = resolve(write_config(here, statistics=statistics))
    assert (config.scope, config.data_mode, config.summary_mode) == (scope, ["forward", "output"], "md5")
    assert repr(config) == 'Config(task="statistics", level="L1", dump_path="./dump")'
    with pytest.raises(AttributeError):
        config.dump_path = "elsewhere"  # type: ignore[misc]


def test_filters(here: Path) -> None:
    config = resolve(write_config(here, step=[5, "7-8"], rank=[1]))
    assert [step for step in range(12) if config.wants_step(step)] == [5, 7, 8]
    assert [step for step in range(12) if config.ends_before(step)] == [9, 10, 11]
    assert [config.wants_rank(rank) for rank in (None, 0, 1)] == [False, False, True]
    config = resolve(write_config(here))
    assert config.wants_step(10**9) and not config.ends_before(10**9) and config.wants_rank(None)


def test_the_dump_path_can_be_set_later(here: Path) -> None:
    native = resolve(write_config(here, step=[3]))
    config = collect_config.DebuggerConfig(native)
    config.dump_path = "./dump/actor"
    assert (config.dump_path, config.native.dump_path, native.dump_path) == (
        "./dump/actor",
        "./dump/actor",
        "./dump",
    )
    assert config.step == [3] and config.wants_step(3) and not config.wants_step(4)
    for wrong in ("", None, 3, Path("a")):
        with pytest.raises(MsprobeException, match="dump_path must be a string"):
            config.dump_path = wrong  # type: ignore[assignment]
    assert config.dump_path == "./dump/actor"
    with pytest.raises(AttributeError):
        _ = config.no_such_key


def test_the_core_names_unknown_arguments() -> None:
    with pytest.raises(ValueError, match="there is no argument ranks"):
        _native.resolve_config("{}", '{"ranks": []}', PYTORCH)
    with pytest.raises(ValueError, match="cannot read the arguments"):
        _native.resolve_config("{}", "[", PYTORCH)


def test_all_of_it_is_caught_as_one_class(here: Path) -> None:
    with pytest.raises(CodedException):
        resolve("nowhere.json")
    with pytest.raises(CodedException):
        resolve(write_config(here, task="foo"))


def test_directories_are_made_for_the_group_only(here: Path) -> None:
    file_check.make_directory("./a/b")
    file_check.make_directory("./a/b")
    assert [oct((here / name).stat().st_mode & 0o777) for name in ("a", "a/b")] == ["0o750", "0o750"]


def test_directories_that_are_not_made(here: Path) -> None:
    (here / "link").symlink_to("target")
    (here / "file").write_text("")
    for path, code in [
        ("./link", FileCheckException.SOFT_LINK_ERROR),
        ("./a b", FileCheckException.ILLEGAL_PATH_ERROR),
        ("./a:b", FileCheckException.ILLEGAL_PATH_ERROR),
        ("a" * 256, FileCheckException.ILLEGAL_PATH_ERROR),
        ("/".join("a" * 17), FileCheckException.ILLEGAL_PATH_ERROR),
        ("./file", FileCheckException.INVALID_FILE_ERROR),
        ("./file/a", FileCheckException.FILE_PERMISSION_ERROR),
    ]:
        with pytest.raises(FileCheckException) as raised:
            file_check.make_directory(path)
        assert raised.value.code == code, path
    assert sorted(path.name for path in here.iterdir()) == ["file", "link"]
    file_check.make_directory("/".join("a" * 16))
