"""``msprobe rl compare``: verdicts, files of every format, exit codes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import openpyxl  # type: ignore[import-untyped]
import pytest

from msprobe import _native

from ..compare.faults.score import binary
from .golden_cases import GOLDEN


def rl_compare(first: Path, second: Path, output: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), "rl", "compare", str(first), str(second), "-o", str(output), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def verdict(output: Path) -> dict[str, Any]:
    found = json.loads((output / "summary.json").read_text())["verdict"]
    assert isinstance(found, dict)
    return found


def save(root: Path, key: str, values: Any, place: str = "step0/rank0/micro_step0", name: str = "") -> None:
    directory = root / "data" / key / place
    directory.mkdir(parents=True, exist_ok=True)
    numpy.save(directory / f"{name or key}.npy", numpy.asarray(values, dtype=numpy.float32))


def test_the_recorded_workflow_is_answered(tmp_path: Path) -> None:
    case = GOLDEN / "end_to_end"
    done = rl_compare(case / "key_a", case / "key_b", tmp_path)
    assert done.returncode == 1
    headline = "ref_log_prob differs first at step 2 rank 0 micro_step 0 id 0: look at the reference model"
    assert headline in done.stdout
    assert "reference_dump: true, step_start: 2, step_end: 2" in done.stdout
    found = verdict(tmp_path)
    assert (found["status"], found["key"], found["step"], found["rank"]) == ("diverged", "ref_log_prob", 2, 0)
    assert (found["phase"], found["layer_switch"]) == ("reference_compute_log_prob", "reference_dump")


def test_an_earlier_step_comes_before_an_earlier_key(tmp_path: Path) -> None:
    case = GOLDEN / "grpo_two_ranks"
    rl_compare(case / "dump_a", case / "dump_b", tmp_path)
    found = json.loads((tmp_path / "summary.json").read_text())
    assert (found["verdict"]["key"], found["verdict"]["step"]) == ("ref_log_prob", 1)
    parted = [row for row in found["tokens"] if row["key"] == "responses"]
    assert {(row["step"], row["rank"], row["sample"]) for row in parted} == {(2, 1, 1)}
    # The token is where the recorded table has its first mismatch.
    with (case / "compare" / "responses.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["首个不匹配元素索引"]]
    assert sorted(row["token"] for row in parted) == sorted(int(row["首个不匹配元素索引"]) for row in rows)


def test_identical_runs(tmp_path: Path) -> None:
    case = GOLDEN / "identical"
    done = rl_compare(case / "dump_a", case / "dump_b", tmp_path)
    assert (done.returncode, verdict(tmp_path)["status"]) == (0, "identical")
    assert "Identical: 5 arrays in 4 keys" in done.stdout


def test_every_format_has_the_rows(tmp_path: Path) -> None:
    case = GOLDEN / "grpo_two_ranks"
    rl_compare(case / "dump_a", case / "dump_b", tmp_path, "--format", "xlsx,csv,json,html")
    names = {path.stem for path in (case / "compare").glob("*.csv")}
    for extension in ("xlsx", "csv", "json"):
        assert {path.stem for path in tmp_path.glob(f"*.{extension}")} == names | {"summary"}
    with (tmp_path / "loss.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(_native.KEY_DATA_HEADERS)
    records = json.loads((tmp_path / "loss.json").read_text())
    sheet = openpyxl.load_workbook(tmp_path / "loss.xlsx")["Sheet1"]
    assert len(records) == sheet.max_row - 1 == len(rows) - 1 == 12
    assert [row["step"] for row in records] == [int(row[0]) for row in rows[1:]]
    summary = openpyxl.load_workbook(tmp_path / "summary.xlsx")
    assert summary.sheetnames == ["Keys", "Verdict", "Tokens", "Left out"]
    assert [row[0].value for row in summary["Keys"].iter_rows(min_row=2)][:2] == ["prompts", "responses"]
    page = (tmp_path / "summary.html").read_text(encoding="utf-8")
    assert "look at the reference model" in page and "相同元素百分比(%)" in page


def test_inputs_may_be_read_only(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("a", "b")]
    for run in runs:
        shutil.copytree(GOLDEN / "identical" / "dump_a", run)
        for path in sorted(run.rglob("*"), reverse=True):
            path.chmod(0o444 if path.is_file() else 0o555)
    before = sorted(os.fspath(path) for run in runs for path in run.rglob("*"))
    assert rl_compare(runs[0], runs[1], tmp_path / "out").returncode == 0
    assert sorted(os.fspath(path) for run in runs for path in run.rglob("*")) == before
    for run in runs:
        for path in [run, *run.rglob("*")]:
            path.chmod(0o755)


def test_samples_that_end_early_and_batches(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    save(first, "responses", [1, 2, 3], name="responses.0")
    save(second, "responses", [1, 2, 3, 9], name="responses.0")
    save(first, "prompt_ids", [[1, 2], [3, 4]])
    save(second, "prompt_ids", [[1, 2], [5, 4]])
    done = rl_compare(first, second, tmp_path / "out")
    assert "responses has another shape first at step 0 rank 0 micro_step 0 id 0" in done.stdout
    assert "Sample 0 ends at token 3 in the first run and goes on with 9 in the second" in done.stdout
    tokens = json.loads((tmp_path / "out" / "summary.json").read_text())["tokens"]
    batch = next(row for row in tokens if row["key"] == "prompt_ids")
    assert (batch["sample"], batch["token"], batch["token_1"], batch["token_2"]) == (1, 0, "3", "5")


def test_what_cannot_be_compared_costs_its_row_and_the_exit_code(tmp_path: Path) -> None:
    case = GOLDEN / "native_dtypes"
    done = rl_compare(case / "dump_a", case / "dump_b", tmp_path)
    assert done.returncode == 1
    assert "Error comparing" in done.stderr and "could not be compared\n    " in done.stdout
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {row["key"] for row in summary["left_out"]} >= {"bad", "obj"}
    assert summary["verdict"]["not_compared"]["failed"] > 0
    # Tables have no figures for these, but they can be compared.
    assert {row["key"] for row in summary["keys"] if row["failed_pairs"]} & {"bool", "empty"} == set()


def test_one_sided_runs(tmp_path: Path) -> None:
    case = GOLDEN / "missing_sides"
    done = rl_compare(case / "dump_a", case / "dump_b", tmp_path)
    assert done.returncode == 1
    assert "Arrays without a partner: 4 of the first run, 2 of the second\n    " in done.stdout
    longer, shorter = tmp_path / "longer", tmp_path / "shorter"
    for step in range(3):
        save(longer, "loss", 1.0, f"step{step}/rank0/micro_step0")
    for step in range(2):
        save(shorter, "loss", 1.0, f"step{step}/rank0/micro_step0")
    done = rl_compare(longer, shorter, tmp_path / "out")
    assert (done.returncode, verdict(tmp_path / "out")["status"]) == (1, "incomplete")
    assert f"{shorter} ends with step 1, {longer} with step 2" in done.stdout


def test_unknown_keys_are_in_the_order_of_their_first_save(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for at, key in enumerate(["zeta", "alpha"]):
        save(first, key, [1.0])
        save(second, key, [2.0])
        written = first / "data" / key / "step0" / "rank0" / "micro_step0" / f"{key}.npy"
        os.utime(written, ns=(at + 1, at + 1))
    rl_compare(first, second, tmp_path / "out")
    assert verdict(tmp_path / "out")["key"] == "zeta"


def test_a_key_called_summary_keeps_its_table(tmp_path: Path) -> None:
    for run in ("a", "b"):
        save(tmp_path / run, "summary", [1.0])
    done = rl_compare(tmp_path / "a", tmp_path / "b", tmp_path / "out")
    assert done.returncode == 0 and "the summary of all keys is _summary" in done.stderr
    assert openpyxl.load_workbook(tmp_path / "out" / "summary.xlsx")["Sheet1"].max_row == 2
    assert json.loads((tmp_path / "out" / "_summary.json").read_text())["verdict"]["status"] == "identical"


@pytest.mark.parametrize(
    ("given", "hint"),
    [("empty", "key_data_dump: true"), ("run/data", "the directory above data"), ("missing", "dump_path")],
)
def test_paths_without_key_data(tmp_path: Path, given: str, hint: str) -> None:
    save(tmp_path / "run", "loss", 1.0)
    (tmp_path / "empty").mkdir()
    done = rl_compare(tmp_path / given, tmp_path / "run", tmp_path / "out")
    assert done.returncode == 2 and hint in done.stderr
    assert not (tmp_path / "out").exists()


def test_help_teaches() -> None:
    done = subprocess.run(
        [str(binary()), "rl", "compare", "--help"], capture_output=True, text=True, check=True
    )
    for word in ("Exit codes", "Examples", "summary.json", "prompts, responses, values"):
        assert word in done.stdout


def test_the_layout_of_the_manual(tmp_path: Path) -> None:
    """``response0.npy`` and ``response1.npy`` are elements 0 and 1, and both are compared."""
    for run, last in (("a", 3.0), ("b", 4.0)):
        save(tmp_path / run, "response", [1.0, 2.0], name="response0")
        save(tmp_path / run, "response", [1.0, last], name="response1")
    done = rl_compare(tmp_path / "a", tmp_path / "b", tmp_path / "out")
    found = verdict(tmp_path / "out")
    assert (done.returncode, found["status"], found["id"], found["compared"]) == (1, "diverged", 1, 2)
    assert openpyxl.load_workbook(tmp_path / "out" / "response.xlsx")["Sheet1"].max_row == 3


@pytest.mark.parametrize(
    "case", ["identical", "grpo_two_ranks", "native_dtypes", "containers_and_errors", "dtypes"]
)
def test_recorded_runs_against_themselves(case: str, tmp_path: Path) -> None:
    """Identical where everything can be read, and never where something cannot."""
    run = GOLDEN / case / "dump_a"
    done = rl_compare(run, run, tmp_path)
    found = verdict(tmp_path)
    left_out = sum(found["not_compared"].values())
    assert (done.returncode, found["status"]) == ((1, "incomplete") if left_out else (0, "identical"))
    assert (left_out == 0) == (case not in ("native_dtypes", "containers_and_errors")), done.stdout


def test_any_file_of_a_recorded_run_that_changes_is_seen(tmp_path: Path) -> None:
    recorded = GOLDEN / "grpo_two_ranks" / "dump_a"
    other = tmp_path / "other"
    shutil.copytree(recorded, other)
    arrays = sorted(other.rglob("*.npy"))
    for number, path in enumerate(arrays[:: max(1, len(arrays) // 24)]):
        kept = path.read_bytes()
        if number % 3 == 0:
            values = numpy.load(path)
            numpy.save(path, values + 1)
        elif number % 3 == 1:
            path.unlink()
        else:
            path.write_bytes(kept[:-1])
        for sides in ((recorded, other), (other, recorded)):
            done = rl_compare(*sides, tmp_path / "out", "--format", "json")
            status = verdict(tmp_path / "out")["status"]
            assert done.returncode == 1 and status in ("incomplete", "diverged"), (path, done.stdout)
        path.write_bytes(kept)
