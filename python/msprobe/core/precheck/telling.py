"""What a pre-check of any framework says at its beginning and its end."""

from __future__ import annotations

from pathlib import Path

from msprobe import _native
from msprobe.core.common.log import logger


def tell_notes(plan: _native.PrecheckPlan) -> None:
    """What is odd about the dump."""
    for level, text in plan.notes:
        getattr(logger, level)(text)


def tell_end(text: str, files: list[Path]) -> None:
    """The answer for people, and where the rest is."""
    for line in text.splitlines():
        logger.info(line)
    for file in files:
        logger.info(f"written: {file}")
