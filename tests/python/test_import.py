"""What happens before any tensor is touched: imports, the command, exceptions, the log."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import msprobe
from msprobe import _native
from msprobe.core.common.exceptions import (
    CodedException,
    FileCheckException,
    MsprobeException,
    ScopeException,
    TensorFileError,
)
from msprobe.core.common.log import Logger, logger

FIXTURES = Path(__file__).parents[1] / "fixtures"
SCRIPT = Path(sys.executable).with_name("msprobe")
COMMANDS = [[sys.executable, "-m", "msprobe"], [str(SCRIPT)]]


def run(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    full_env = {key: value for key, value in os.environ.items() if not key.startswith("MSPROBE_")} | env
    return subprocess.run(command, capture_output=True, text=True, env=full_env, timeout=300, check=False)


@pytest.mark.parametrize(
    "module",
    [
        "msprobe",
        "msprobe.core",
        "msprobe.core.tensor",
        "msprobe.core.collect_config",
        "msprobe.core.common.exceptions",
        "msprobe.core.common.file_check",
        "msprobe.core.common.log",
        "msprobe.__main__",
    ],
)
def test_importing_imports_no_framework(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'torch', 'numpy', 'mindspore'}} & set(sys.modules)))"
    result = run([sys.executable, "-c", code])
    assert (result.stdout, result.stderr, result.returncode) == ("\n", "", 0)


def test_one_version_everywhere() -> None:
    assert msprobe.__version__ == _native.__version__ == version("msprobe-rs")


def import_beside(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import msprobe; print('imported')"
    return run([sys.executable, *arguments, "-c", code], PYTHONPATH=str(site))


@pytest.mark.parametrize(
    "name",
    ["mindstudio_probe-8.1.2.dist-info", "mindstudio-probe-26.2.0.dist-info", "mindstudio_probe.egg-info"],
)
def test_another_package_of_this_name_is_warned_of(name: str, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / name).mkdir(parents=True)
    warned = import_beside(site)
    assert (warned.stdout, warned.returncode) == ("imported\n", 0)
    assert f"mindstudio-probe is installed in {site}" in warned.stderr
    assert "pip uninstall -y mindstudio-probe" in warned.stderr
    assert "Traceback" not in warned.stderr
    # Not even those who want errors for warnings are kept from training.
    strict = import_beside(site, "-W", "error")
    assert (strict.stdout, strict.returncode) == ("imported\n", 0)
    assert "mindstudio-probe is installed in" in strict.stderr
    ignored = import_beside(site, "-W", "ignore")
    assert (ignored.stdout, ignored.stderr) == ("imported\n", "")


@pytest.mark.parametrize(
    "name", ["mindstudio_probes-1.dist-info", "mindstudio_probe", "msprobe_rs-0.1.0.dist-info"]
)
def test_other_packages_are_not_warned_of(name: str, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / name).mkdir(parents=True)
    result = import_beside(site)
    assert (result.stdout, result.stderr, result.returncode) == ("imported\n", "", 0)


@pytest.mark.parametrize("command", COMMANDS, ids=["module", "script"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["inspect", FIXTURES / "npy/c_float32.npy"], 0),
        (["diff", FIXTURES / "npy/c_float32.npy", FIXTURES / "npy/c_float64.npy"], 1),
        (["inspect", "nowhere.npy"], 2),
        (["no-such-command"], 2),
        ([], 0),
    ],
    ids=["version", "ok", "differs", "missing", "usage", "nothing"],
)
def test_exit_codes_pass_through(command: list[str], arguments: list[str], code: int) -> None:
    result = run([*command, *map(str, arguments)])
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    if arguments == ["--version"]:
        assert result.stdout == f"msprobe {msprobe.__version__}\n"
    if code == 2:
        assert result.stdout == ""
        assert result.stderr != ""


def test_the_module_and_the_script_say_the_same() -> None:
    arguments = ["inspect", str(FIXTURES / "pt/training.pt")]
    module, script = (run([*command, *arguments]) for command in COMMANDS)
    assert (module.stdout, module.stderr) == (script.stdout, script.stderr)
    assert "tensors read" in module.stdout


@pytest.mark.parametrize(
    ("exception", "prefixes"),
    [
        (
            MsprobeException,
            [
                "[msprobe] 无效参数：",
                "[msprobe] 超过预设溢出次数 当前溢出次数：",
                "[msprobe] 递归调用超过限制：",
                "[msprobe] Invalid interface usage: ",
                "[msprobe] Unsupported type: ",
            ],
        ),
        (
            ScopeException,
            [
                "[msprobe] Invalid api_list: ",
                "[msprobe] Invalid scope: ",
                "[msprobe] Scope and api_list conflict: ",
            ],
        ),
        (
            FileCheckException,
            [
                "[msprobe] 无效文件： ",
                "[msprobe] 文件权限错误： ",
                "[msprobe] 检测到软链接： ",
                "[msprobe] 非法文件路径： ",
                "[msprobe] 非法打开方式： ",
                "[msprobe] 文件过大： ",
            ],
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_codes_and_prefixes(exception: type[CodedException], prefixes: list[str]) -> None:
    assert issubclass(exception, CodedException)
    assert sorted(exception.err_strs) == list(range(len(prefixes)))
    for code, prefix in enumerate(prefixes):
        assert str(exception(code)) == prefix
        error = exception(code, "details")
        assert (error.code, error.error_info, str(error)) == (code, "details", f"{prefix}details")
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.code) == (exception, str(error), code)
    assert str(exception(99, "details")) == "details"


def test_constants_name_the_codes() -> None:
    assert MsprobeException.INVALID_PARAM_ERROR == 0
    assert MsprobeException.OVERFLOW_NUMS_ERROR == 1
    assert MsprobeException.RECURSION_LIMIT_ERROR == 2
    assert MsprobeException.INTERFACE_USAGE_ERROR == 3
    assert MsprobeException.UNSUPPORTED_TYPE_ERROR == 4
    assert (ScopeException.INVALID_API_STR, ScopeException.INVALID_SCOPE, ScopeException.ARG_CONFLICT) == (
        0,
        1,
        2,
    )
    assert FileCheckException.INVALID_FILE_ERROR == 0
    assert FileCheckException.FILE_PERMISSION_ERROR == 1
    assert FileCheckException.SOFT_LINK_ERROR == 2
    assert FileCheckException.ILLEGAL_PATH_ERROR == 3
    assert FileCheckException.ILLEGAL_PARAM_ERROR == 4
    assert FileCheckException.FILE_TOO_LARGE_ERROR == 5


def test_tensor_file_error_says_what_to_do() -> None:
    error = TensorFileError("cannot read a.pt", Path("a.pt"), "w", "copy it again")
    assert isinstance(error, FileCheckException)
    assert str(error) == "[msprobe] 无效文件： cannot read a.pt\nhint: copy it again"
    assert str(TensorFileError("cannot read a.pt", "a.pt")) == "[msprobe] 无效文件： cannot read a.pt"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.path, copy.tensor, copy.hint) == (str(error), "a.pt", "w", "copy it again")


LOG_ALL = """
from msprobe.core.common.log import logger
for level in ["debug", "info", "warning", "error"]:
    getattr(logger, level)(f"at {level}")
"""


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("0", ["DEBUG", "INFO", "WARNING", "ERROR"]),
        ("1", ["INFO", "WARNING", "ERROR"]),
        ("2", ["WARNING", "ERROR"]),
        ("3", ["ERROR"]),
        ("4", []),
        (None, ["INFO", "WARNING", "ERROR"]),
        ("", ["INFO", "WARNING", "ERROR"]),
        ("5", ["INFO", "WARNING", "ERROR"]),
        ("-1", ["INFO", "WARNING", "ERROR"]),
        ("loud", ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_log_levels(setting: str | None, shown: list[str]) -> None:
    env = {} if setting is None else {"MSPROBE_LOG_LEVEL": setting}
    result = run([sys.executable, "-c", LOG_ALL], **env)
    assert (result.stderr, result.returncode) == ("", 0)
    line = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \((\d+)\) \[([A-Z]+)\] at ([a-z]+)")
    matches = [line.fullmatch(text) for text in result.stdout.splitlines()]
    assert [match and match[2] for match in matches] == shown
    assert all(match and match[3] == match[2].lower() for match in matches)
    assert len({match[1] for match in matches if match}) <= 1


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("a\nb", "a_b"),
        ("a\r\tb", "a__b"),
        ("\x1b[31mred\x7f", "_[31mred_"),
        ("nul\x00 csi\x9b", "nul_ csi_"),
        ("x\u202egnp.exe\u2066 \u2028fake", "x_gnp.exe_ _fake"),
        ("100%0A%0d%00%7F", "100____"),
        ("100%, %0, %zz", "100%, %0, %zz"),
        ("权重 ok", "权重 ok"),
        (ValueError("objects\ntoo"), "objects_too"),
    ],
)
def test_control_characters_cannot_break_a_line(
    capsys: pytest.CaptureFixture[str], message: object, text: str
) -> None:
    logger.error(message)
    out, err = capsys.readouterr()
    assert err == ""
    assert out.endswith(f" ({os.getpid()}) [ERROR] {text}\n")
    assert out.count("\n") == 1


def test_adapters_put_the_rank_before_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    class Ranked(Logger):
        def prefix(self) -> str:
            return "[rank 3] "

    Ranked().error("text")
    assert capsys.readouterr().out.endswith(f" ({os.getpid()}) [rank 3] [ERROR] text\n")
