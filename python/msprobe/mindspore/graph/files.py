"""JSON files that MindSpore's own dumper reads, written whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from msprobe.core.common.file_check import FILE_MODE


def write_json(path: Path, content: Any, indent: int) -> None:
    """Beside the final name and renamed, so that a file under that name is always whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(content, indent=indent), encoding="utf-8")
    part.chmod(FILE_MODE)
    part.replace(path)
