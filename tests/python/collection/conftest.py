"""A debugger of its own for a test, over a service that only notes what it is asked to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from msprobe.pytorch import PrecisionDebugger, dataloader

from .helpers import NotingService


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[NotingService]]:
    """The services made so far; no debugger is there at first."""
    NotingService.made = []
    module = ModuleType("msprobe.pytorch.service")
    module.__dict__["Service"] = NotingService
    monkeypatch.setitem(sys.modules, "msprobe.pytorch.service", module)
    monkeypatch.setattr(PrecisionDebugger, "_instance", None)
    yield NotingService.made
    dataloader.uninstall()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
