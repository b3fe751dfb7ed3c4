"""The ``msprobe_config`` block of an RL framework's YAML file: read, checked, refused in words that help."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Union

BLOCK = "msprobe_config"

Source = Union[None, Mapping[str, Any], str, "os.PathLike[str]"]
"""Where a block comes from: nowhere, a mapping, or the path of a YAML file."""


@dataclass(frozen=True)
class Settings:
    """What a block says, with the defaults of what it does not say."""

    msprobe: bool = False
    """The master switch. Without it nothing else has an effect."""
    dump_path: str = "./msprobe_dump"
    """The root of everything that is written. Each run needs one of its own."""
    key_data_dump: bool = False
    """Key data: prompts, responses, log probabilities, losses."""
    configurations_dump: bool = False
    """``configurations.json``."""
    actor_train_dump: bool = False
    """Layers of the actor while it computes log probabilities and while it is updated."""
    reference_dump: bool = False
    """Layers of the reference model while it computes log probabilities."""
    step_start: int = 0
    """The first step of which layers are collected. Key data is collected in every step."""
    step_end: int = 0
    """The last one; it is collected too."""
    actor_infer_dump: bool = False
    """Layers of the actor while it generates."""
    token_range_start: int = 0
    """The first generated token of which layers are collected, counted from 0."""
    token_range_end: int = 0
    """The last one; it is collected too."""
    critic_train_dump: bool = False
    """Layers of the critic while it computes values and while it is updated."""

    @classmethod
    def load(cls, source: Source) -> Settings:
        """The settings of a block, of a mapping or YAML file that has one, or the defaults for ``None``.

        Keys may be written with ``-`` or ``_``. Raises ``ValueError`` for whatever the block should not say,
        and ``OSError`` for a file that cannot be read.
        """
        if source is None:
            return cls()
        where = BLOCK
        block: object = source
        if isinstance(source, (str, os.PathLike)):
            where = f"{BLOCK} in {os.fspath(source)}"
            block = _read_yaml(Path(source))
        block = _inner_block(block)
        if block is None:
            return cls()
        if not isinstance(block, Mapping):
            raise ValueError(f"{where} must be a mapping of keys to values, not {_described(block)}")
        return cls._checked(block, where)

    @classmethod
    def _checked(cls, block: Mapping[Any, Any], where: str) -> Settings:
        defaults = {field.name: field.default for field in fields(cls)}
        values: dict[str, Any] = {}
        for key in block:
            name = _underscored(key)
            if name not in defaults:
                raise ValueError(_unknown(key, list(defaults), where))
            if name in values:
                raise ValueError(f"{where}: {name} is given twice, with '-' and with '_'")
            values[name] = _value(name, block[key], defaults[name], where)
        settings = cls(**values)
        for first, last in (("step_start", "step_end"), ("token_range_start", "token_range_end")):
            begin, end = getattr(settings, first), getattr(settings, last)
            if begin > end:
                raise ValueError(
                    f"{where}: {first} ({begin}) must not be greater than {last} ({end}); "
                    "both are included, equal values mean one"
                )
        return settings


def _read_yaml(path: Path) -> object:
    # Only whoever names a file needs the parser.
    import yaml

    data = path.read_bytes()
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"{path} is not a YAML file that can be read: {text}") from error


def _inner_block(value: object) -> object:
    """The block below its name if the name is there; otherwise the value is the block."""
    if isinstance(value, Mapping):
        for key in value:
            if _underscored(key) == BLOCK:
                return value[key]
    return value


def _underscored(key: object) -> object:
    return key.replace("-", "_") if isinstance(key, str) else key


def _value(name: str, value: object, default: object, where: str) -> object:
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        expected = "true or false"
    elif isinstance(default, int):
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return int(value)
        expected = "an integer that is 0 or greater"
    else:
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if isinstance(text, str) and text:
            return text
        expected = "a path"
    raise ValueError(f"{where}: {name} must be {expected}, not {_described(value)}")


def _unknown(key: object, known: list[str], where: str) -> str:
    closest = difflib.get_close_matches(str(_underscored(key)), known, n=1)
    hint = f"; did you mean {closest[0]}?" if closest else ""
    return f"{where}: unknown key {key!r}{hint} (known keys: {', '.join(known)})"


def _described(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
