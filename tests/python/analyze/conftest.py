"""The corpus, collected once, and the answers the command gives for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from .answers import Answer, ask
from .corpus import step_directory

ROOT = Path(__file__).parents[3]
TIMEOUT_SECS = 300

Asked = Callable[[str, str], Answer]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All cases at all their levels: ``{level}/{case}/step0``."""
    folder = tmp_path_factory.mktemp("corpus")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-m", "tests.python.analyze.worker", str(folder)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=TIMEOUT_SECS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
    assert process.returncode == 0, said
    yield folder


@pytest.fixture(scope="session")
def asked(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The answer for a case at a level; each is asked for once."""
    known: dict[tuple[str, str], Answer] = {}

    def answer(name: str, level: str) -> Answer:
        if (name, level) not in known:
            out = tmp_path_factory.mktemp(f"{name}_{level}")
            known[name, level] = ask(step_directory(corpus, level, name), out)
        return known[name, level]

    return answer
