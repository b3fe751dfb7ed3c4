"""The corpus, collected once, and the answers the command gives for it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Callable

import pytest

from ..collection import runs
from .answers import Answer, ask
from .corpus import step_directory

TIMEOUT_SECS = 1200

Asked = Callable[[str, str], Answer]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases at all their levels: ``{level}/{case}/step0``. Who needs it first makes it for all."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, complete = base / "corpus", base / "corpus_is_complete"
    with (base / "corpus.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            folder.mkdir(exist_ok=True)
            runs.run_within(TIMEOUT_SECS, folder, "-m", "tests.python.analyze.worker", str(folder)).ok()
            complete.touch()
    return folder


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
