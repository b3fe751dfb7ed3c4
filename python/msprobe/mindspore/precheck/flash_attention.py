"""``flash_attention_score`` in PyTorch, in 64 bits."""

from __future__ import annotations

from typing import Any

from msprobe.pytorch.precheck.fused_attention import npu_fusion_attention


def flash_attention_score(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    real_shift: Any = None,
    drop_mask: Any = None,
    padding_mask: Any = None,
    attn_mask: Any = None,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Any:
    """The result in the dtype of the query. ``prefix`` and packed lengths take no part."""
    result, _, _ = npu_fusion_attention(
        query,
        key,
        value,
        head_num,
        input_layout,
        pse=real_shift,
        atten_mask=attn_mask,
        scale=scalar_value,
        pre_tockens=pre_tokens,
        next_tockens=next_tokens,
        sparse_mode=sparse_mode,
    )
    return result.to(query.dtype)
