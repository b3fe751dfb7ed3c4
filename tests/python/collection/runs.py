"""Training scripts in processes of their own, and what they leave behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.python.collection.golden import log_lines

ROOT = Path(__file__).parents[3]
TIMEOUT_SECS = 300


@dataclass
class Result:
    """A finished process and its folder."""

    folder: Path
    returncode: int
    stdout: str
    stderr: str

    @property
    def log(self) -> list[str]:
        return log_lines(self.stdout)

    def ok(self) -> Result:
        assert self.returncode == 0, f"exit {self.returncode}\n{self.stdout}\n{self.stderr}"
        return self

    def errors(self) -> list[str]:
        return [line for line in self.log if "[ERROR]" in line]

    def path(self, step: int = 0, rank: int | None = None, dump: str = "dump") -> Path:
        return self.folder / dump / f"step{step}" / ("rank" if rank is None else f"rank{rank}")

    def document(self, name: str, step: int = 0, rank: int | None = None, dump: str = "dump") -> Any:
        return json.loads((self.path(step, rank, dump) / name).read_text())

    def data(self, step: int = 0, rank: int | None = None, dump: str = "dump") -> dict[str, Any]:
        data: dict[str, Any] = self.document("dump.json", step, rank, dump)["data"]
        return data

    def steps(self, dump: str = "dump") -> list[str]:
        root = self.folder / dump
        return sorted(path.name for path in root.iterdir()) if root.exists() else []

    def printed(self) -> Any:
        """What the script handed back with its last line `RESULT {json}`."""
        lines = [line for line in self.stdout.splitlines() if line.startswith("RESULT ")]
        assert lines, f"exit {self.returncode}\n{self.stdout}\n{self.stderr}"
        return json.loads(lines[-1].removeprefix("RESULT "))


def environment(**extra: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **extra}


def free_port() -> int:
    """A port nobody listens on. Tests run side by side, so it is drawn from below those the system gives out,
    and not by a generator that tests seed."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def run(folder: Path, *command: str, **env: str) -> Result:
    """A python command in the folder."""
    return run_within(TIMEOUT_SECS, folder, *command, **env)


def run_within(timeout_secs: float, folder: Path, *command: str, **env: str) -> Result:
    """A python command in the folder; with all it started it ends when the time is over."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_secs)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += f"\nnot done after {timeout_secs} seconds"
    return Result(folder, process.returncode, stdout, stderr)


def run_worker(folder: Path, worker: str, *arguments: str, **env: str) -> Result:
    """One of the scripts beside this file."""
    folder.mkdir(parents=True, exist_ok=True)
    return run(folder, "-m", f"tests.python.collection.scripts.{worker}", *arguments, **env)


def config(
    level: str = "L1", task: str = "statistics", section: dict[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    return {"task": task, "dump_path": "./dump", "level": level, task: section or {}, **keys}


PRELUDE = """\
import json, sys
import torch, torch.nn as nn, torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger, seed_all

def result(value):
    print("RESULT " + json.dumps(value), flush=True)

"""


def run_script(folder: Path, source: str, settings: dict[str, Any] | None = None, **env: str) -> Result:
    """A script with `debugger` made from the settings (unless they are none) in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    head = PRELUDE
    if settings is not None:
        (folder / "config.json").write_text(json.dumps(settings))
        head += 'debugger = PrecisionDebugger(config_path="./config.json")\n'
    (folder / "train.py").write_text(head + textwrap.dedent(source))
    return run(folder, "train.py", **env)


def run_all(jobs: dict[str, Any], workers: int = 2) -> dict[str, Result]:
    """Callables by name, two at a time."""
    with ThreadPoolExecutor(workers) as pool:
        futures = {name: pool.submit(job) for name, job in jobs.items()}
        return {name: future.result() for name, future in futures.items()}
