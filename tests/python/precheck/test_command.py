"""Flags, texts, and what a run is: repeatable, resumable, without effects of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msprobe.core.precheck.command import python_command
from msprobe.core.precheck.settings import read_settings
from tests.python.precheck.faults import number, tensor
from tests.python.precheck.running import ROOT, rows_of, run_ut, tables, write_dump

RUN_UT_FLAGS = [
    "-h",
    "--help",
    "-api_info",
    "--api_info_file",
    "-o",
    "--out_path",
    "-save_error_data",
    "-j",
    "--jit_compile",
    "-d",
    "--device",
    "-csv_path",
    "--result_csv_path",
    "-f",
    "--filter_api",
    "-config",
    "--config_path",
]
OWN_FLAGS = ["--strict", "--import"]
CPU = ("-d", "cpu")


def forward(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"input_args": list(args), "input_kwargs": kwargs, "output": []}


SOME = {
    "Torch.exp.0.forward": forward(tensor(5)),
    "Torch.exp.0.backward": {"input": [tensor(5)], "output": []},
    "Torch.matmul.0.forward": forward(tensor(4, 6), tensor(6, 3)),
    "Functional.softmax.0.forward": forward(tensor(3, 8, dtype="torch.bfloat16"), number(-1)),
    "Torch.exp.1.forward": forward(tensor(5, low=-2.0)),
    "Tensor.add.0.forward": forward(tensor(5), tensor(5)),
    "Torch.rand_like.0.forward": forward(tensor(5)),
}
NAMES = [key.removesuffix(".forward") for key in SOME if key.endswith(".forward")]


def test_flags_of_the_help(tmp_path: Path) -> None:
    ended = run_ut("-h", cwd=tmp_path)
    assert ended.code == 0
    flags = {
        word.strip("[],")
        for line in ended.out.splitlines()
        for word in line.split()
        if word.startswith(("-", "[-"))
    }
    assert flags == {*RUN_UT_FLAGS, *OWN_FLAGS}
    for name in ("acc_check", "multi_run_ut", "multi_acc_check", "run_overflow_check"):
        assert run_ut("-h", cwd=tmp_path, name=name).code == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-d", "0", "0"], "device id must be unique"),
        (["-d", "-1"], "device id must be greater than or equal to 0"),
        (["-d", "x y"], "invalid int value: 'x y'"),
        ([], "Please provide api_info_file for offline run ut."),
        (["-api_info", "absent.json"], "absent.json does not exist"),
        (["-api_info", "dump.txt"], "has to end in .json"),
        (["-api_info", "dump.json", "-d", "nosuch:0"], "the device nosuch:0 cannot be used"),
        (["-api_info", "dump.json", "-csv_path", "renamed.csv"], "do not modify the result csv name"),
        (["-api_info", "dump.json", "-config", "bad_list.json"], "Invalid api in white_list: ['nothing']"),
        (["-api_info", "dump.json", "--import", "no_such_module"], "No module named 'no_such_module'"),
    ],
)
def test_wrong_usage(arguments: list[str], text: str, tmp_path: Path) -> None:
    write_dump(tmp_path, SOME)
    (tmp_path / "renamed.csv").write_text("API name\n")
    (tmp_path / "bad_list.json").write_text(json.dumps({"run_ut": {"white_list": ["nothing"]}}))
    if "-d" not in arguments:
        arguments = [*arguments, *CPU]
    ended = run_ut(*arguments, cwd=tmp_path)
    assert ended.code == 2
    assert text in ended.err
    assert "Traceback" not in ended.err
    assert not list(tmp_path.glob("accuracy_checking*"))


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ({"white_list": "exp"}, "white_list must be a list type"),
        ({"black_list": [1]}, "All elements in black_list must be string type"),
        ({"black_list": ["absent"]}, r"Invalid api in black_list: \['absent'\]"),
        ({"error_data_path": "/no/such"}, "error_data_path: /no/such does not exist"),
        ({"rank_list": 1}, "rank_list must be a list"),
        ({"rank_list": ["1"]}, "All elements in rank_list must be integers"),
        ({"is_online": True, "host": "nowhere", "port": 1}, "host: nowhere is invalid."),
        (
            {"is_online": True, "host": "127.0.0.1", "port": 70000},
            "port: 70000 is invalid, port range 0-65535.",
        ),
    ],
)
def test_wrong_settings(section: dict[str, Any], text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"task": "run_ut", "run_ut": section}))
    with pytest.raises(ValueError, match=text):
        read_settings(str(path), {"exp"})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-f", "pytorch", "run_ut", "-h"], ("pytorch", "run_ut", ["-h"])),
        (["--framework=pytorch", "acc_check"], ("pytorch", "run_ut", [])),
        (["-fmindspore", "multi_acc_check", "-d", "1"], ("mindspore", "multi_run_ut", ["-d", "1"])),
        (["-f", "mindspore", "run_overflow_check"], None),
        (["-f", "pytorch", "compare", "run_ut"], None),
        (["run_ut"], None),
        ([], None),
    ],
)
def test_commands_that_are_python(words: list[str], expected: Any) -> None:
    assert python_command(words) == expected


def details_without_time(directory: Path) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in tables(directory).details[1:]}


def test_inputs_do_not_depend_on_what_ran_before(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, SOME)
    backwards = write_dump(tmp_path / "reversed", dict(reversed(SOME.items())))
    (tmp_path / "config.json").write_text(json.dumps({"run_ut": {"white_list": ["exp"]}}))
    run_ut("-api_info", dump, "-o", "all", *CPU, cwd=tmp_path)
    run_ut("-api_info", backwards, "-o", "reversed-out", *CPU, cwd=tmp_path)
    run_ut("-api_info", dump, "-o", "some", "-config", "config.json", *CPU, cwd=tmp_path)
    run_ut("-api_info", dump, "-o", "split", "-n", "3", *CPU, cwd=tmp_path, name="multi_run_ut")
    whole = details_without_time(tmp_path / "all")
    assert details_without_time(tmp_path / "reversed-out") == whole
    assert details_without_time(tmp_path / "split") == whole
    for name, row in details_without_time(tmp_path / "some").items():
        if name.startswith("Torch.exp"):
            assert row == whole[name]


def test_a_run_is_continued(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, SOME)
    run_ut("-api_info", dump, "-o", "whole", *CPU, cwd=tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"run_ut": {}}))
    first = {key: SOME[key] for key in list(SOME)[:3]}
    run_ut("-api_info", write_dump(tmp_path / "first", first), "-o", "part", *CPU, cwd=tmp_path)
    (csv,) = (tmp_path / "part").glob("accuracy_checking_result*.csv")
    ended = run_ut("-api_info", dump, "-o", "part", "-csv_path", csv, *CPU, cwd=tmp_path)
    assert ended.code in (0, 1), ended
    assert tables(tmp_path / "part")[:2] == tables(tmp_path / "whole")[:2]
    assert [row[0] for row in rows_of(csv)[1:]] == NAMES


def test_random_functions_are_left_out_with_a_reason(tmp_path: Path) -> None:
    run_ut("-api_info", write_dump(tmp_path, SOME), "-o", "out", *CPU, cwd=tmp_path)
    row = details_without_time(tmp_path / "out")["Torch.rand_like.0.forward.output.0"]
    assert row[-2:] == [
        "SKIP",
        "rand_like gives random numbers, which are not the same on two devices. SKIP.",
    ]


BAD_MODULE = """
import os, signal, time
import torch
torch.exp = lambda x: os.kill(os.getpid(), signal.SIGSEGV)
torch.matmul = lambda x, y: time.sleep(3600)
"""


def test_bad_operators_cost_themselves(tmp_path: Path) -> None:
    (tmp_path / "bad_module.py").write_text(BAD_MODULE)
    ended = run_ut(
        *("-api_info", write_dump(tmp_path, SOME), "-o", "out", "-n", "2", "--timeout", "5"),
        *("--import", "bad_module", *CPU),
        cwd=tmp_path,
        name="multi_run_ut",
    )
    assert ended.code == 0, ended
    rows = {row[0]: row[1:] for row in tables(tmp_path / "out").result[1:]}
    assert set(rows) == set(NAMES)
    for name in ("Torch.exp.0", "Torch.exp.1"):
        assert rows[name][:2] == ["SKIP", "SKIP"] and "ended its process by SIGSEGV" in rows[name][2]
    assert "did not end within 5 s" in rows["Torch.matmul.0"][2]
    assert rows["Tensor.add.0"][0] == "pass" and rows["Functional.softmax.0"][0] == "pass"
    assert "Torch.exp.0" in ended.out


NO_EFFECTS = """
import random, torch
torch.manual_seed(5)
state, python, dropout = torch.get_rng_state(), random.getstate(), torch.nn.functional.dropout
import msprobe.pytorch.api_accuracy_checker.run_ut.run_ut as run
import msprobe.pytorch.api_accuracy_checker.run_ut.multi_run_ut
import msprobe.pytorch.api_accuracy_checker.run_ut.run_overflow_check
assert torch.equal(state, torch.get_rng_state()) and python == random.getstate()
assert torch.nn.functional.dropout is dropout
from msprobe.pytorch.precheck.repeatable import without_dropout
x = torch.ones(1000)
with without_dropout():
    assert torch.equal(torch.nn.functional.dropout(x, 0.5), x)
    assert torch.equal(torch.nn.functional.dropout(x, p=0.5, training=True), x)
assert torch.nn.functional.dropout is dropout
print("nothing")
"""


def test_importing_has_no_effects(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-c", NO_EFFECTS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("nothing\n", 0), ended.stderr
