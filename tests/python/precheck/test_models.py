"""No false alarm: operators of real models, collected with our own debugger, pass or are known limits.

The list of limits was written while looking at all of these models, so they prove nothing about others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.precheck.collect import DTYPES, MODELS
from tests.python.precheck.known_limits import Row, reason_of
from tests.python.precheck.running import ROOT, run_ut, tables

# In float16 the optimizer is left out, and ResNet has few operators of other kinds.
LEAST_OPERATORS = 30
_DTYPE, _STATUS, _MESSAGE = 2, 21, 22
# What may be left out without a result of its own.
_SKIPPED_FOR = (
    "in black list or not in white list",
    "Multiple backward is not supported",
    "Bench output is None",
    "gives random numbers",
    "does not support backward ut",
    "does not have backward input data",
)


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    return {}


def dump_of(
    name: str, dtype: str, dumps: dict[tuple[str, str], Path], factory: pytest.TempPathFactory
) -> Path:
    """A dump of one training step; collected once."""
    if (name, dtype) not in dumps:
        directory = factory.mktemp(f"{name}-{dtype}")
        path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        subprocess.run(
            [sys.executable, Path(__file__).with_name("collect.py"), name, dtype, "statistics", directory],
            env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
            check=True,
            timeout=600,
            stdout=subprocess.DEVNULL,
        )
        (dumps[name, dtype],) = directory.glob("step0/rank*/dump.json")
    return dumps[name, dtype]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODELS)
def test_no_false_alarm(
    name: str,
    dtype: str,
    dumps: dict[tuple[str, str], Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    dump = dump_of(name, dtype, dumps, tmp_path_factory)
    for rules in ((), ("--strict",)):
        out = tmp_path / ("strict" if rules else "default")
        ended = run_ut("-api_info", dump, "-o", out, "-d", "cpu", *rules, cwd=tmp_path, timeout=900)
        assert ended.code in (0, 1), ended
        found = tables(out)
        assert len(found.result) > LEAST_OPERATORS
        bad = [
            Row(row[0], row[_DTYPE], row[_MESSAGE], bool(rules))
            for row in found.details[1:]
            if row[_STATUS] == "error"
        ]
        alarms = [row for row in bad if reason_of(row) is None]
        assert alarms == []
        # A limit that holds for much of a model would be none.
        assert not rules or len(bad) <= 0.03 * len(found.details)
        skipped = [
            (row[0], row[_MESSAGE])
            for row in found.details[1:]
            if row[_STATUS] == "SKIP" and not any(text in row[_MESSAGE] for text in _SKIPPED_FOR)
        ]
        assert skipped == []
