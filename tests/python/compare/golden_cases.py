"""Recorded comparisons: what was called, run again in a copy of its folder, and the files that come out.

Environment, to try a program that is not the installed package:

- `MSPROBE_BINARY`: command lines run this program instead of `python -m msprobe`;
- `MSPROBE_FUNC_VIA_CLI=1`: calls of Python functions become the command line that does the same.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[2] / "golden" / "compare"
TIMEOUT_SECS = 300

# The stamp of a table has 14 digits; that of the first-difference analysis counts nanoseconds.
STAMP = re.compile(r"_\d{14,20}(?=\.)")
# A progress bar may stand before the message on its line.
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) (\[(?:WARNING|ERROR)\] .*)$")


@dataclass(frozen=True)
class Case:
    """One recorded call. `exception` is the last line of the traceback, if the reference ended with one."""

    name: str
    call: dict[str, Any]
    exit_code: int
    exception: str
    log: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return GOLDEN / self.name

    def expected(self) -> dict[str, Path]:
        """The recorded files. Renderings of a workbook as csv are left out: the workbook itself is there."""
        root = self.folder / "expected"
        files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
        books = {name.removesuffix(".xlsx") for name in files if name.endswith(".xlsx")}
        return {
            name: path
            for name, path in sorted(files.items())
            if name != "run.json" and not (".csv" in name and name.split(".")[0] in books)
        }


@dataclass(frozen=True)
class Outcome:
    """What a call left behind. Of a function that raised, the exit code is that of an uncaught exception."""

    folder: Path
    exit_code: int
    exception: BaseException | None
    text: str

    @property
    def log(self) -> list[str]:
        """Warnings and errors, without time, process and, as in the records, the folder of the run."""
        lines = self.text.replace(f"{self.folder}/", "").splitlines()
        return [match[1] for match in map(LOG_LINE.search, lines) if match]

    def outputs(self) -> dict[str, Path]:
        """Files of the output directory by their names without time stamps."""
        root = self.folder / "output"
        found: dict[str, Path] = {}
        for path in sorted(root.rglob("*")):
            if path.is_file():
                name = STAMP.sub("", path.relative_to(root).as_posix())
                assert name not in found, f"{name} was written twice: {found[name].name} and {path.name}"
                found[name] = path
        return found


def tables_and_advice() -> list[Case]:
    """The cases in folders of their own."""
    cases = []
    for path in sorted(GOLDEN.glob("*/call.json")):
        run = json.loads((path.parent / "expected" / "run.json").read_text())
        call = json.loads(path.read_text())
        last_line = run.get("exception_last_line", "")
        cases.append(Case(path.parent.name, call, run["exit_code"], last_line, tuple(run["warn_error_log"])))
    return cases


def errors() -> list[Case]:
    """The cases below `errors`, which share one list."""
    return [
        Case(
            f"errors/{entry['scenario']}",
            entry["call"],
            entry["exit_code"],
            entry["exception"],
            tuple(entry["log"]),
        )
        for entry in json.loads((GOLDEN / "errors" / "expected.json").read_text())
    ]


# Running


def prepare(case: Case, folder: Path) -> None:
    """The inputs of a case, unpacked."""
    shutil.copytree(case.folder, folder, ignore=shutil.ignore_patterns("expected", "README.md", "call.json"))
    for path in sorted(folder.rglob("*.gz")):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()


def command() -> list[str]:
    """How a command line starts."""
    program = shlex.split(os.environ.get("MSPROBE_BINARY", ""))
    if not program:
        return [sys.executable, "-m", "msprobe"]
    # A path relative to here has to be found from the folder of the case too.
    found = Path(program[0])
    return [str(found.resolve()) if found.exists() else program[0], *program[1:]]


def as_command_line(call: dict[str, Any], folder: Path) -> list[str] | None:
    """The command line of a function call, or none if a command line can not say the same.

    It writes the compare.json it needs into the folder.
    """
    inputs, output = call["args"]
    options = call["kwargs"]
    flags = {"stack_mode": "-s", "fuzzy_match": "-f"}
    ordinary = all(isinstance(path, str) for path in (inputs["npu_json_path"], inputs["bench_json_path"]))
    if not ordinary or not all(isinstance(value, bool) for value in options.values()):
        return None
    names = {"npu_json_path": "npu_path", "bench_json_path": "bench_path", "stack_json_path": "stack_path"}
    (folder / "compare.json").write_text(
        json.dumps({names.get(key, key): value for key, value in inputs.items()})
    )
    line = ["-f", "pytorch", "compare", "-i", "compare.json", "-o", output]
    line += [flag for option, flag in flags.items() if options.get(option)]
    return line if options.get("auto_analyze", True) else [*line, "-c"]


@contextlib.contextmanager
def _output_into(path: Path) -> Iterator[None]:
    """Everything this process prints goes to the file: Python's streams and what Rust writes by itself."""
    with path.open("w+", encoding="utf-8", buffering=1) as file:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        try:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
            with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield
        finally:
            for descriptor, copy in zip((1, 2), kept):
                os.dup2(copy, descriptor)
                os.close(copy)


@contextlib.contextmanager
def _working_directory(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_command(arguments: list[str], folder: Path) -> Outcome:
    """A command line in the folder, with both streams in one text."""
    done = subprocess.run(
        [*command(), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    return Outcome(folder, done.returncode, None, done.stdout)


def run_function(call: dict[str, Any], folder: Path) -> Outcome:
    """A public function, called in this process as a script in the folder would."""
    module, name = call["func"].rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)
    raised: BaseException | None = None
    with tempfile.TemporaryDirectory() as aside:
        log = Path(aside) / "log"
        with _output_into(log), _working_directory(folder):
            try:
                function(*call["args"], **call["kwargs"])
            except Exception as exception:
                raised = exception
        return Outcome(folder, 0 if raised is None else 1, raised, log.read_text(encoding="utf-8"))


def run(case: Case, folder: Path) -> Outcome:
    """The recorded call in a fresh copy of its folder."""
    prepare(case, folder)
    if case.call["via"] == "cli":
        return run_command(case.call["argv"], folder)
    if os.environ.get("MSPROBE_FUNC_VIA_CLI") == "1":
        line = as_command_line(case.call, folder)
        if line is not None:
            return run_command(line, folder)
    # The call may add keys to what it is given.
    return run_function(json.loads(json.dumps(case.call)), folder)


def missing_lines(recorded: list[str], found: list[str]) -> list[str]:
    """The recorded log lines that are not in ours, in the recorded order; ours may say more in between."""
    position = 0
    missing = []
    for line in recorded:
        try:
            position = found.index(line, position) + 1
        except ValueError:
            missing.append(line)
    return missing
