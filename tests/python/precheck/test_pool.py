"""Operators shared out to processes: each once, and a lost one costs itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from msprobe.core.precheck.pool import Job, Lost, Pool

ROOT = Path(__file__).parents[3]
FAKES = "tests.python.precheck.fake_checkers"


def run(
    count: int, devices: list[Any], tmp_path: Path, timeout: float = 60.0, **options: Any
) -> tuple[list[int], list[Lost], list[list[str]]]:
    """Positions taken, in order, what was lost, and what ran where."""
    taken: list[int] = []
    lost: list[Lost] = []

    def take(position: int, outcome: str) -> None:
        assert outcome == f"outcome {position}"
        taken.append(position)

    trace = tmp_path / "trace"
    job = Job(f"{FAKES}:make", {"trace": str(trace), **options})
    Pool(job, devices, timeout).run(range(count), take, lost.append)
    return taken, lost, [line.split() for line in trace.read_text().splitlines()] if count else []


def test_each_operator_is_run_once(tmp_path: Path) -> None:
    taken, lost, ran = run(20, [0, 1, 0], tmp_path)
    assert sorted(taken) == list(range(20)) and lost == []
    assert sorted(int(position) for position, _, _ in ran) == list(range(20))


def test_nothing_to_do_starts_nothing(tmp_path: Path) -> None:
    assert run(0, [0, 1], tmp_path) == ([], [], [])


def test_who_is_free_takes_the_next_one(tmp_path: Path) -> None:
    # The first operator takes as long as ten others: whoever has it does not keep them waiting.
    taken, _, ran = run(9, ["a", "b"], tmp_path, secs=0.2)
    assert len(taken) == 9
    process_of_first = next(process for position, _, process in ran if position == "0")
    assert len([process for _, _, process in ran if process == process_of_first]) < 6


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("segfault", "ended its process by SIGSEGV"),
        ("killed", "ended its process by SIGKILL: the system may have run out of memory"),
        ("exit", "ended its process with exit code 3"),
    ],
)
def test_an_operator_that_ends_its_process_costs_itself(act: str, words: str, tmp_path: Path) -> None:
    taken, lost, _ = run(6, [0], tmp_path, bad={"2": act})
    assert sorted(taken) == [0, 1, 3, 4, 5]
    assert lost == [Lost(2, words)]


def test_an_operator_that_hangs_is_given_up(tmp_path: Path) -> None:
    taken, lost, _ = run(4, [0, 0], tmp_path, timeout=2.0, bad={"1": "hang"})
    assert sorted(taken) == [0, 2, 3]
    assert lost == [Lost(1, "did not end within 2 s and was given up")]


def test_many_bad_ones_are_all_told_of(tmp_path: Path) -> None:
    taken, lost, _ = run(6, [0, 0], tmp_path, bad={str(place): "exit" for place in (0, 1, 2, 5)})
    assert sorted(taken) == [3, 4]
    assert sorted(each.position for each in lost) == [0, 1, 2, 5]


def test_a_checker_that_cannot_be_made_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ValueError: no such device"):
        Pool(Job(f"{FAKES}:fail", {}), [0], 60.0).run([0], lambda *_: None, lambda _: None)


def test_processes_that_do_not_start_end_the_run() -> None:
    with pytest.raises(RuntimeError, match="3 in a row ended with exit code 7"):
        Pool(Job(f"{FAKES}:vanish", {}), [0], 60.0).run([0], lambda *_: None, lambda _: None)


INTERRUPTED = """
import signal
from msprobe.core.precheck.pool import Job, Pool
# Whoever runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
job = Job({factory!r}, {{"trace": {trace!r}, "bad": {{"2": "hang"}}}})
try:
    Pool(job, [0], 600.0).run(range(5), lambda position, _: print(position, flush=True), print)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_no_process_outlives_the_run(number: signal.Signals, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = INTERRUPTED.format(factory=f"{FAKES}:make", trace=str(trace))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    wait_for(lambda: trace.exists() and len(trace.read_text().splitlines()) == 3)
    child = int(trace.read_text().splitlines()[-1].split()[2])
    parent.send_signal(number)
    out, _ = parent.communicate(timeout=60)
    assert out == ("0\n1\ninterrupted\n" if number == signal.SIGINT else "0\n1\n")
    wait_for(lambda: not is_running(child))


def is_running(process: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def wait_for(condition: Any) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("waited for a minute")
