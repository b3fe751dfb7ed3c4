"""Tests that need MindSpore, which has an environment of its own (``make test-mindspore``)."""

from __future__ import annotations

import importlib.util

import pytest

HAS_MINDSPORE = importlib.util.find_spec("mindspore") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Elsewhere they say that they did not run."""
    for item in items:
        if not HAS_MINDSPORE and "mindspore" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason="MindSpore is not installed: make test-mindspore"))
