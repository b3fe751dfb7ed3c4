"""What holds for all tests: instructions PyTorch may use, also in processes tests start; what is slow."""

import os

import pytest
from demo.usable_isa import usable_isa

_isa = usable_isa()
if _isa is not None:
    os.environ["ONEDNN_MAX_CPU_ISA"] = _isa


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever needs a corpus waits for dozens of trainings."""
    for item in items:
        if isinstance(item, pytest.Function) and "corpus" in item.fixturenames:
            item.add_marker("slow")
