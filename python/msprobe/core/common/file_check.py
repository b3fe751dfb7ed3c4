"""What a path must be before it is used: plain, no link, the caller's own, of a sane size."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from msprobe.core.common.exceptions import FileCheckException
from msprobe.core.common.log import logger

MAX_CONFIG_BYTES = 1 << 30
MAX_PATH_CHARS = 4096
MAX_NAME_CHARS = 255

MAX_NEW_DIRECTORIES = 16
DIRECTORY_MODE = 0o750
FILE_MODE = 0o640

_PLAIN_INPUT = re.compile(r"[a-zA-Z0-9_.:/-]+")
_PLAIN_OUTPUT = re.compile(r"[a-zA-Z0-9_./-]+")


def read_config_file(path: str) -> str:
    """The text of a JSON configuration file.

    Raises ``FileCheckException`` for a file that must not be used, ``RuntimeError`` for one that is no text.
    """
    _check_name(path)
    found = _find(path)
    _check_owner(path, found)
    if found.st_size >= MAX_CONFIG_BYTES:
        raise FileCheckException(
            FileCheckException.FILE_TOO_LARGE_ERROR,
            f"{path} is {found.st_size} bytes long, a configuration file has to be below {MAX_CONFIG_BYTES}",
        )
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RuntimeError(f"cannot read {path}: {error}") from error
    except OSError as error:
        raise FileCheckException(
            FileCheckException.FILE_PERMISSION_ERROR, f"cannot read {path}: {error.strerror}"
        ) from error


def check_input_directory(path: str | os.PathLike[str], hint: str = "") -> None:
    """A directory to read from: it must be there and be no link. Whose it is does not matter.

    What is wrong is logged and raised as ``FileCheckException``.
    """
    directory = Path(path)
    real_path = os.path.realpath(path)
    code, text = FileCheckException.ILLEGAL_PATH_ERROR, ""
    if not os.access(path, os.F_OK):
        text = f"The file path {path} does not exist."
    elif directory.is_symlink():
        code, text = FileCheckException.SOFT_LINK_ERROR, f"The file path {path} is a soft link."
    elif len(real_path) > MAX_PATH_CHARS or len(Path(real_path).name) > MAX_NAME_CHARS:
        text = "The file path length exceeds limit."
    elif not directory.is_dir():
        code, text = FileCheckException.INVALID_FILE_ERROR, f"The {path} should be a directory!"
    elif not os.access(path, os.R_OK | os.X_OK):
        code, text = FileCheckException.FILE_PERMISSION_ERROR, f"The file path {path} is not readable."
    elif not _PLAIN_INPUT.fullmatch(real_path):
        text = f"The file path {real_path} contains special characters."
    if text:
        logger.error(text)
        raise FileCheckException(code, f"{text} Hint: {hint}" if hint else text)


def make_directory(path: str) -> None:
    """Makes a directory to write into, with those above it. One that is there stays as it is."""
    _check_name(path)
    directory = Path(path)
    if directory.is_symlink():
        raise FileCheckException(
            FileCheckException.SOFT_LINK_ERROR, f"{path} is a link, give the path of the directory itself"
        )
    real_path = os.path.realpath(path)
    if not _PLAIN_OUTPUT.fullmatch(real_path):
        raise FileCheckException(
            FileCheckException.ILLEGAL_PATH_ERROR,
            f"{real_path} contains special characters, a path may have letters, digits and any of _./-",
        )
    try:
        missing = [part for part in (directory, *directory.parents) if not part.exists()]
        if len(missing) > MAX_NEW_DIRECTORIES:
            raise FileCheckException(
                FileCheckException.ILLEGAL_PATH_ERROR,
                f"{path} lacks {len(missing)} directories, at most {MAX_NEW_DIRECTORIES} are made",
            )
        for part in reversed(missing):
            part.mkdir(exist_ok=True)
            part.chmod(DIRECTORY_MODE)
    except OSError as error:
        raise FileCheckException(
            FileCheckException.FILE_PERMISSION_ERROR, f"cannot make {path}: {error.strerror}"
        ) from error
    if not directory.is_dir():
        raise FileCheckException(FileCheckException.INVALID_FILE_ERROR, f"{path} is not a directory")


def _find(path: str) -> os.stat_result:
    """What lies at the path itself: a link is not followed, and nothing that could block is ever opened."""
    try:
        found = os.lstat(path)
    except PermissionError as error:
        raise FileCheckException(
            FileCheckException.FILE_PERMISSION_ERROR, f"cannot reach {path}: {error.strerror}"
        ) from error
    except OSError as error:
        raise FileCheckException(
            FileCheckException.ILLEGAL_PATH_ERROR, f"the file {path} does not exist"
        ) from error
    if stat.S_ISLNK(found.st_mode):
        raise FileCheckException(
            FileCheckException.SOFT_LINK_ERROR, f"{path} is a link, give the path of the file itself"
        )
    if not stat.S_ISREG(found.st_mode):
        raise FileCheckException(FileCheckException.INVALID_FILE_ERROR, f"{path} is not a file")
    real_path = os.path.realpath(path)
    if not _PLAIN_INPUT.fullmatch(real_path):
        raise FileCheckException(
            FileCheckException.ILLEGAL_PATH_ERROR,
            f"{real_path} contains special characters, a path may have letters, digits and any of _.:/-",
        )
    if not path.endswith(".json"):
        raise FileCheckException(
            FileCheckException.INVALID_FILE_ERROR, f"the name of {path} has to end in .json"
        )
    return found


def _check_name(path: str) -> None:
    """Refuses what the operating system could not even look up."""
    if "\0" in path or len(path) > MAX_PATH_CHARS or len(Path(path).name) > MAX_NAME_CHARS:
        raise FileCheckException(
            FileCheckException.ILLEGAL_PATH_ERROR,
            f"more than {MAX_PATH_CHARS} characters, {MAX_NAME_CHARS} in its last part, or a NUL in {path}",
        )


def _check_owner(path: str, found: os.stat_result) -> None:
    caller = os.getuid()
    if caller != 0 and found.st_uid != caller:
        raise FileCheckException(
            FileCheckException.FILE_PERMISSION_ERROR,
            f"{path} belongs to another user, use a copy of your own",
        )
