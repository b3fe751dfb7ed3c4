"""``SingleSave``: named key data of a run, saved while training goes on.

A value becomes ``{dump_path}/data/{key}/step{S}/rank{R}/micro_step{M}``: a ``.npy`` file per tensor and a
JSON file of their statistics. The caller pays for one copy of the elements; a thread of the Rust core
converts, measures and writes them, in the order of the calls.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from msprobe import _native
from msprobe.core.common.exceptions import FileCheckException
from msprobe.core.common.file_check import FILE_MODE
from msprobe.core.common.framework_adapter import MINDSPORE, PYTORCH, FmkAdp
from msprobe.core.common.log import logger

_CONTAINERS = (list, tuple, dict)
_CONFIGURATIONS = "configurations.json"
_NO_DICT = "SingleSave data type not valid, should be dict. Skip current save process."


class SingleSave:
    """The one saver of this process. Every method works on the class and on the instance."""

    _instance: ClassVar[Any] = None
    _lock: ClassVar[threading.RLock] = threading.RLock()

    dump_path: str
    rank: int
    step_count: int
    tag_count: defaultdict[str, int]
    _writer: _Writer

    def __new__(cls, dump_path: Any, fmk: str = PYTORCH, native_dtype: bool = False) -> SingleSave:
        """The saver; made by the first call, later ones get the same.

        ``native_dtype`` keeps every dtype exact instead of storing float32, and names it in the JSON files.
        """
        with cls._lock:
            if cls._instance is None:
                cls._instance = cls._make(dump_path, fmk, native_dtype)
            instance: SingleSave = cls._instance
            return instance

    @classmethod
    def _make(cls, dump_path: Any, fmk: str, native_dtype: bool) -> SingleSave:
        FmkAdp.set_fmk(fmk)
        instance = super().__new__(cls)
        instance.dump_path = os.fspath(dump_path)
        _native.make_directory(instance.dump_path)
        instance.rank = FmkAdp.get_rank_id()
        instance.step_count = 0
        instance.tag_count = defaultdict(int)
        instance._writer = _Writer(fmk == MINDSPORE, native_dtype)
        return instance

    @classmethod
    def save(cls, data: Any) -> None:
        """Saves values by key: tensors, or lists, tuples and dicts of tensors.

        Each save of a key within a step is a micro step of its own.
        """
        instance = cls._instance
        if not isinstance(data, dict):
            logger.warning(_NO_DICT)
            return
        with cls._lock:
            counts = instance.tag_count
            for key, value in data.items():
                instance._save_value(key, value, counts[key])
                counts[key] += 1

    @classmethod
    def save_ex(cls, data: Any, micro_batch: int | None = None) -> None:
        """Saves values by key as a micro step the caller names; without one, directly below the rank."""
        instance = cls._instance
        if not isinstance(data, dict):
            logger.warning(_NO_DICT)
            return
        with cls._lock:
            for key, value in data.items():
                instance._save_value(key, value, micro_batch)

    @classmethod
    def step(cls) -> None:
        """Ends a step: what was saved is on disk, micro steps start again."""
        with cls._lock:
            instance = cls._instance
            instance.tag_count = defaultdict(int)
            instance.step_count += 1
            instance._writer.flush()

    @classmethod
    def flush(cls) -> None:
        """Waits until everything saved so far is on disk."""
        cls._instance._writer.flush()

    @classmethod
    def save_config(cls, data: Any) -> None:
        """Writes ``{dump_path}/configurations.json``, whole or not at all."""
        path = f"{cls._instance.dump_path}/{_CONFIGURATIONS}"
        try:
            _replace_file(Path(path), json.dumps(data, indent=4))
        except Exception as error:
            logger.error(f'Save json file "{_CONFIGURATIONS}" failed.')
            raise RuntimeError(f"Save json file {path} failed.") from error

    def _save_value(self, key: Any, value: Any, micro_batch: int | None) -> None:
        if not isinstance(key, str):
            logger.warning("key should be string when save data")
            return
        is_tensor = FmkAdp.is_tensor(value)
        if not is_tensor and not isinstance(value, _CONTAINERS):
            logger.warning(f"value should be {_CONTAINERS} or Tensor when save data")
            return
        try:
            directory = self._directory(key, micro_batch)
            entry = self._writer.begin(directory, key)
            if entry is None:
                # Saving ended with an error that was reported; training goes on.
                pass
            elif is_tensor:
                _add(entry, key, "", value)
                entry.finish("tensor")
            elif isinstance(value, dict):
                _add_dict(entry, directory, key, value)
            else:
                for index, element in enumerate(value):
                    _add(entry, f"{key}.{index}", "", element)
                entry.finish("list")
        except BaseException:
            # Whoever looks at the directory because of the exception finds all that was saved before it.
            self._writer.flush()
            raise
        self._writer.report()

    def _directory(self, key: str, micro_batch: int | None) -> str:
        if key.startswith("/") or ".." in key.split("/"):
            raise FileCheckException(
                FileCheckException.ILLEGAL_PATH_ERROR, f"the key {key} leads out of {self.dump_path}"
            )
        place = f"{self.dump_path}/data/{key}/step{self.step_count}/rank{self.rank}"
        return place if micro_batch is None else f"{place}/micro_step{micro_batch}"


class _Writer:
    """The Rust writer of the running process: a forked child gets one of its own."""

    def __init__(self, is_mindspore: bool, native_dtype: bool) -> None:
        self._style = (is_mindspore or native_dtype, is_mindspore, native_dtype)
        self._process = 0
        self._native: _native.KeyDataWriter | None = None
        self._here()

    def _here(self) -> _native.KeyDataWriter:
        if self._native is None or self._process != os.getpid():
            self._native = _native.KeyDataWriter(*self._style)
            self._process = os.getpid()
            atexit.register(self.flush)
            # A child of multiprocessing that was forked ends without the handlers of atexit.
            multiprocessing = sys.modules.get("multiprocessing")
            if multiprocessing is not None and multiprocessing.parent_process() is not None:
                from multiprocessing.util import Finalize

                Finalize(None, self.flush, exitpriority=1)
        return self._native

    def begin(self, directory: str, key: str) -> _native.KeyDataEntry | None:
        return self._here().begin(directory, key)

    def flush(self) -> None:
        if self._native is not None and self._process == os.getpid():
            self._native.flush()
            self.report()

    def report(self) -> None:
        """Says once that saving ended, and why."""
        failure = self._here().take_failure()
        if failure is not None:
            logger.error(f"SingleSave saves nothing any more, training goes on: {failure}")


def _add(entry: _native.KeyDataEntry, name: str, label: str, value: Any) -> None:
    if not FmkAdp.is_tensor(value):
        raise TypeError(f"SingleSave: Unsupported type: {type(value)}")
    tensor = FmkAdp.on_host(value)
    entry.add(name, label, tensor.described, tensor.is_own)


def _add_dict(entry: _native.KeyDataEntry, directory: str, key: str, values: dict[Any, Any]) -> None:
    is_nameable = True
    for subkey, value in values.items():
        label = _json_key(subkey)
        _add(entry, f"{key}.{subkey}", label or "", value)
        is_nameable = is_nameable and label is not None
    if not is_nameable:
        raise RuntimeError(f"Save json file {directory}/{key}.json failed.")
    entry.finish("dict")


def _json_key(key: Any) -> str | None:
    """A key of a dict as JSON has it; ``None`` if it cannot."""
    if isinstance(key, str):
        return key
    try:
        return str(next(iter(json.loads(json.dumps({key: None})))))
    except TypeError:
        return None


def _replace_file(path: Path, text: str) -> None:
    """Writes a file beside its name, and gives it that name when it is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-", suffix=".json")
    partial = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        partial.chmod(FILE_MODE)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _renew_lock() -> None:
    """The lock may be held by a thread that a forked child does not have."""
    SingleSave._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
