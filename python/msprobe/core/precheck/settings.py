"""The section ``run_ut`` of a configuration file: which operators, where data of errors goes."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msprobe.core.common.file_check import check_input_directory, read_config_file
from msprobe.core.common.log import logger

_MAX_PORT = 65535


@dataclass(frozen=True)
class Settings:
    """What a configuration file may say of a pre-check."""

    white_list: list[str] = field(default_factory=list)
    black_list: list[str] = field(default_factory=list)
    error_data_path: str = "./"


def read_settings(path: str, known_names: Collection[str]) -> Settings:
    """The settings of a file, or what holds without one.

    Raises ``ValueError`` for what cannot be, and ``NotImplementedError`` for the online pre-check.
    """
    if not path:
        return Settings()
    try:
        whole = json.loads(read_config_file(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    section = whole.get("run_ut", {}) if isinstance(whole, dict) else None
    if not isinstance(section, dict):
        raise ValueError(f"{path} has no object 'run_ut'")
    settings = Settings(
        _names(section, "white_list", known_names),
        _names(section, "black_list", known_names),
        _directory(section),
    )
    _check_online(section)
    return settings


def _names(section: Mapping[str, Any], key: str, known: Collection[str]) -> list[str]:
    names = section.get(key)
    if names is None:
        return []
    if not isinstance(names, list):
        raise ValueError(f"{key} must be a list type")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("All elements in " + key + " must be string type")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"Invalid api in {key}: {unknown}")
    return names


def _directory(section: Mapping[str, Any]) -> str:
    path = section.get("error_data_path") or "./"
    if not isinstance(path, str) or not Path(path).exists():
        raise ValueError(f"error_data_path: {path} does not exist")
    return path


def _check_online(section: Mapping[str, Any]) -> None:
    """An online pre-check is looked at as far as it is said, and then refused."""
    ranks = section.get("rank_list", [])
    if not isinstance(ranks, list):
        raise ValueError("rank_list must be a list")
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in ranks):
        raise ValueError("All elements in rank_list must be integers")
    for key in ("nfs_path", "tls_path"):
        path = section.get(key) or ""
        if path and path != "./":
            check_input_directory(path)
    if not section.get("is_online"):
        return
    if not section.get("nfs_path"):
        host, port = section.get("host", ""), section.get("port", -1)
        try:
            ipaddress.IPv4Address(host)
        except ValueError as error:
            raise ValueError(f"host: {host} is invalid.") from error
        if not isinstance(port, int) or not 0 < port <= _MAX_PORT:
            raise ValueError(f"port: {port} is invalid, port range 0-{_MAX_PORT}.")
    raise NotImplementedError(
        "the online pre-check is not in this version; collect a dump and give it to run_ut with -api_info"
    )


def check_dump_path(path: str) -> str:
    """A dump.json that can be read. The plan looks at what is in it."""
    if not path:
        raise ValueError("Please provide api_info_file for offline run ut.")
    if not path.endswith(".json"):
        raise ValueError(f"api_info_file: {path} has to end in .json")
    if not Path(path).is_file() or not os.access(path, os.R_OK):
        raise ValueError(f"api_info_file: {path} does not exist or cannot be read")
    logger.debug(f"operators are taken from {path}")
    return path
