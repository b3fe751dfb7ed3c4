"""Sketches as docs/collection.md describes their text, read without the code that writes them."""

from __future__ import annotations

import base64
from typing import NamedTuple


class Sketch(NamedTuple):
    hash: int
    norm: float = 0.0
    components: tuple[float, ...] = ()
    rows: tuple[float, ...] = ()
    columns: tuple[float, ...] = ()


def read_sketch(text: str) -> Sketch:
    version, letter, body = text[0], text[1], text[2:]
    assert version == "1"
    data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    hash_ = int.from_bytes(data[:8], "little")
    if letter in "hz":
        assert len(data) == 8
        return Sketch(hash_)
    exponent = int.from_bytes(data[8:10], "little", signed=True)
    norm = int.from_bytes(data[10:13], "little") * 2.0 ** (exponent - 23)
    components = []
    for at in range(13, 69, 7):
        both = int.from_bytes(data[at : at + 7], "little")
        components += [_signed(both & (1 << 28) - 1, 28), _signed(both >> 28, 28)]
    rest = data[69:]

    def eighths(part: bytes) -> tuple[float, ...]:
        steps = [int.from_bytes(part[at : at + 3], "little", signed=True) for at in range(0, 24, 3)]
        return tuple(step * 2.0 ** (exponent - 23) for step in steps)

    rows: tuple[float, ...] = ()
    columns: tuple[float, ...] = ()
    if letter in "rc":
        rows, rest = eighths(rest[:24]), rest[24:]
    if letter in "kc":
        columns, rest = eighths(rest[2:26]), rest[26:]
    assert not rest
    return Sketch(hash_, norm, tuple(step * 2.0 ** (exponent - 27) for step in components), rows, columns)


def _signed(bits: int, count: int) -> int:
    return bits - (1 << count) if bits >> (count - 1) else bits


def components_of(buckets: list[float]) -> list[float]:
    """Sixteen combinations of 64 buckets: four bases, each turned by a bent function."""
    components = [0.0] * 16
    for base, twist in enumerate((0x0000, 0x6AC0, 0xC6A0, 0xAC60)):
        for component in range(16):
            for at in range(16):
                odd = (bin(at & component).count("1") + (twist >> component)) & 1
                components[component] += -buckets[16 * base + at] if odd else buckets[16 * base + at]
    return components
