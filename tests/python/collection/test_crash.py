"""What is left when a process is killed, the disk is full, the path is unwritable, or a dump is there."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.python.collection import runs

PROCESSES, KILLS_EACH, SPAN_SECS = 2, 10, 7.0
# Records reach the disk every half second; on a busy machine later.
SAFE_AFTER_SECS = 3.5


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("killed")
    jobs = {
        str(seed): functools.partial(
            runs.run_worker, root / str(seed), "killed", str(seed), str(KILLS_EACH), str(SPAN_SECS)
        )
        for seed in range(PROCESSES)
    }
    return [
        result.ok().folder / f"run{index}"
        for result in runs.run_all(jobs).values()
        for index in range(KILLS_EACH)
    ]


def test_killed_leaves_readable_files(killed: list[Path]) -> None:
    seen = 0
    for folder in killed:
        for path in folder.glob("dump/**/*.json"):
            document = json.loads(path.read_text())
            assert isinstance(document, dict), path
            seen += 1
    assert seen > len(killed)


def test_killed_leaves_what_was_recorded(killed: list[Path]) -> None:
    checked = 0
    for folder in killed:
        end = float((folder / "killed.txt").read_text())
        marks = folder / "marks.txt"
        lines = marks.read_text().splitlines()[:-1] if marks.exists() else []
        expected: dict[int, set[str]] = {}
        for line in lines:
            step, call, moment = line.split()
            if float(moment) < end - SAFE_AFTER_SECS:
                expected.setdefault(int(step), set()).add(f"Torch.neg.{call}.forward")
        for number, names in expected.items():
            rank = folder / f"dump/step{number}/rank"
            data = json.loads((rank / "dump.json").read_text())["data"]
            missing = names - set(data)
            assert not missing, f"{rank}: {len(missing)} of {len(names)} records, killed {end}"
            stacked = {
                name for group, _ in json.loads((rank / "stack.json").read_text()).values() for name in group
            }
            assert names <= stacked
            assert names <= set(json.loads((rank / "construct.json").read_text()))
            checked += len(names)
    assert checked > 500


def test_full_disk(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path,
        """\
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        x = torch.ones(4, 8, requires_grad=True)
        debugger.start()
        for _ in range(500):
            torch.neg(x).sum().backward()
        debugger.stop()
        debugger.step()
        result(x.grad.sum().item())
        """,
        runs.config("L1"),
    ).ok()
    assert result.printed() == -500.0 * 32
    told_once(result, "dump.json")
    for path in (tmp_path / "dump").rglob("*.json"):
        json.loads(path.read_text())


def told_once(result: runs.Result, *paths: str) -> None:
    """One line when it happens and one when the window closes, not one per record; naming one of `paths`."""
    errors = result.errors()
    assert 1 <= len(errors) <= 2, errors
    assert any(path in error for error in errors for path in paths), errors


def test_full_disk_while_saving_tensors(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path,
        """\
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        debugger.start()
        for size in (8, 100_000, 200_000, 16):
            torch.neg(torch.ones(size))
        debugger.stop()
        debugger.step()
        result("trained")
        """,
        runs.config("L1", "tensor"),
    ).ok()
    assert result.printed() == "trained"
    # Several threads write: which of the files that do not fit fails first is not fixed.
    too_large = [f"Torch.neg.{call}.forward.{side}.0.pt" for call in (1, 2) for side in ("input", "output")]
    told_once(result, *(f"dump_tensor_data/{name}" for name in too_large))
    saved = result.path() / "dump_tensor_data"
    # Nothing that looks like a tensor file is half a one; what came before the first failure is there.
    sizes = {path.name: torch.load(path).numel() for path in saved.glob("*.pt")}
    assert sizes["Torch.neg.0.forward.input.0.pt"] == 8
    assert sizes["Torch.neg.0.forward.output.0.pt"] == 8
    assert "Torch.neg.0.forward" in result.data()


def test_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file, not a folder")
    result = runs.run_script(
        tmp_path,
        """\
        debugger.start()
        total = sum(torch.neg(torch.ones(3)).sum().item() for _ in range(50))
        debugger.stop()
        debugger.step()
        result(total)
        """,
        runs.config("L1", dump_path="./file/dump"),
    ).ok()
    assert result.printed() == -150.0
    told_once(result, f"{tmp_path}/file")
    assert (tmp_path / "file").read_text() == "a file, not a folder"


AGAIN = """\
import os
value = float(os.environ["VALUE"])
x = torch.full((3,), value)
for step in range(2):
    debugger.start()
    torch.neg(x)
    if value == 1.0:
        torch.exp(x)
    debugger.stop()
    debugger.step()
"""


def test_again_into_the_same_path(tmp_path: Path) -> None:
    first, second = (
        runs.run_script(tmp_path, AGAIN, runs.config("L1", "tensor"), VALUE=value).ok()
        for value in ("1.0", "2.0")
    )
    assert not [line for line in first.log if "[WARNING]" in line]
    warnings = [line for line in second.log if "[WARNING]" in line]
    # At most one for each folder found full.
    assert 1 <= len(warnings) <= 2
    assert all("dump" in line and "earlier run" in line for line in warnings)
    for step in range(2):
        data: dict[str, Any] = second.data(step)
        assert list(data) == ["Torch.neg.0.forward"]
        assert data["Torch.neg.0.forward"]["input_args"][0]["Max"] == 2.0
        saved = second.path(step) / "dump_tensor_data"
        assert torch.load(saved / "Torch.neg.0.forward.input.0.pt").tolist() == [2.0] * 3
        assert set(second.document("stack.json", step)) == {"0"}
