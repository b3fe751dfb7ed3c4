"""Comparison of the gradient directions of two runs, at the import path scripts use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msprobe import _native
from msprobe.core.common.file_check import check_input_directory
from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import into


class GradComparator:
    """Says how similar the directions of gradients are, step by step, and at which step they part.

    Results: ``similarities.csv`` and ``similarities_picture`` (of each rank), ``similarities.html`` and
    ``verdict.json``; the verdict is printed too. What is missing on one side, or cannot be read, costs its
    own cell and is logged. Both methods take these keywords:

    ``first``, ``fall``: suspicious is what begins below 0.97, or falls by more than 0.03 from one step to the
    next.
    ``total_fall``, ``floor``: and what sinks by more than 0.1 since its first steps, or comes below 0.8,
    however slowly.
    ``noise``: further runs of the second side, paths of the same kind; nothing is suspicious that is within
    three times what they differ by.
    ``pictures``: which parameters get one: ``"all"``, ``"worst:20"``, ``"none"``.
    ``html``: whether the page with all curves is written.
    """

    @classmethod
    def compare_distributed(
        cls,
        path1: str | os.PathLike[str],
        path2: str | os.PathLike[str],
        output_dir: str | os.PathLike[str],
        *,
        first: float = 0.97,
        fall: float = 0.03,
        floor: float | None = None,
        total_fall: float | None = None,
        noise: Sequence[str | os.PathLike[str]] = (),
        pictures: str = "all",
        html: bool = True,
    ) -> None:
        """Compares every ``rank{n}`` two dump paths have in common, into ``output_dir/rank{n}``."""
        thresholds = {"first": first, "fall": fall, "floor": floor, "total_fall": total_fall}
        _compare(
            path1, path2, output_dir, True, **thresholds, noise=list(noise), pictures=pictures, html=html
        )

    @classmethod
    def compare(
        cls,
        path1: str | os.PathLike[str],
        path2: str | os.PathLike[str],
        output_dir: str | os.PathLike[str],
        *,
        first: float = 0.97,
        fall: float = 0.03,
        floor: float | None = None,
        total_fall: float | None = None,
        noise: Sequence[str | os.PathLike[str]] = (),
        pictures: str = "all",
        html: bool = True,
    ) -> None:
        """Compares two ``rank{n}`` directories."""
        thresholds = {"first": first, "fall": fall, "floor": floor, "total_fall": total_fall}
        _compare(
            path1, path2, output_dir, False, **thresholds, noise=list(noise), pictures=pictures, html=html
        )


def _compare(path1: Any, path2: Any, output_dir: Any, ranks: bool, **options: Any) -> None:
    for path in (path1, path2):
        check_input_directory(path)
    print(_native.compare_gradients(path1, path2, output_dir, ranks, log=into(logger), **options))
