"""The msprobe_config block: every key, every way to give it, and what is said about what is wrong."""

from __future__ import annotations

import re
from collections import UserDict
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from msprobe.rl import PHASES, RLProbe, Settings

FULL: dict[str, Any] = {
    "msprobe": True,
    "dump_path": "./run_a",
    "key_data_dump": True,
    "configurations_dump": True,
    "actor_train_dump": True,
    "reference_dump": True,
    "step_start": 2,
    "step_end": 4,
    "actor_infer_dump": True,
    "token_range_start": 1,
    "token_range_end": 3,
    "critic_train_dump": True,
}


def test_defaults() -> None:
    expected = {field.name: False for field in fields(Settings)} | {
        "dump_path": "./msprobe_dump",
        "step_start": 0,
        "step_end": 0,
        "token_range_start": 0,
        "token_range_end": 0,
    }
    for source in (None, {}, {"msprobe_config": None}, {"msprobe_config": {}, "actor": {"lr": 1}}):
        assert vars(Settings.load(source)) == expected


def test_every_key() -> None:
    assert {field.name for field in fields(Settings)} == set(FULL)
    dashed = {key.replace("_", "-"): value for key, value in FULL.items()}
    sources = (FULL, dashed, UserDict(FULL), {"msprobe_config": FULL, "rl": 1}, {"msprobe-config": dashed})
    for source in sources:
        assert vars(Settings.load(source)) == FULL


@pytest.mark.parametrize("layout", ["inside", "alone"])
@pytest.mark.parametrize("kind", [str, Path])
def test_yaml_file(layout: str, kind: type, tmp_path: Path) -> None:
    lines = [f"{key.replace('_', '-')}: {str(value).lower()}" for key, value in FULL.items()]
    if layout == "inside":
        lines = [
            "defaults: [model]",
            "msprobe_config:",
            *(f"  {line}" for line in lines),
            "rl_config: {kl: 0.1}",
        ]
    path = tmp_path / "train.yaml"
    path.write_text("\n".join(lines))
    assert vars(Settings.load(kind(path))) == FULL


@pytest.mark.parametrize("text", ["", "# nothing\n", "msprobe_config:\n", "msprobe: off\n"])
def test_yaml_file_that_switches_nothing_on(text: str, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(text)
    assert not RLProbe(path).enabled


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"reference_dmup": True}, ["'reference_dmup'", "did you mean reference_dump?", *FULL]),
        ({"Key-Data-Dump": True}, ["'Key-Data-Dump'", "did you mean key_data_dump?"]),
        ({"learning_rate": 1}, ["unknown key 'learning_rate' (known keys: msprobe, dump_path,"]),
        ({3: 1}, ["unknown key 3"]),
        ({"msprobe": "true"}, ["msprobe must be true or false, not 'true' (str)"]),
        ({"msprobe": 1}, ["msprobe must be true or false, not 1 (int)"]),
        ({"key_data_dump": None}, ["key_data_dump must be true or false, not None"]),
        ({"step_start": -1}, ["step_start must be an integer that is 0 or greater, not -1"]),
        ({"step_end": True}, ["step_end must be an integer that is 0 or greater, not True (bool)"]),
        ({"step_end": "3"}, ["step_end must be an integer", "'3' (str)"]),
        ({"token_range_end": 1.0}, ["token_range_end must be an integer", "1.0 (float)"]),
        ({"dump_path": 3}, ["dump_path must be a path, not 3 (int)"]),
        ({"dump_path": ""}, ["dump_path must be a path"]),
        ({"dump_path": ["x" * 99]}, ["dump_path must be a path, not ['xxx", "... (list)"]),
        ({"dump-path": "a", "dump_path": "b"}, ["dump_path is given twice"]),
        ({"step_start": 2}, ["step_start (2) must not be greater than step_end (0)"]),
        (
            {"token_range_start": 5, "token_range_end": 4},
            ["token_range_start (5) must not be greater than token_range_end (4)"],
        ),
        ({"msprobe_config": [1]}, ["must be a mapping", "[1] (list)"]),
    ],
)
def test_refused(block: dict[Any, Any], said: list[str]) -> None:
    # The master switch does not matter: a wrong block is wrong before it is needed.
    with pytest.raises(ValueError) as error:
        RLProbe(block)
    for text in ("msprobe_config", *said):
        assert text in str(error.value)


@pytest.mark.parametrize(
    "data",
    [b"a: [1", b"- 1\n- 2\n", b"3", b"a: !!python/name:os.system x", b"\xff\xfe\x00", b"[" * 100_000],
    ids=["open", "list", "number", "tag", "bytes", "deep"],
)
def test_refused_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        RLProbe(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RLProbe(tmp_path / "train.yaml")


def test_wrong_kind_of_source() -> None:
    wrong: Any = 3
    with pytest.raises(ValueError, match="must be a mapping"):
        RLProbe(wrong)


def test_phases_in_order() -> None:
    assert PHASES == (
        "actor_generate_sequences",
        "actor_compute_log_prob",
        "reference_compute_log_prob",
        "critic_compute_values",
        "actor_update",
        "critic_update",
    )
