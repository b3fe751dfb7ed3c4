"""What the command prints and writes, whatever the order of directories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .answers import ask, command, run
from .conftest import Asked
from .corpus import step_directory


def without_places(report: dict[str, Any]) -> dict[str, Any]:
    """A report but for the names of its files, which hold the time, and of its input."""
    kept = {key: value for key, value in report.items() if key not in ("files", "step")}
    return kept | {"answer": {key: value for key, value in report["answer"].items() if key != "files"}}


@pytest.mark.parametrize(("name", "level"), [("by_groups", "mix"), ("by_ring", "mix"), ("by_pipeline", "L1")])
def test_the_order_of_directories_does_not_matter(
    name: str, level: str, asked: Asked, corpus: Path, tmp_path: Path
) -> None:
    step = step_directory(corpus, level, name)
    for number, order in enumerate([(3, 2, 1, 0), (2, 0, 3, 1)]):
        copy = tmp_path / str(number) / "step0"
        for rank in order:
            shutil.copytree(step / f"rank{rank}", copy / f"rank{rank}")
        again = ask(copy, tmp_path / f"out{number}").report
        assert without_places(again) == without_places(asked(name, level).report)


def test_files(asked: Asked) -> None:
    """The report is in the output directory as well."""
    answer = asked("forward_log", "L1")
    written = list(answer.out.glob("overflow_report_*.json"))
    assert len(written) == 1
    assert without_places(json.loads(written[0].read_text())) == without_places(answer.report)
    assert all(Path(path).is_file() for path in answer.report["files"])


def test_words(corpus: Path, tmp_path: Path) -> None:
    """The short text names the rank, the operation and the line of the script."""
    done = command(step_directory(corpus, "mix", "forward_log"), tmp_path)
    assert done.returncode == 1
    for word in ("rank 1", "Torch.log.0.forward", "# born", "Distributed.all_reduce.0.forward"):
        assert word in done.stdout


def test_words_for_a_healthy_run(corpus: Path, tmp_path: Path) -> None:
    done = command(step_directory(corpus, "mix", "healthy"), tmp_path)
    assert done.returncode == 0
    assert done.stdout


def test_both_names_of_the_command(asked: Asked, corpus: Path, tmp_path: Path) -> None:
    step = step_directory(corpus, "mix", "by_groups")
    done = run("nan_analyze", "-i", str(step), "-o", str(tmp_path), "--format", "json")
    assert done.returncode == 0, "as in the reference, whatever is found"
    assert without_places(json.loads(done.stdout)) == without_places(asked("by_groups", "mix").report)


@pytest.mark.parametrize(
    ("name", "rule", "operation"),
    [
        ("only_mask_added", "mask", "Torch.full.0.forward"),
        ("uninitialised", "uninitialized", "Torch.empty.0.forward"),
        ("garbage_buffers", "receive-buffer", "Distributed.all_gather.0.forward"),
    ],
)
def test_rules_can_be_switched_off(
    name: str, rule: str, operation: str, corpus: Path, tmp_path: Path
) -> None:
    """What a rule takes for harmless is blamed without it."""
    step = step_directory(corpus, "L1", name)
    assert rule in run("nan_analyze", "--list-rules").stdout
    for switched_off in (rule, "all"):
        answer = ask(step, tmp_path, "--no-rule", switched_off)
        assert answer.code == 1
        assert rule not in {entry["rule"] for entry in answer.report["harmless"]}
        assert operation in {birth["operation"] for birth in answer.report["births"]}


def test_the_chain_crosses_ranks(asked: Asked) -> None:
    """From the operation along the pipeline: each rank is reached from the one before it."""
    culprit = asked("by_pipeline", "L1").report["culprit"]
    chain = [(link["rank"], link["operation"]) for link in culprit["chain"]]
    assert chain[0] == (1, "Torch.log.0.forward")
    reached = list(dict.fromkeys(rank for rank, _ in chain))
    assert reached == [1, 2, 3]
    assert (2, "Distributed.recv.0.forward") in chain
    assert (3, "Distributed.recv.0.forward") in chain
