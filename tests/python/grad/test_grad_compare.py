"""``GradComparator``: the recorded case, errors as scripts know them, thresholds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import msprobe
from msprobe import GradComparator
from msprobe.core.common.exceptions import FileCheckException

GOLDEN = Path(__file__).parents[2] / "golden/grad_probe/compare_two_runs"
SAME = "for comparison, please dump data in same configuration"


def table(path: Path) -> list[list[str]]:
    text = path.read_bytes().decode("utf-8-sig")
    return [line.split(",") for line in text.split("\r\n")[:-1]]


def write_step(rank: Path, step: int, directions: dict[str, np.ndarray]) -> None:
    """One step as the gradient probe leaves it."""
    folder = rank / f"step{step}"
    folder.mkdir(parents=True)
    rows = [f'{name},0.0,0.0,0.0,"{list(array.shape)}"' for name, array in directions.items()]
    text = "\r\n".join(["param_name,max,min,norm,shape", *rows, ""])
    (rank / f"grad_summary_{step}.csv").write_text(text, encoding="utf-8-sig", newline="")
    for name, array in directions.items():
        np.save(folder / f"{name}.npy", array)


def test_all_ranks_of_the_recorded_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    GradComparator.compare_distributed(str(GOLDEN / "run_a"), str(GOLDEN / "run_b"), str(tmp_path))
    recorded = GOLDEN / "result_distributed/rank0"
    ours = tmp_path / "rank0"
    assert (ours / "similarities.csv").read_bytes() == (recorded / "similarities.csv").read_bytes()
    pictures = sorted(path.name for path in (ours / "similarities_picture").iterdir())
    assert pictures == sorted((GOLDEN / "pictures.txt").read_text().split())
    assert (tmp_path / "similarities.html").is_file()
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert (verdict["status"], verdict["step"], verdict["rank"]) == ("diverged", 0, 0)
    assert verdict["parameters"] == ["norm.weight", "fc1.bias", "fc1.weight", "embed.weight"]
    assert verdict["thresholds"] == {"first": 0.97, "fall": 0.03, "floor": 0.8, "total_fall": 0.1}
    printed = capsys.readouterr().out
    assert "the following ranks will be compared: [0]" in printed
    assert "4 of 7 parameters begin below 0.97, first in backward order: norm.weight\n" in printed


def test_one_rank_of_the_recorded_case(tmp_path: Path) -> None:
    output = tmp_path / "new" / "output"
    GradComparator.compare(GOLDEN / "run_a/rank0", GOLDEN / "run_b/rank0", output)
    recorded = GOLDEN / "result_single/similarities.csv"
    assert (output / "similarities.csv").read_bytes() == recorded.read_bytes()
    assert (output / "similarities.csv").stat().st_mode & 0o777 == 0o640


def test_arrays_of_numpy_in_any_order(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    expected = {}
    first, second = {}, {}
    for index, shape in enumerate([(), (7,), (33, 65), (5, 0, 3), (4, 5, 6), (300, 301)]):
        a, b = (np.asarray(generator.random(shape) > 0.4) for _ in range(2))
        expected[f"p{index}"] = (int((a == b).sum()), a.size)
        first[f"p{index}"] = np.asfortranarray(a) if index % 2 else a
        second[f"p{index}"] = np.asfortranarray(b) if index % 3 else b
    write_step(tmp_path / "a", 4, first)
    write_step(tmp_path / "b", 4, second)
    GradComparator.compare(tmp_path / "a", tmp_path / "b", tmp_path / "out", pictures="none", html=False)
    same, total = (sum(column) for column in zip(*expected.values()))
    rows = [[name, repr(a / b) if b else "0"] for name, (a, b) in expected.items()]
    assert table(tmp_path / "out/similarities.csv") == [["step", "4"], *rows, ["summary", repr(same / total)]]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["similarities.csv", "verdict.json"]


def test_a_missing_file_costs_its_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ones: np.ndarray = np.ones(3, dtype=bool)
    for step in (0, 1):
        for side in "ab":
            write_step(tmp_path / side / "rank0", step, {"w": ones, "v": ones})
    (tmp_path / "b/rank0/step1/w.npy").unlink()
    GradComparator.compare_distributed(tmp_path / "a", tmp_path / "b", tmp_path / "out")
    rows = table(tmp_path / "out/rank0/similarities.csv")
    assert rows == [["step", "0", "1"], ["w", "1.0", ""], ["v", "1.0", "1.0"], ["summary", "1.0", "1.0"]]
    printed = capsys.readouterr().out
    assert "[ERROR]" in printed and "b/rank0/step1/w.npy" in printed
    assert "1 item could not be compared" in printed


def test_nothing_in_common(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for path in (first / "rank0", second / "rank1"):
        path.mkdir(parents=True)
    with pytest.raises(RuntimeError, match=f"^no matched ranks {SAME}$"):
        GradComparator.compare_distributed(first, second, tmp_path / "out")
    with pytest.raises(RuntimeError, match=f"^no matched steps {SAME}$"):
        GradComparator.compare(first / "rank0", second / "rank1", tmp_path / "out")
    for path in (first / "rank0/step0", second / "rank1/step0"):
        path.mkdir()
    with pytest.raises(RuntimeError, match=f"^no matched grad_summary.csv {SAME}$"):
        GradComparator.compare(first / "rank0", second / "rank1", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(GOLDEN)
    codes = {"nowhere": 3, "file": 0, "link": 2}
    for compare in (GradComparator.compare, GradComparator.compare_distributed):
        for name, code in codes.items():
            for paths in ((tmp_path / name, GOLDEN / "run_a"), (GOLDEN / "run_a", tmp_path / name)):
                with pytest.raises(FileCheckException) as raised:
                    compare(*paths, tmp_path / "out")
                assert raised.value.code == code


def test_thresholds_and_pictures_can_be_chosen(tmp_path: Path) -> None:
    run_a, run_b = GOLDEN / "run_a/rank0", GOLDEN / "run_b/rank0"
    GradComparator.compare(run_a, run_b, tmp_path, first=0.5, fall=0.2, pictures="worst:2")
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert (verdict["status"], verdict["step"], verdict["parameters"]) == ("diverged", 1, ["norm.weight"])
    pictures = sorted(path.name for path in (tmp_path / "similarities_picture").iterdir())
    assert pictures == [f"{name}_similarities.png" for name in ("embed.weight", "norm.weight", "summary")]
    with pytest.raises(ValueError, match="give all, worst:N or none"):
        GradComparator.compare(run_a, run_b, tmp_path, pictures="some")


def test_the_package_gives_it_when_it_is_asked_for() -> None:
    code = "import sys, msprobe; assert 'msprobe._native' not in sys.modules\n"
    code += "from msprobe import *; GradComparator.compare"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert msprobe.GradComparator is GradComparator
    with pytest.raises(AttributeError, match="no attribute 'Comparator'"):
        _ = msprobe.Comparator  # type: ignore[attr-defined]
