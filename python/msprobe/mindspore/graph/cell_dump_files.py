"""What MindSpore's operators left of the cells of a static graph, made into a dump like any other.

Runs when the interpreter exits, and on any machine: it only needs the files.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from msprobe import _native
from msprobe.core.common.file_check import FILE_MODE
from msprobe.core.common.log import logger
from msprobe.core.tensor import describe

_QUIET_SECONDS = 3.0
_LONGEST_WAIT_SECONDS = 300.0
_NUMBER = re.compile(r"_(\d+)\.npy$")
_DIRECTIONS = ("forward", "backward")
# As MindSpore writes dtypes of tensors.
_DTYPES = {
    "float16": "Float16",
    "float32": "Float32",
    "float64": "Float64",
    "bfloat16": "BFloat16",
    "bool": "Bool",
    "complex64": "Complex64",
    "complex128": "Complex128",
    **{
        f"{sign}int{bits}": f"{'UInt' if sign else 'Int'}{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
_FIGURES = {"Max Value": "Max", "Min Value": "Min", "Avg Value": "Mean", "L2Norm Value": "Norm"}
_TENSOR = "mindspore.Tensor"


class _Numbers:
    """The calls of each place, counted: a name that comes again belongs to the next call."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def numbered(self, name: str) -> str:
        call = self._calls[name]
        self._calls[name] += 1
        for direction in _DIRECTIONS:
            before, found, after = name.partition(f".{direction}.")
            if found:
                return f"{before}.{direction}.{call}.{after}"
        return name


def _cells_of(names: Iterable[str], parts: int) -> list[str]:
    """The records in the order of their last inputs: an input moves its record to the end."""
    cells: dict[str, None] = {}
    for name in names:
        cell = ".".join(name.split(".")[:-parts])
        if "input" in name:
            cells.pop(cell, None)
        cells.setdefault(cell, None)
    return list(cells)


def _construct(cells: list[str]) -> dict[str, str | None]:
    """Each record's parent: the first of the same direction whose path is the path without its end."""

    def taken_apart(cell: str) -> tuple[str, str]:
        # Cell.PATH.CLASS.DIRECTION.CALL
        parts = cell.split(".")
        return ".".join(parts[:-3]), parts[-2] if len(parts) > 1 else ""

    known = [(cell, *taken_apart(cell)) for cell in cells]

    def parent(cell: str, path: str, direction: str) -> str | None:
        ends = [path.rpartition(".")[0], re.sub(r"\.layers\.\d+$", "", path)]
        for other, other_path, other_direction in known:
            if other != cell and other_direction == direction and other_path in ends and other_path != path:
                return other
        return None

    return {cell: parent(cell, path, direction) for cell, path, direction in known}


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    path.chmod(FILE_MODE)


def _write_dump(directory: Path, head: dict[str, Any], cells: list[str], values: dict[str, Any]) -> None:
    data: dict[str, Any] = {cell: {"input_args": [], "input_kwargs": {}, "output": []} for cell in cells}
    for name, value in values.items():
        parts = name.removesuffix(".npy").split(".")
        cell, side = ".".join(parts[:-2]), parts[-2]
        data[cell]["input_args" if side == "input" else "output"].append(value)
    _write(directory / "construct.json", _construct(cells))
    _write(directory / "stack.json", {cell: [] for cell in cells})
    _write(directory / "dump.json", {**head, "data": data})


# ---- tensors


def finish_tensors(dump_path: Path, rank: str = "0", has_rank: bool = False) -> None:
    """Makes a dump of the files that ``TensorDump`` left in each step."""
    for step in sorted(dump_path.glob("step*")):
        directory = step / f"rank{rank}"
        tensors = directory / "dump_tensor_data"
        if tensors.is_dir():
            _wait_until_quiet(tensors)
            _finish_step(directory, tensors)
            if not has_rank:
                directory.rename(step / "rank")


def _wait_until_quiet(directory: Path) -> None:
    """MindSpore writes in the background, and nobody says when it is through."""
    end = time.monotonic() + _LONGEST_WAIT_SECONDS
    quiet_since, before = time.time(), -1.0
    while time.monotonic() < end:
        changed = directory.stat().st_mtime
        if changed != before:
            before, quiet_since = changed, max(changed, 0.0)
        if time.time() - quiet_since >= _QUIET_SECONDS:
            return
        time.sleep(0.1)
    logger.warning(f"{directory} still changes; the dump is made of what is there.")


def _finish_step(directory: Path, tensors: Path) -> None:
    found = []
    for path in tensors.glob("*.npy"):
        number = _NUMBER.search(path.name)
        if number is not None:
            found.append((int(number.group(1)), path))
    numbers = _Numbers()
    names: list[str] = []
    values: dict[str, Any] = {}
    for _, path in sorted(found):
        stem, _, dtype = _NUMBER.sub("", path.name).rpartition("_")
        name = f"{numbers.numbered(stem)}.npy"
        target = path.with_name(name)
        path.rename(target)
        names.append(name)
        value = _measured(target, dtype)
        if value is not None:
            values[name] = value
    head = {"task": "tensor", "level": "L0", "dump_data_dir": str(tensors)}
    _write_dump(directory, head, _cells_of(names, 3), dict(sorted(values.items())))


def _measured(path: Path, dtype: str) -> dict[str, Any] | None:
    try:
        array = np.load(path, allow_pickle=False)
        figures = _native.statistics(describe(array))
    except (OSError, ValueError) as error:
        logger.error(f"{path} cannot be read: {error}")
        return None
    told = {"type": _TENSOR, "dtype": _DTYPES.get(dtype, dtype), "shape": list(array.shape)}
    for key in ("Max", "Min", "Mean", "Norm"):
        told[key] = figures[key.lower()]
    told["data_name"] = path.name
    return told


# ---- statistics


def finish_statistics(dump_path: Path, rank: str = "0", has_rank: bool = False) -> None:
    """Makes a dump of the tables that MindSpore's kernel dump left."""
    source = dump_path / f"rank_{rank}"
    steps: dict[str, list[dict[str, str]]] = {}
    for path in _tables(source, 4):
        steps.setdefault(path.parent.name, []).extend(_rows(path))
    for step, rows in sorted(steps.items()):
        directory = dump_path / f"step{step}" / (f"rank{rank}" if has_rank else "rank")
        directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        _finish_rows(directory, rows)
    if steps:
        shutil.rmtree(source)


def _tables(directory: Path, depth: int) -> Iterator[Path]:
    if not directory.is_dir():
        return
    for path in sorted(directory.iterdir()):
        if path.name == "statistic.csv":
            yield path
        elif path.is_dir() and depth > 0:
            yield from _tables(path, depth - 1)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        for line in lines:
            # Rows have one comma more than the header.
            yield dict(zip(header, line))


def _finish_rows(directory: Path, rows: list[dict[str, str]]) -> None:
    numbers = _Numbers()
    names: list[str] = []
    values: dict[str, Any] = {}
    for row in sorted(rows, key=lambda row: int(row.get("Timestamp") or 0)):
        if row.get("Slot") == "0":
            continue
        operator = row["Op Name"].rpartition("dump_tensor_data_")[2].partition("|")[0]
        name = numbers.numbered(operator.replace("-", "."))
        names.append(name)
        values[name] = _told(row)
    # A column in which every number is whole has whole numbers.
    head = {"task": "statistics", "level": "L0", "framework": "mindspore", "dump_data_dir": None}
    _make_columns_alike(values)
    _write_dump(directory, head, _cells_of(names, 2), dict(sorted(values.items())))


def _told(row: dict[str, str]) -> dict[str, Any]:
    dtype = row.get("Data Type", "")
    told: dict[str, Any] = {
        "type": _TENSOR,
        "dtype": _DTYPES.get(dtype, dtype),
        "shape": [int(size) for size in re.findall(r"\d+", row.get("Shape", ""))],
    }
    for column, key in _FIGURES.items():
        told[key] = _number(row.get(column, ""))
    return told


def _number(text: str) -> bool | int | float | None:
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _make_columns_alike(values: dict[str, Any]) -> None:
    """Whole numbers are floats where anything else stands in their column."""
    for key in _FIGURES.values():
        column = [value[key] for value in values.values()]
        if all(type(number) is int for number in column):
            continue
        for value in values.values():
            if type(value[key]) is int:
                value[key] = float(value[key])
