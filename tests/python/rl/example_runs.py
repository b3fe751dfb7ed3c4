"""Runs the scripts of ``examples/`` and the commands a user would type after them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..compare.faults.score import ROOT, binary

TIMEOUT_SECS = 300


@dataclass(frozen=True)
class Answer:
    """What a command said: its exit code, its standard output and the JSON file it wrote."""

    exit_code: int
    text: str
    file: dict[str, Any]


class Runs:
    """Trainings by name, each made when it is first needed."""

    def __init__(self, script: str, root: Path, commands: dict[str, list[str]]) -> None:
        self._script = ROOT / "examples" / script
        self._root = root
        self._commands = commands
        self.output: dict[str, str] = {}

    def make(self, *names: str) -> list[Path]:
        """The dump paths of these runs; those that are not there yet are made, two at a time."""
        with ThreadPoolExecutor(2) as pool:
            missing = [name for name in names if name not in self.output]
            self.output.update(zip(missing, pool.map(self._run, missing)))
        return [self._root / name for name in names]

    def _run(self, name: str) -> str:
        command = [sys.executable, str(self._script), "--dump-path", str(self._root / name)]
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "MSPROBE_LOG_LEVEL": "2",
        }
        result = subprocess.run(
            [*command, *self._commands[name]],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECS,
            check=False,
            cwd=self._root,
            env=environment,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def steps(self, name: str) -> list[str]:
        """What a training printed about its steps."""
        self.make(name)
        return [line for line in self.output[name].splitlines() if line.startswith("step ")]

    def compare_key_data(self, first: str, second: str) -> Answer:
        """``msprobe rl compare`` of two runs."""
        dirs = self.make(first, second)
        output = self._root / f"{first}_against_{second}"
        return _ask(["rl", "compare", *map(str, dirs), "-o", str(output)], output / "summary.json")

    def compare_layers(self, first: str, second: str, phase: str, *options: str) -> Answer:
        """``msprobe compare`` of what a phase of step 1 left."""
        one, two = (str(path / phase / "step1") for path in self.make(first, second))
        output = self._root / f"{first}_against_{second}_{phase}"
        return _ask(["compare", "-tp", one, "-gp", two, "-o", str(output), *options], output / "verdict.json")


def _ask(arguments: list[str], file: Path) -> Answer:
    result = subprocess.run(
        [str(binary()), *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECS, check=False
    )
    assert file.is_file(), f"exit {result.returncode}: {result.stderr}"
    return Answer(result.returncode, result.stdout, json.loads(file.read_text(encoding="utf-8")))
