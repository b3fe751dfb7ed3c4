"""``npu_fusion_attention`` in plain PyTorch, in 64 bits."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

_ALL_TOKENS = 2147483647
_MASKED = -40000.0
_REPEATS = 8
"""How often the operator repeats each row's maximum and sum."""

# Places of batch, heads, rows and columns; of the three-letter layouts heads and columns are one dimension.
_TO_BNSD = {"BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}


class _Mask(NamedTuple):
    """What decides which rows see which columns."""

    given: Tensor | None
    sparse_mode: int
    pre_tokens: int
    next_tokens: int


def npu_fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    *,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float | None = None,
    keep_prob: float = 1.0,
    pre_tockens: int = _ALL_TOKENS,
    next_tockens: int = _ALL_TOKENS,
    sparse_mode: int = 0,
    **_unused: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, and maximum and sum of each row. Nothing is dropped, whatever ``keep_prob`` says."""
    rows = _heads_apart(query.double(), head_num, input_layout)
    width = rows.shape[-1]
    columns = _heads_apart(key.double(), _heads_of(key, width, input_layout), input_layout)
    values = _heads_apart(value.double(), columns.shape[1], input_layout)
    if rows.shape[1] % columns.shape[1] != 0:
        raise ValueError(f"{rows.shape[1]} heads of queries are no multiple of {columns.shape[1]} of keys")
    repeats = rows.shape[1] // columns.shape[1]
    columns, values = (each.repeat_interleave(repeats, dim=1) for each in (columns, values))
    scores = rows @ columns.transpose(-1, -2)
    if pse is not None:
        scores = scores + pse.double()
    scores = scores * (1 / math.sqrt(width) if scale is None else scale)
    hidden = _hidden(_Mask(atten_mask, sparse_mode, pre_tockens, next_tockens), scores)
    if hidden is not None:
        scores = scores + hidden.double() * _MASKED
    highest = scores.amax(-1, keepdim=True)
    powers = torch.exp(scores - highest)
    total = powers.sum(-1, keepdim=True)
    result = _as_given((powers / total) @ values, input_layout)
    spread = (1, 1, 1, _REPEATS)
    return result, highest.repeat(spread), total.repeat(spread)


def _heads_of(tensor: Tensor, width: int, layout: str) -> int:
    """How many heads a key has, of which the operator is not told."""
    if layout in ("BSH", "SBH"):
        return int(tensor.shape[2]) // width
    return int(tensor.shape[layout.index("N")])


def _heads_apart(tensor: Tensor, heads: int, layout: str) -> Tensor:
    """As batch, heads, sequence, width."""
    if layout in _TO_BNSD:
        return tensor.permute(_TO_BNSD[layout])
    if layout not in ("BSH", "SBH"):
        raise ValueError(f"the layout {layout} of npu_fusion_attention has no bench")
    if layout == "SBH":
        tensor = tensor.transpose(0, 1)
    batch, length, all_heads = tensor.shape
    return tensor.reshape(batch, length, heads, all_heads // heads).transpose(1, 2)


def _as_given(tensor: Tensor, layout: str) -> Tensor:
    """Back from batch, heads, sequence, width."""
    if layout == "BNSD":
        return tensor
    tensor = tensor.transpose(1, 2)
    if layout == "BSND":
        return tensor
    tensor = tensor.reshape(*tensor.shape[:2], -1)
    return tensor.transpose(0, 1) if layout == "SBH" else tensor


def _hidden(mask: _Mask, scores: Tensor) -> Tensor | None:
    """True where a row does not see a column."""
    if mask.given is not None and mask.sparse_mode in (0, 1):
        return mask.given.to(torch.bool)
    rows, columns = scores.shape[-2:]
    everything = torch.ones(rows, columns, dtype=torch.bool, device=scores.device)
    if mask.sparse_mode == 2:
        return everything.triu(1)
    if mask.sparse_mode == 3:
        return everything.triu(columns - rows + 1)
    if mask.sparse_mode == 1 or (mask.sparse_mode == 0 and mask.given is None and _sees_all(mask)):
        return None
    above = everything.triu(min(mask.next_tokens, columns) + 1)
    below = everything.tril(-min(mask.pre_tokens, rows) - 1)
    return above | below


def _sees_all(mask: _Mask) -> bool:
    return mask.pre_tokens >= _ALL_TOKENS and mask.next_tokens >= _ALL_TOKENS
