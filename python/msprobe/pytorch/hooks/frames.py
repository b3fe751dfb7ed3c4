"""Call stacks as they are written, and whether a stack recomputes activations."""

from __future__ import annotations

from types import CodeType, FrameType

from msprobe.core.collection.frames import frames_from, texts_of

_CHECKPOINT = "torch/utils/checkpoint.py"
_FUNCTION = "torch/autograd/function.py"
_BACKWARD = ("backward", "checkpoint_function_backward")


def describe_stack(frame: FrameType) -> tuple[list[str], bool]:
    """Text of each frame with source, innermost first, and whether it recomputes."""
    frames = frames_from(frame)
    return texts_of(frames), _is_recompute([each.f_code for each in frames])


def _is_recompute(codes: list[CodeType]) -> bool:
    for position, code in enumerate(codes):
        if code.co_name == "recompute_fn" and code.co_filename.endswith(_CHECKPOINT):
            return True
        if code.co_name in _BACKWARD and any(
            caller.co_filename.endswith(_FUNCTION) for caller in codes[position + 1 : position + 3]
        ):
            return True
    return False
