"""Whatever a program does, its dump can be read and is identical to itself.

``MSPROBE_FUZZ_SEEDS=1000`` runs so many seeds instead of the few of every day, ``MSPROBE_FUZZ_FIRST`` begins
at another one. A failing seed is in the name of the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.compare.faults.score import binary

pytestmark = pytest.mark.slow

FIRST = int(os.environ.get("MSPROBE_FUZZ_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("MSPROBE_FUZZ_SEEDS", "16")))
PROGRAMS = 8
SEEDS_PER_WORKER = 8


class Collected:
    """The dumps of all seeds: those of a worker are made when the first is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results: dict[int, runs.Result] = {}

    def of(self, seed: int) -> Path:
        batch = (seed - FIRST) // SEEDS_PER_WORKER
        if batch not in self.results:
            folder = self.root / str(batch)
            seeds = SEEDS[batch * SEEDS_PER_WORKER : (batch + 1) * SEEDS_PER_WORKER]
            arguments = ",".join(map(str, seeds)), str(PROGRAMS)
            self.results[batch] = runs.run_worker(folder, "random_programs", *arguments)
        result = self.results[batch].ok()
        assert f"seed {seed} ended" not in result.stderr, result.stderr
        return result.folder / str(seed)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Collected:
    return Collected(tmp_path_factory.mktemp("random_programs"))


def check_files(rank: Path) -> dict[str, Any]:
    """Every document is JSON, every file that is named is there. The records."""
    for name in ("dump.json", "stack.json", "construct.json"):
        document = json.loads((rank / name).read_text(encoding="utf-8"))
        assert isinstance(document, dict)
    document = json.loads((rank / "dump.json").read_text(encoding="utf-8"))
    for name in re.findall(r'"data_name": "((?:[^"\\]|\\.)*)"', (rank / "dump.json").read_text()):
        assert (rank / "dump_tensor_data" / json.loads(f'"{name}"')).is_file(), name
    data: dict[str, Any] = document["data"]
    return data


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
def test_identical_to_itself(seed: int, collected: Collected, tmp_path: Path) -> None:
    folder = collected.of(seed)
    is_compared = json.loads((folder / "config.json").read_text())["task"] != "overflow_check"
    steps = sorted((folder / "dump").iterdir())
    assert len(steps) == PROGRAMS
    for step in steps:
        rank = step / "rank"
        errors = rank / "dump_error_info.log"
        assert not errors.exists(), errors.read_text()
        if not check_files(rank) or not is_compared:
            # Nothing was called that the level sees; overflow_check keeps too little to be compared.
            continue
        out = tmp_path / step.name
        command = [str(binary()), "compare", "-tp", str(rank), "-gp", str(rank), "-o", str(out)]
        compared = subprocess.run(command, capture_output=True, text=True, timeout=120)
        said = f"{' '.join(command)}\nexit {compared.returncode}\n{compared.stdout}\n{compared.stderr}"
        assert compared.returncode == 0, said
        (verdict,) = out.glob("verdict.json")
        assert json.loads(verdict.read_text())["status"] == "identical", said
