"""``config.json`` for MindSpore: its own keys, and rules that differ from PyTorch's. The rest is the core's.

No MindSpore is needed to read one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from msprobe import _native
from msprobe.core import collect_config
from msprobe.core.collection.arguments import invalid
from msprobe.core.common.file_check import make_directory, read_config_file
from msprobe.core.framework import Framework
from msprobe.mindspore.framework import MINDSPORE, MINDTORCH

_SUMMARY_MODES = ("statistics", "md5")
_SUMMARY_ITEMS = ("md5", "max", "min", "mean", "l2norm")
_DEVICES = ("device", "host")
_PRECISIONS = ("high", "low")


def words_of(has_adapter: bool) -> Framework:
    """The words of MindSpore, or of PyTorch's functions on it."""
    return MINDTORCH if has_adapter else MINDSPORE


class Settings(NamedTuple):
    """What to collect. ``native`` has what all frameworks have."""

    native: _native.Config
    level: str
    """As the user wrote it; ``native.level`` is never L2, which has rules of its own here."""
    summary_mode: str | list[str] | None
    """A list counts for static graphs only."""
    device: str
    precision: str

    @property
    def task(self) -> str:
        return self.native.task

    @property
    def file_format(self) -> str:
        return self.native.file_format or "npy"

    @property
    def check_mode(self) -> str:
        return self.native.check_mode or "all"

    @property
    def is_for_graphs(self) -> bool:
        """At level L2: kernels of a static graph, rather than those of one API."""
        names = self.native.list
        return (
            not names
            or any(name.startswith("name-regex") for name in names)
            or not any("." in name for name in names)
        )


def resolve(
    framework: Framework,
    config_path: str | None = None,
    task: str | None = None,
    dump_path: str | None = None,
    level: str | None = None,
    step: list[int | str] | None = None,
) -> Settings:
    """The configuration in a file, or the packaged one, with what the arguments say instead.

    ``dump_path`` is absolute then, and there. Raises the exception that scripts know for whatever is wrong.
    """
    if config_path is not None and not isinstance(config_path, str):
        raise invalid("config_path must be a string")
    text = (
        read_config_file(config_path)
        if config_path
        else collect_config.DEFAULT_CONFIG.read_text(encoding="utf-8")
    )
    file = _Own(text, task, level)
    if not dump_path and not file.has_dump_path:
        raise Exception("Dump path is empty.")
    native = collect_config.resolve_text(
        framework,
        file.remaining,
        config_path or str(collect_config.DEFAULT_CONFIG),
        task,
        dump_path,
        "L1" if level == "L2" else level,
        step,
    )
    # Links in it stay: a user finds the path that was written.
    directory = str(Path.cwd() / native.dump_path)
    make_directory(directory)
    return Settings(
        native.with_dump_path(directory), file.level, file.summary_mode, file.device, file.precision
    )


class _Own:
    """The keys that mean something here alone, checked and taken out of the text."""

    def __init__(self, text: str, task: str | None, level: str | None) -> None:
        self.remaining = text
        self.level = level if isinstance(level, str) else "L1"
        self.summary_mode: str | list[str] | None = None
        self.device, self.precision = "host", "high"
        self.has_dump_path = True
        try:
            file = json.loads(text.removeprefix("\ufeff"))
        except ValueError:
            # Said by whoever reads it next.
            return
        if isinstance(file, dict):
            self._read(file, task, level)
            self.remaining = json.dumps(file)

    def _read(self, file: dict[str, Any], task: str | None, level: str | None) -> None:
        self.has_dump_path = bool(file.get("dump_path"))
        task = task or file.get("task") or "statistics"
        if task == "run_ut":
            raise Exception("task is invalid.")
        if task == "structure" and (level or file.get("level")) not in ("L0", "mix"):
            self.level = "mix"
        elif level is None and isinstance(file.get("level"), str):
            self.level = file["level"] or "L1"
        if file.get("level") == "L2":
            file["level"] = "L1"
        section = file.get(task) if isinstance(task, str) else None
        if section is None:
            section = {}
        if not isinstance(section, dict):
            return
        is_whole_tensor = task == "tensor" and not section.get("list") and self.level != "debug"
        if is_whole_tensor and file.get("async_dump") is True:
            raise Exception(
                "The parameters async_dump is true in tensor task, the parameters list cannot be empty."
            )
        if task == "statistics":
            self._read_statistics(section)
        elif task == "tensor":
            self.summary_mode = section.get("summary_mode")
        elif task == "overflow_check":
            section.pop("data_mode", None)
            number = section.get("overflow_nums")
            if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
                raise Exception("overflow_nums is invalid, it should be an integer")
        elif task == "grad_probe":
            _check_bounds(section.get("bounds"))
        if section:
            file[task] = section

    def _read_statistics(self, section: dict[str, Any]) -> None:
        mode = section.get("summary_mode")
        if mode is not None:
            known = _SUMMARY_ITEMS if isinstance(mode, list) else _SUMMARY_MODES
            if any(item not in known for item in (mode if isinstance(mode, list) else [mode])):
                raise Exception("summary_mode is invalid")
            self.summary_mode = mode
            if isinstance(mode, list):
                del section["summary_mode"]
        self.device = _word(section, "device", _DEVICES, self.device)
        self.precision = _word(section, "precision", _PRECISIONS, self.precision)


def _word(section: dict[str, Any], key: str, known: tuple[str, str], default: str) -> str:
    value = section.pop(key, None)
    if value is None:
        return default
    if value not in known:
        raise Exception(f"Config param [{key}] is invalid, expected from {json.dumps(list(known))}")
    return str(value)


def _check_bounds(bounds: Any) -> None:
    if not isinstance(bounds, list):
        return
    if not all(isinstance(bound, (int, float)) and not isinstance(bound, bool) for bound in bounds):
        raise Exception("The input list should only contain numbers")
    if any(later < earlier for earlier, later in zip(bounds, bounds[1:])):
        raise Exception("The input list should be ascending")
