"""The gradient probe: what an optimizer of MindSpore is given."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from .recorded import GOLDEN, files_below, run

CASE = GOLDEN.parent / "grad_probe" / "ms_pynative_l2"


def rows(path: Path) -> list[list[str]]:
    import csv

    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def test_recorded_case(tmp_path: Path) -> None:
    for name in ("run.py", "config.json"):
        shutil.copy(CASE / name, tmp_path)
    run(tmp_path)
    ours, golden = tmp_path / "output", CASE / "output"
    assert files_below(ours) == files_below(golden)
    for path in golden.rglob("*"):
        mine = ours / path.relative_to(golden)
        if path.suffix == ".npy":
            assert np.array_equal(np.load(mine), np.load(path))
        elif path.suffix == ".csv":
            assert mine.read_bytes()[:60] == path.read_bytes()[:60]
            for one, other in zip(rows(mine), rows(path)):
                assert len(one) == len(other) and one[0] == other[0] and one[-1] == other[-1]
                for number, expected in zip(one[1:-1], other[1:-1]):
                    if one[0] == "param_name":
                        assert number == expected
                    else:
                        assert abs(float(number) - float(expected)) <= 1e-5 * max(1.0, abs(float(expected)))


def test_both_headers_are_read(tmp_path: Path) -> None:
    """Tables of static graphs spell their header in another way."""
    from msprobe.core.grad_probe.grad_compare import GradComparator

    for side in ("a", "b"):
        shutil.copytree(CASE / "output", tmp_path / side)
        for path in (tmp_path / side).rglob("*.csv"):
            text = path.read_text(encoding="utf-8-sig")
            head, _, rest = text.partition("\n")
            head = head.replace("param_name", "Param_name").replace(
                "max,min,norm,shape", "Max,Min,Norm,Shape"
            )
            path.write_text(f"{head}\n{rest}")
    GradComparator.compare_distributed(str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out"))
    table = (tmp_path / "out/rank0/similarities.csv").read_text()
    assert "fc1.weight" in table and ",1.0" in table


def test_stop_and_other_tasks(tmp_path: Path) -> None:
    script = (CASE / "run.py").read_text() + "\nPrecisionDebugger.start()\nPrecisionDebugger.stop()\n"
    (tmp_path / "run.py").write_text(script + "PrecisionDebugger.step()\n")
    config = (CASE / "config.json").read_text().replace('"step": [0, 2]', '"step": [1]')
    (tmp_path / "config.json").write_text(config)
    run(tmp_path)
    assert [path.name for path in (tmp_path / "output/rank0").glob("*.csv")] == ["grad_summary_1.csv"]
