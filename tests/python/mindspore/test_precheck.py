"""MindSpore's ``run_ut`` with MindSpore itself, against PyTorch on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.python.precheck.mindspore_tables import same_tables
from tests.python.precheck.running import GOLDEN, ROOT, rows_of, tables, write_dump

# The environment of MindSpore's tests has no PyTorch; that of PyTorch's is looked at last.
START = "import sys; sys.path.append({site!r}); from msprobe.__main__ import main; sys.exit(main())"


def torch_site() -> str:
    given = os.environ.get("TORCH_SITE")
    found = [Path(given)] if given else sorted((ROOT / ".venv" / "lib").glob("python*/site-packages"))
    if not found or not (found[0] / "torch").is_dir():
        pytest.fail("PyTorch is not in .venv; TORCH_SITE may name its site-packages")
    return str(found[0])


def run(*arguments: Any, cwd: Path, name: str = "run_ut") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            START.format(site=torch_site()),
            *("-f", "mindspore", name),
            *map(str, arguments),
        ],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_statistics(tmp_path: Path) -> None:
    case = GOLDEN / "ms_run_ut_statistics"
    ended = run("-api_info", case / "dump.json", "-o", "out", "-save_error_data", cwd=tmp_path)
    assert ended.returncode == 0, ended
    same_tables(tmp_path / "out", case / "expected", 1e-6)
    saved = {path.name for path in (tmp_path / "out" / "error_data").iterdir()}
    assert {"Mint.sin.0.forward.input.0.npy", "Mint.sin.0.forward.output.0.npy"} <= saved


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    case = GOLDEN / "ms_run_ut_statistics"
    ended = run(
        "-api_info", case / "dump.json", "-o", "out", "-d", "0", "1", cwd=tmp_path, name="multi_run_ut"
    )
    assert ended.returncode == 0, ended
    expected = rows_of(case / "expected" / "accuracy_checking_result.csv")
    assert sorted(tables(tmp_path / "out").result) == sorted(expected)


def tensor(*shape: int, dtype: str = "Float32", low: float = -1.0, high: float = 1.0) -> dict[str, Any]:
    return {"type": "mindspore.Tensor", "dtype": dtype, "shape": list(shape), "Max": high, "Min": low}


def test_more_types_and_gradients(tmp_path: Path) -> None:
    data = {
        "Mint.add.0.forward": {
            "input_args": [tensor(3, dtype="BFloat16"), tensor(3, dtype="BFloat16")],
            "input_kwargs": {},
            "output": [],
        },
        "Mint.where.0.forward": {
            "input_args": [tensor(4, dtype="Bool", low=0, high=1), tensor(4), tensor(4)],
            "input_kwargs": {},
            "output": [],
        },
        "Mint.where.0.backward": {"input": [tensor(4)], "output": []},
        "Mint.cat.0.forward": {
            "input_args": [[tensor(2, 3), tensor(2, 3)]],
            "input_kwargs": {"dim": {"type": "int", "value": 1}},
            "output": [],
        },
        "Mint.cat.0.backward": {"input": [tensor(2, 6)], "output": []},
        "Mint.add.1.forward": {
            "input_args": [tensor(3, dtype="UInt16"), tensor(3, dtype="UInt16")],
            "input_kwargs": {},
            "output": [],
        },
    }
    dump = write_dump(tmp_path, data, framework="mindspore")
    ended = run("-api_info", dump, "-o", "out", cwd=tmp_path)
    rows = {row[0]: row[1:] for row in tables(tmp_path / "out").result[1:]}
    assert rows["Mint.add.0"][:2] == ["pass", ""], ended
    assert rows["Mint.where.0"][:2] == ["pass", "pass"], ended
    assert rows["Mint.cat.0"][:2] == ["pass", "pass"], ended
    assert rows["Mint.add.1"][0] == "SKIP" and "unsupported type" in rows["Mint.add.1"][2]
