"""Call stacks as they are written."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import CodeType, FrameType

_TOOL = f"{Path(__file__).parents[2]}/"

_texts: dict[tuple[CodeType, int], str | None] = {}


def frames_from(frame: FrameType) -> list[FrameType]:
    """A frame and those that called it, innermost first."""
    frames = []
    at: FrameType | None = frame
    while at is not None:
        frames.append(at)
        at = at.f_back
    return frames


def texts_of(frames: list[FrameType]) -> list[str]:
    """Text of each frame with source. Of the tool itself only the wrapper of a function is shown, where the
    stack begins with one."""
    texts = []
    for position, each in enumerate(frames):
        is_wrapper = position == 0 and each.f_code.co_name == "api_function"
        text = _text(each) if is_wrapper or not each.f_code.co_filename.startswith(_TOOL) else None
        if text is not None:
            texts.append(text)
    return texts


def _text(frame: FrameType) -> str | None:
    key = (frame.f_code, frame.f_lineno)
    if key not in _texts:
        path = frame.f_code.co_filename
        source = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
        _texts[key] = (
            f"File {path}, line {frame.f_lineno}, in {frame.f_code.co_name}, \n {source}" if source else None
        )
    return _texts[key]
