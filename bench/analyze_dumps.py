"""Dumps of many ranks, made by repeating a small real one.

The seed is one block of a model on two ranks, at three steps: healthy, with a NaN that is born on rank 1, and
handed the NaN. A rank of the result is a deep model: healthy blocks, the block with the birth in the middle,
and blocks after it. Only what must differ is changed: numbers of calls and blocks, ranks, groups, neighbours.
"""

from __future__ import annotations

import copy
import json
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

NAN_BORN = "Torch.log.0.forward"
HEALTHY, BIRTH, AFTER = range(3)
CALL = re.compile(r"^(.*)\.(\d+)\.(?:forward|backward)$")
MODULE = "Module.blocks.0."
# The other collectives of the seed are those of all ranks.
IN_GROUP = ("Distributed.all_gather.0.forward", "Distributed.all_reduce.1.forward")
HEAD = """{
 "task": "statistics",
 "level": "mix",
 "framework": "pytorch",
 "dump_data_dir": null,
 "data": {
"""

Record = dict[str, Any]


class Shape(NamedTuple):
    ranks: int
    records: int
    """At least so many per rank: blocks are whole."""
    group: int
    """Ranks of a sub-group."""
    has_birth: bool = True
    """Whether there is a NaN at all."""


class Made(NamedTuple):
    records: int
    """Of each rank."""
    size_bytes: int
    culprit: tuple[int, str] | None
    """The rank and the record where the NaN is born."""


class Place:
    """What a rank knows of the others."""

    def __init__(self, rank: int, shape: Shape) -> None:
        self.next, self.previous = (rank + 1) % shape.ranks, (rank - 1) % shape.ranks
        first = rank - rank % shape.group
        self.group = list(range(first, first + shape.group))
        self.everyone = list(range(shape.ranks))

    def call(self, name: str, record: Record) -> Record:
        """A call between the two ranks of the seed as one of this rank."""
        given = copy.deepcopy(record)
        keywords = given["input_kwargs"]
        for keyword, peer in (("dst", self.next), ("src", self.previous)):
            if keyword in keywords:
                keywords[keyword]["value"] = peer
                given["output"][-1]["value"] = peer
        if "group" in keywords:
            ranks = self.group if name in IN_GROUP else self.everyone
            about = {"group_ranks": ranks, "group_id": f"{zlib.crc32(str(ranks).encode()):08x}"}
            keywords["group"].update(about)
            given["output"][-1].update(about)
        if name.startswith("Distributed.all_gather."):
            for values in (given["input_args"], given["output"]):
                values[0] = [values[0][part % len(values[0])] for part in range(len(self.group))]
        return given


class Names:
    """The names of the records of a block, in every block of the deep model."""

    def __init__(self, names: list[str]) -> None:
        self.first = names
        self.counts: dict[str, int] = {}
        for name in names:
            call = CALL.match(name)
            if call is not None:
                self.counts[call[1]] = max(self.counts.get(call[1], 0), int(call[2]) + 1)

    def renumbered(self, name: str, block: int) -> str:
        if name.startswith(MODULE):
            return f"Module.blocks.{block}.{name[len(MODULE) :]}"
        call = CALL.match(name)
        if call is None:
            raise ValueError(f"the seed has a record of an unknown kind: {name}")
        number = int(call[2]) + block * self.counts[call[1]]
        return f"{call[1]}.{number}{name[call.end(2) :]}"

    def of(self, block: int) -> list[str]:
        return [self.renumbered(name, block) for name in self.first]


class Seed:
    """The real dump: what rank 0 and rank 1 recorded at each step."""

    def __init__(self, steps: list[str]) -> None:
        self.places = [[Path(step) / f"rank{rank}" for rank in range(2)] for step in steps]
        self.records = [[self.read(place) for place in ranks] for ranks in self.places]
        self.names = Names(list(self.records[HEALTHY][0]))
        if any(list(one) != self.names.first for ranks in self.records for one in ranks):
            raise ValueError("the steps of the seed have different records")
        self.texts = [[[text(record) for record in one.values()] for one in ranks] for ranks in self.records]

    @staticmethod
    def read(place: Path) -> Record:
        data: Record = json.loads((place / "dump.json").read_text())["data"]
        return data

    def block(self, step: int, role: int, place: Place) -> list[str]:
        """The values of a block, for the rank at that place."""
        records = self.records[step][role].items()
        return [
            text(place.call(name, record)) if name.startswith("Distributed.") else known
            for (name, record), known in zip(records, self.texts[step][role])
        ]

    def construct(self, blocks: int) -> str:
        parents = json.loads((self.places[HEALTHY][0] / "construct.json").read_text())
        found = {}
        for block in range(blocks):
            for name, parent in parents.items():
                above = parent if parent is None else self.names.renumbered(parent, block)
                found[self.names.renumbered(name, block)] = above
        return json.dumps(found, indent=1)

    def stack(self, blocks: int) -> str:
        """Every block is called from the same lines."""
        entries = json.loads((self.places[HEALTHY][0] / "stack.json").read_text())
        for names, _ in entries.values():
            names[:] = [self.names.renumbered(name, block) for block in range(blocks) for name in names]
        return json.dumps(entries, indent=1)


def text(record: Record) -> str:
    """A record as collection writes it: one space for each level."""
    return json.dumps(record, indent=1).replace("\n", "\n  ")


def make(seed: Seed, shape: Shape, folder: Path) -> Made:
    """Writes the directories of all ranks below ``folder``."""
    blocks = -(-shape.records // len(seed.names.first))
    names = [seed.names.of(block) for block in range(blocks)]
    construct, stack = seed.construct(blocks), seed.stack(blocks)
    culprit = shape.ranks // 2 + 1 if shape.has_birth else None
    birth = blocks // 2 if shape.has_birth else blocks
    size = 0
    for rank in range(shape.ranks):
        directory = folder / f"rank{rank}"
        directory.mkdir(parents=True)
        (directory / "construct.json").write_text(construct)
        (directory / "stack.json").write_text(stack)
        values = [seed.block(step, int(rank == culprit), Place(rank, shape)) for step in range(3)]
        with (directory / "dump.json").open("w") as file:
            file.write(HEAD)
            for block in range(blocks):
                step = HEALTHY if block < birth else BIRTH if block == birth else AFTER
                lines = (f'  "{name}": {value}' for name, value in zip(names[block], values[step]))
                file.write(",\n".join(lines) + (",\n" if block + 1 < blocks else "\n"))
            file.write(" }\n}")
        size += sum(path.stat().st_size for path in directory.iterdir())
    found = None if culprit is None else (culprit, seed.names.renumbered(NAN_BORN, birth))
    return Made(blocks * len(seed.names.first), size, found)
