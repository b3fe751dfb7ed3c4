"""Sketches of tensors on an accelerator, as queued operations.

The definition is that of ``crates/tensor/src/stats/sketch``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch

from msprobe import _native
from msprobe.core.framework import DeviceSketch

_WORD = 0xFFFFFFFF
_LANES = 8
_BUCKETS = 64
# From here on a value stands for infinity, as in masks.
_MASK = 1e30


class Queued(NamedTuple):
    """Operations that were queued for one tensor."""

    shape: list[int]
    sums: torch.Tensor | None
    """None if it has too few elements."""
    hash: torch.Tensor


def queue(values: torch.Tensor, wide: torch.dtype) -> Queued:
    """Queues the sums and the hash of a dense tensor of floats or integers, on its device."""
    flat = values.reshape(-1)
    cuts = _native.sketch_cuts(list(values.shape))
    sums = None if cuts is None else _sums(flat, wide, *cuts)
    return Queued(list(values.shape), sums, _hash(flat))


def fetch(pending: list[Queued]) -> list[DeviceSketch]:
    """What was queued, with one transfer per device and kind of number."""
    sums: list[list[float]] = [[] for _ in pending]
    hashes = [0] * len(pending)
    kinds = dict.fromkeys(
        (queued.sums.device, queued.sums.dtype) for queued in pending if queued.sums is not None
    )
    for kind in kinds:
        places, parts = [], []
        for at, queued in enumerate(pending):
            if queued.sums is not None and (queued.sums.device, queued.sums.dtype) == kind:
                places.append(at)
                parts.append(queued.sums)
        numbers = torch.cat(parts).cpu().tolist()
        start = 0
        for at, part in zip(places, parts):
            sums[at] = numbers[start : start + part.numel()]
            start += part.numel()
    for device in dict.fromkeys(queued.hash.device for queued in pending):
        places = [at for at, queued in enumerate(pending) if queued.hash.device == device]
        for at, number in zip(places, torch.stack([pending[at].hash for at in places]).cpu().tolist()):
            hashes[at] = number
    return [DeviceSketch(queued.shape, row, number) for queued, row, number in zip(pending, sums, hashes)]


def _sums(
    flat: torch.Tensor, wide: torch.dtype, strip: int, row_starts: list[int], columns: int
) -> torch.Tensor:
    """Sum of squares, buckets, eighths of the rows and of the columns."""
    if flat.is_floating_point() and flat.element_size() == 1:
        flat = flat.float()
    flat = flat.to(wide)
    flat = torch.where(flat.abs() < _MASK, flat, torch.zeros_like(flat))
    count = flat.numel()
    signs = _signs(flat.device, wide)
    padded = torch.nn.functional.pad(flat, (0, -count % signs.numel()))
    signed = (padded.view(-1, signs.numel()) * signs).view(-1, strip // _LANES, _LANES)
    lanes = torch.arange(_LANES, device=flat.device)
    random = _mix(torch.arange(signed.shape[0], device=flat.device)).unsqueeze(1)
    lane_signs = (1 - 2 * ((random >> (lanes + 8)) & 1)).to(wide)
    signed = signed * lane_signs.unsqueeze(1)
    buckets = torch.zeros(_BUCKETS, dtype=wide, device=flat.device)
    buckets.index_add_(0, ((random + lanes) % _BUCKETS).reshape(-1), signed.sum(1).reshape(-1))
    parts = [(flat * flat).sum().reshape(1), buckets]
    elements = signed.reshape(-1)[:count]
    if row_starts and count % (8 * _LANES) == 0:
        parts.append(elements.view(8, -1).sum(1))
    elif row_starts:
        ends = [*row_starts[1:], count]
        parts.append(torch.stack([elements[start:end].sum() for start, end in zip(row_starts, ends)]))
    if columns:
        parts.append(elements.view(-1, 8, columns // 8).sum((0, 2)))
    return torch.cat(parts)


def _hash(flat: torch.Tensor) -> torch.Tensor:
    """The sum over pairs of 32-bit words; integers of torch are taken modulo 2^64."""
    first, second = _pairs(flat)
    keys = _keys(flat.device)
    count, period = first.numel(), keys.shape[1]
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    whole = count // period * period
    for start, end, width in ((0, whole, period), (whole, count, count - whole)):
        if start == end:
            continue
        products = ((first[start:end].view(-1, width) + keys[0, :width]) & _WORD) * (
            (second[start:end].view(-1, width) + keys[1, :width]) & _WORD
        )
        blocks = torch.arange(start // period, start // period + products.shape[0], device=flat.device)
        total = total + (products.sum(1) * _factor(blocks)).sum()
    return total


def _pairs(flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The words of the bytes, two by two, as integers; what is missing of the last two is zero."""
    size = flat.element_size()
    words = flat.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    left = -words.numel() % (8 // size)
    if left:
        words = torch.nn.functional.pad(words, (0, left))
    elif words.storage_offset() * size % 8:
        # Only what begins at a multiple of eight bytes can be looked at eight bytes at a time.
        words = words.clone()
    both = words.view(torch.int64)
    return both & _WORD, (both >> 32) & _WORD


def _mix(strips: torch.Tensor) -> torch.Tensor:
    mixed = ((strips & _WORD) * 0x9E3779B1 + 0x7F4A7C15) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * 0x85EBCA77) & _WORD
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE3D) & _WORD
    return mixed ^ (mixed >> 16)


def _factor(blocks: torch.Tensor) -> torch.Tensor:
    mixed = (blocks + 1) * _as_int64(0x9E3779B97F4A7C15)
    return ((mixed ^ ((mixed >> 32) & _WORD)) * _as_int64(0xD6E8FEB86659FD93)) | 1


def _as_int64(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


@lru_cache(maxsize=16)
def _signs(device: torch.device, wide: torch.dtype) -> torch.Tensor:
    negative, _ = _native.sketch_tables()
    return torch.tensor([-1.0 if sign else 1.0 for sign in negative], dtype=wide, device=device)


@lru_cache(maxsize=16)
def _keys(device: torch.device) -> torch.Tensor:
    _, keys = _native.sketch_tables()
    halves = [[key & _WORD for key in keys], [key >> 32 for key in keys]]
    return torch.tensor(halves, dtype=torch.int64, device=device)
