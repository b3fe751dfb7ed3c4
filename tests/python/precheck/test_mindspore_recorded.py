"""MindSpore's ``run_ut`` on dumps that have the outputs: MindSpore is not needed, and not run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.python.precheck.mindspore_tables import same_tables
from tests.python.precheck.running import GOLDEN, run_ut, tables

CASE = GOLDEN / "ms_run_ut_real_data"


@pytest.mark.parametrize("name", ["run_ut", "multi_run_ut"])
def test_recorded_outputs(name: str, tmp_path: Path) -> None:
    shutil.copytree(CASE, tmp_path / "case")
    more = ("-d", "0", "1") if name == "multi_run_ut" else ()
    ended = run_ut(
        *("-api_info", "dump.json", "-o", "out", *more),
        cwd=tmp_path / "case",
        name=name,
        framework="mindspore",
    )
    assert ended.code == 0, ended
    if name == "run_ut":
        same_tables(tmp_path / "case" / "out", CASE / "expected", 1e-9)
    else:
        result = (CASE / "expected" / "accuracy_checking_result.csv").read_bytes()
        found = tables(tmp_path / "case" / "out").result_bytes
        assert sorted(found.splitlines()) == sorted(result.splitlines())


def test_a_run_is_continued_without_repeating(tmp_path: Path) -> None:
    shutil.copytree(CASE, tmp_path / "case")
    where: dict[str, Any] = {"cwd": tmp_path / "case", "framework": "mindspore"}
    run_ut("-api_info", "dump.json", "-o", "out", **where)
    (csv,) = (tmp_path / "case" / "out").glob("accuracy_checking_result*.csv")
    before = csv.read_bytes()
    run_ut("-api_info", "dump.json", "-o", "out", "-csv_path", csv, **where)
    assert csv.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "-api_info/--api_info_file"),
        (["-api_info", "wrong.json"], "Api Accuracy Checker parse json failed"),
    ],
)
def test_wrong_usage(arguments: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text(json.dumps({"task": "md5", "data": {}}))
    ended = run_ut(*arguments, cwd=tmp_path, framework="mindspore")
    assert ended.code == 2 and text in ended.err and "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        (["1", "1"], "device id must be unique"),
        (["4096"], "the argument 'device_id' must be in range [0, 4095], but got 4096"),
    ],
)
def test_wrong_devices(devices: list[str], text: str, tmp_path: Path) -> None:
    ended = run_ut(
        "-api_info", "x.json", "-d", *devices, cwd=tmp_path, framework="mindspore", name="multi_run_ut"
    )
    assert ended.code == 2 and text in ended.err
