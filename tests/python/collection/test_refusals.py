"""Configurations and arguments that are refused, and with what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.collection.golden import GOLDEN
from tests.python.collection.helpers import REMARKS

CASES_FILE = GOLDEN / "config_validation" / "cases.json"
CASES: list[dict[str, Any]] = json.loads(CASES_FILE.read_text())


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    result = runs.run_worker(tmp_path_factory.mktemp("refusals"), "refusals", str(CASES_FILE)).ok()
    printed: dict[str, Any] = result.printed()
    return printed


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_configuration(case: dict[str, Any], refused: dict[str, Any]) -> None:
    """Accepted or refused as recorded, with the same class, code and lines."""
    told = refused[f"config {case['name']}"]
    assert told.get("exception") == case.get("exception")
    assert told.get("code") == case.get("code")
    lines = [line for line in told["log"] if line.startswith(("[ERROR]", "[WARNING]"))]
    assert lines == REMARKS.get(case["name"], []) + case["log"]


REFUSED = {
    "not a string": ("MsprobeException", 0),
    "absent": ("FileCheckException", 3),
    "symlink": ("FileCheckException", 2),
    "suffix": ("FileCheckException", 0),
    "broken": ("RuntimeError", None),
    "special characters": ("FileCheckException", 3),
    "start before": ("Exception", None),
    "model missing": ("MsprobeException", 0),
    "model wrong": ("MsprobeException", 0),
    "seed": ("MsprobeException", 0),
    "seed mode": ("MsprobeException", 0),
    "module_dump before": ("MsprobeException", 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str, refused: dict[str, Any]) -> None:
    told = refused[name]
    assert (told.get("exception"), told.get("code")) == REFUSED[name], told


def test_texts(refused: dict[str, Any]) -> None:
    assert refused["start before"]["text"] == "PrecisionDebugger instance is not created."
    assert "missing the parameter 'model'" in refused["model missing"]["text"]
    assert "The 'model' parameter must be a torch.nn.Module" in refused["model wrong"]["text"]
