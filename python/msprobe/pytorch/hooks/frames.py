"""Call stacks as they are written, and whether a stack recomputes activations."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import CodeType, FrameType

_TOOL = f"{Path(__file__).parents[2]}/"
_CHECKPOINT = "torch/utils/checkpoint.py"
_FUNCTION = "torch/autograd/function.py"
_BACKWARD = ("backward", "checkpoint_function_backward")

_texts: dict[tuple[CodeType, int], str | None] = {}


def describe_stack(frame: FrameType) -> tuple[list[str], bool]:
    """Text of each frame with source, innermost first. Of the tool itself only the wrapper of a function is
    shown, where the stack begins with one."""
    frames = []
    at: FrameType | None = frame
    while at is not None:
        frames.append(at)
        at = at.f_back
    texts = []
    for position, each in enumerate(frames):
        is_wrapper = position == 0 and each.f_code.co_name == "api_function"
        text = _text(each) if is_wrapper or not each.f_code.co_filename.startswith(_TOOL) else None
        if text is not None:
            texts.append(text)
    return texts, _is_recompute([each.f_code for each in frames])


def _text(frame: FrameType) -> str | None:
    key = (frame.f_code, frame.f_lineno)
    if key not in _texts:
        path = frame.f_code.co_filename
        source = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
        _texts[key] = (
            f"File {path}, line {frame.f_lineno}, in {frame.f_code.co_name}, \n {source}" if source else None
        )
    return _texts[key]


def _is_recompute(codes: list[CodeType]) -> bool:
    for position, code in enumerate(codes):
        if code.co_name == "recompute_fn" and code.co_filename.endswith(_CHECKPOINT):
            return True
        if code.co_name in _BACKWARD and any(
            caller.co_filename.endswith(_FUNCTION) for caller in codes[position + 1 : position + 3]
        ):
            return True
    return False
