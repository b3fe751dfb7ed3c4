"""What a dump with tensor files says about them, against what is there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch


@dataclass
class References:
    """Every tensor of every record of a dump that has a `data_name`."""

    records: int = 0
    whole: int = 0
    dangling: list[str] = field(default_factory=list)
    # File by reason.
    unwritten: list[str] = field(default_factory=list)

    def add(self, value: Any, folder: Path) -> None:
        if isinstance(value, list):
            for element in value:
                self.add(element, folder)
        elif isinstance(value, dict):
            if "data_name" in value:
                self._add_tensor(value, folder)
            for element in value.values():
                self.add(element, folder)

    def _add_tensor(self, tensor: dict[str, Any], folder: Path) -> None:
        name = tensor["data_name"]
        if name is None:
            assert isinstance(tensor["unwritten"], str), tensor
            self.unwritten.append(tensor["unwritten"])
            return
        assert "unwritten" not in tensor, tensor
        path = folder / name
        if not path.is_file():
            self.dangling.append(str(path))
            return
        loaded = torch.load(path)
        assert list(loaded.shape) == tensor["shape"], path
        self.whole += 1


def references(dump: Path) -> References:
    """Reads all of a dump; every file must be a whole document."""
    found = References()
    for path in sorted(dump.rglob("*.json")):
        document = json.loads(path.read_text())
        if path.name in ("dump.json", "debug.json"):
            found.records += len(document["data"])
            found.add(document["data"], path.parent / "dump_tensor_data")
    return found
