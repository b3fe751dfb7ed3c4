"""The manual's comparisons, run as they stand after the manual's own collection.

Dumps lie in step0/rank below dump_path, and the manual names dump_path or step0: it means the only dump
there is.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.python.collection import runs
from tests.python.manual import snippets

MODEL = """\
import torch, sys
model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.ReLU())
torch.nn.init.constant_(model[0].weight, float(sys.argv[1]))
"""


def collect(root: Path, name: str, weight: float = 0.5, rank: str | None = None) -> None:
    """A dump as the manual's configuration and script make it, moved to its place."""
    folder = root / f"{name}_run"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(snippets.WHOLE_NET))
    script = snippets.TWO_WINDOWS.replace("{before}", MODEL)
    script = script.replace("{first}", "y = model(torch.ones(2, 4))").replace("{second}", "y.sum()")
    (folder / "train.py").write_text(script)
    runs.run(folder, "train.py", str(weight)).ok()
    shutil.move(folder / "npu_dump", root / name)
    if rank is not None:
        (root / name / "step0/rank").rename(root / name / "step0" / rank)


def run(root: Path, script: str) -> runs.Result:
    (root / "compare.py").write_text(script)
    return runs.run(root, "compare.py")


def flat(root: Path, name: str) -> None:
    """The dump itself where the snippet looks for it."""
    for path in (root / name / "step0/rank").iterdir():
        shutil.move(path, root / name / path.name)
    shutil.rmtree(root / name / "step0")


def check_results(root: Path) -> None:
    output = root / "output"
    assert len(list(output.glob("compare_result_*.xlsx"))) == 1
    assert len(list(output.glob("advisor_*.txt"))) == 1


def test_two_dump_files(tmp_path: Path) -> None:
    collect(tmp_path, "npu_dump", 0.5)
    collect(tmp_path, "bench_dump", 0.75)
    flat(tmp_path, "npu_dump")
    flat(tmp_path, "bench_dump")
    run(tmp_path, snippets.COMPARE).ok()
    check_results(tmp_path)


def test_two_dump_files_that_lie_in_step_and_rank(tmp_path: Path) -> None:
    collect(tmp_path, "npu_dump", 0.5)
    collect(tmp_path, "bench_dump", 0.75)
    run(tmp_path, snippets.COMPARE).ok()
    check_results(tmp_path)


def test_the_ranks_of_a_step(tmp_path: Path) -> None:
    for name in ("npu_dump", "gpu_dump"):
        collect(tmp_path, name, rank="rank0")
    run(tmp_path, snippets.COMPARE_RANKS).ok()
    assert list((tmp_path / "output").glob("compare_result_rank0_*.xlsx"))


def test_the_only_rank_of_a_step(tmp_path: Path) -> None:
    for name in ("npu_dump", "gpu_dump"):
        collect(tmp_path, name)
    run(tmp_path, snippets.COMPARE_RANKS).ok()
    assert list((tmp_path / "output").glob("compare_result_rank_*.xlsx"))


def test_whole_dumps_with_one_step(tmp_path: Path) -> None:
    for name in ("npu_dump", "bench_dump"):
        collect(tmp_path, name)
    script = "from msprobe.pytorch import *\ncompare_distributed('./npu_dump', './bench_dump', './output')\n"
    run(tmp_path, script).ok()
    assert list((tmp_path / "output").glob("compare_result_*.xlsx"))


def test_the_advice_is_on_the_screen(tmp_path: Path) -> None:
    collect(tmp_path, "npu_dump", 0.5)
    collect(tmp_path, "bench_dump", 0.75)
    flat(tmp_path, "npu_dump")
    flat(tmp_path, "bench_dump")
    result = run(tmp_path, snippets.COMPARE).ok()
    (advisor,) = (tmp_path / "output").glob("advisor_*.txt")
    lines = advisor.read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["Line", "Suspect Nodes", "Expert Advice"]
    at = next(
        i for i, line in enumerate(result.log) if "The summary of the expert advice is as follows: " in line
    )
    for shown, line in zip(result.log[at + 1 :], lines):
        assert shown.endswith(line)
    assert any("The advisor summary is saved in: " in line for line in result.log[at:])
