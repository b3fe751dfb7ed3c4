"""A debugger of its own for every test, over a service that only notes what it is asked to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from msprobe import _native
from msprobe.core.collect_config import DebuggerConfig
from msprobe.pytorch import PrecisionDebugger, dataloader


class NotingService:
    """Every call, in order, as its name and arguments."""

    made: list[NotingService]

    def __init__(self, config: _native.Config) -> None:
        assert type(config) is _native.Config
        self.config = DebuggerConfig(config)
        self.first_start = True
        self.calls: list[tuple[Any, ...]] = []
        self.made.append(self)

    def __getattr__(self, name: str) -> Any:
        def note(*arguments: Any) -> None:
            self.calls.append((name, *arguments))

        return note


@pytest.fixture(autouse=True)
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
