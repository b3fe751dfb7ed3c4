"""SingleSave among threads and processes, at the end of a process, and when the disk fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from msprobe.core import SingleSave

ROOT = Path(__file__).parents[3]


def run(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.python.rl.processes", script, str(folder), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=300, check=False
    )


def load(folder: Path, key: str, micro_step: int = 0) -> np.ndarray:
    at = folder / "dump/data" / key / "step0/rank0" / f"micro_step{micro_step}"
    # The figures come last: whoever sees them sees the array.
    assert json.loads((at / f"{key}.json").read_text())["data"]["shape"]
    loaded: np.ndarray = np.load(at / f"{key}.npy")
    return loaded


@pytest.mark.parametrize(("how", "code"), [("end", 0), ("exit", 3), ("exception", 1)])
def test_what_was_saved_is_there_when_the_process_ended(how: str, code: int, tmp_path: Path) -> None:
    result = run("ends", tmp_path, how)
    assert result.returncode == code, result.stderr
    for n in range(4):
        stored = load(tmp_path, "k", n)
        assert stored.shape == (1 << 20,) and bool((stored == n).all())
    assert not list(tmp_path.rglob(".part-*"))


def test_a_full_disk_is_told_once_and_training_goes_on(tmp_path: Path) -> None:
    result = run("full_disk", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "TRAINED 6" in result.stdout
    errors = [line for line in result.stdout.splitlines() if "[ERROR]" in line]
    assert len(errors) == 1, result.stdout
    for part in ("SingleSave saves nothing any more", "data/k/step1/rank0/micro_step0/k.npy", "hint: "):
        assert part in errors[0]
    assert load(tmp_path, "before").tolist() == [1.0] * 10
    assert not list(tmp_path.rglob(".part-*"))
    assert not list((tmp_path / "dump/data/k").rglob("*.json"))


def test_a_dump_that_vanished_is_told_once(tmp_path: Path) -> None:
    result = run("vanished", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "TRAINED 3" in result.stdout
    (error,) = [line for line in result.stdout.splitlines() if "[ERROR]" in line]
    assert "cannot write" in error and "dump/data/k/step0" in error
    assert (tmp_path / "dump").read_text() == "in the way"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_torch_multiprocessing(method: str, tmp_path: Path) -> None:
    result = run("children", tmp_path, method)
    assert result.returncode == 0, result.stdout + result.stderr
    for rank in range(2):
        for n in range(3):
            assert load(tmp_path, f"rank{rank}", n).tolist() == [float(n)] * 1000
    if method == "fork":
        assert load(tmp_path, "parent").shape == (1 << 20,)
        assert load(tmp_path, "parent", 1).tolist() == [1.0] * 3


def test_a_fork_while_another_thread_saves(tmp_path: Path) -> None:
    result = run("forked_under_lock", tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    for n in range(5):
        stored = tmp_path / f"dump/data/child{n}/step0/rank0/child{n}.npy"
        assert np.load(stored).tolist() == [1.0] * 5


def test_threads_get_micro_steps_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SingleSave, "_instance", None)
    instances: list[SingleSave] = []
    barrier = threading.Barrier(4)

    def save(number: int) -> None:
        barrier.wait()
        instances.append(SingleSave(str(tmp_path / "dump")))
        for n in range(25):
            SingleSave.save({"k": torch.full((n + 1,), float(number))})

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    SingleSave.step()
    assert all(instance is instances[0] for instance in instances)
    seen = sorted((float(stored[0]), stored.size) for stored in (load(tmp_path, "k", n) for n in range(100)))
    assert seen == sorted((float(number), n + 1) for number in range(4) for n in range(25))
