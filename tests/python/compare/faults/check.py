"""Looks at two dumps by brute force, without the comparison under test: does the corpus contain what it says?

    python -m tests.python.compare.faults.check DIR

reads ``DIR/index.json`` and prints, case by case, where the two sides first part.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import dumps
from .dumps import Dump

# Two figures are the same number if they agree to this part of the largest element: before a fault, and where
# the same thing was computed in another order.
RELATIVE = 1e-6
ROUNDING = 1e-4
# Smaller numbers than this are left over from sums that cancel out: the gradient of a key's bias is zero but
# for rounding.
SMALLEST = 1e-4
_INPUTS = ("input_args", "input_kwargs", "input", "parameters")
_FIGURES = ("Max", "Min", "Mean", "Norm")


@dataclass(frozen=True)
class Difference:
    """A record that is not the same on both sides."""

    name: str
    inputs: bool
    outputs: bool
    # There is nothing on the other side.
    is_alone: bool = False


def same_number(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, bool) or isinstance(b, bool) or not all(isinstance(x, (int, float)) for x in (a, b)):
        return bool(a == b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return bool(a == b or abs(a - b) <= tolerance)


def same_leaf(a: Any, b: Any, relative: float) -> bool:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return bool(a == b)
    if any(a.get(key) != b.get(key) for key in ("type", "dtype", "shape")):
        return False
    if "md5" in a:
        return bool(a["md5"] == b.get("md5"))
    if "Max" not in a:
        return bool(a.get("value") == b.get("value"))
    finite = [abs(x) for x in (a["Max"], a["Min"]) if isinstance(x, (int, float)) and math.isfinite(x)]
    largest = max(finite, default=0.0)
    scales = {"Norm": abs(a["Norm"]) if isinstance(a.get("Norm"), (int, float)) else 0.0}
    if not all(
        same_number(a.get(key), b.get(key), relative * max(scales.get(key, largest), SMALLEST))
        for key in _FIGURES
    ):
        return False
    return "file" not in a or same_file(a["file"], b["file"], relative)


def same_file(a: Path, b: Path, relative: float) -> bool:
    """Whether two saved tensors have the same elements in the same places."""
    if a.read_bytes() == b.read_bytes():
        return True
    left, right = (torch.load(path, weights_only=True).double() for path in (a, b))
    if left.numel() == 0:
        return True
    scale = float(left.abs().nan_to_num().max())
    return bool(torch.allclose(left, right, rtol=0.0, atol=relative * max(scale, SMALLEST), equal_nan=True))


def same(a: Any, b: Any, relative: float = RELATIVE) -> bool:
    left, right = dict(dumps.leaves(a)), dict(dumps.leaves(b))
    if relative == ROUNDING:
        # Another implementation may take and return other things besides, as masks of another type.
        common = [key for key in left if key in right and _looks(left[key]) == _looks(right[key])]
        return all(same_leaf(left[key], right[key], relative) for key in common)
    return left.keys() == right.keys() and all(same_leaf(left[key], right[key], relative) for key in left)


def _looks(leaf: Any) -> Any:
    return [leaf.get(key) for key in ("type", "dtype", "shape")] if isinstance(leaf, dict) else type(leaf)


def differs(name: str, target: dict[str, Any], golden: dict[str, Any], relative: float) -> Difference:
    if name.endswith("parameters_grad"):
        return Difference(name, False, not same(target, golden, relative))
    inputs = not all(same(target.get(key), golden.get(key), relative) for key in _INPUTS)
    return Difference(name, inputs, not same(target.get("output"), golden.get("output"), relative))


def kind(dump: Dump, name: str) -> str:
    """What a record is regardless of its number: paired in order with records of the same kind."""
    if dumps.is_module(name):
        return name
    prefix, _, direction = name.rsplit(".", 2)
    return f"{dump.parents.get(name)} {prefix} {direction}"


def pairs(target: Dump, golden: Dump) -> list[tuple[str, str | None]]:
    """Every record of the target with its partner; partners are looked for in order, not by number."""
    left, right = list(target.data), list(golden.data)
    matcher = difflib.SequenceMatcher(
        None, [kind(target, name) for name in left], [kind(golden, name) for name in right], autojunk=False
    )
    partner: dict[str, str] = {}
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            partner[left[block.a + offset]] = right[block.b + offset]
    # What moved is found by its kind.
    taken = set(partner.values())
    free: dict[str, list[str]] = {}
    for name in right:
        if name not in taken:
            free.setdefault(kind(golden, name), []).append(name)
    for name in left:
        if name not in partner and (candidates := free.get(kind(target, name))):
            partner[name] = candidates.pop(0)
    return [(name, partner.get(name)) for name in left]


def differences(target: Dump, golden: Dump, relative: float = RELATIVE) -> list[Difference]:
    """In the order of the target; a record without a partner differs in everything."""
    found = []
    for name, partner in pairs(target, golden):
        if partner is None:
            found.append(Difference(name, True, True, is_alone=True))
            continue
        difference = differs(name, target.data[name], golden.data[partner], relative)
        if difference.inputs or difference.outputs:
            found.append(difference)
    return found


def without_moved(found: list[Difference], target: Dump, golden: Dump) -> list[Difference]:
    """Leaves out what equals another call of the same function on the other side: it only moved."""
    kept = []
    for difference in found:
        name = difference.name
        like = [other for other in golden.data if _function(other) == _function(name) and other != name]
        if not any(same(target.data[name], golden.data[other]) for other in like):
            kept.append(difference)
    return kept


def _function(name: str) -> str:
    return name if dumps.is_module(name) else re.sub(r"\.\d+\.", ".", name)


def around(dump: Dump, name: str) -> set[str]:
    """The modules a record runs in: they are opened before it and closed after it."""
    is_backward = ".backward" in name
    forward = name.replace("backward", "forward") if is_backward else name
    found: set[str] = set()
    parent = dump.parents.get(forward)
    while parent is not None and parent not in found:
        found.add(parent)
        parent = dump.parents.get(parent)
    return {dumps.turned(module) for module in found} if is_backward else found


def report(root: Path, entry: dict[str, Any]) -> tuple[bool, str]:
    """Whether the two sides part where the index says, and where they do."""
    expected = entry["expected"]
    step, rank = expected["step"] or 0, expected["rank"]
    if rank is None and entry["world"] > 1:
        rank = 0
    target = dumps.read(dumps.directory(root / entry["target"], step, rank))
    golden = dumps.read(dumps.directory(root / entry["golden"], step, rank))
    is_rounded = not entry["is_fault"] and "within_tolerance" in expected["status"]
    found = differences(target, golden, ROUNDING if is_rounded else RELATIVE)
    if entry["is_reshaped"]:
        found = without_moved(found, target, golden)
    if not entry["is_fault"]:
        both = [d.name for d in found if not d.is_alone]
        return not both, f"{both} differ, {len(found) - len(both)} are new"
    if not found:
        return False, "nothing differs"
    if expected["status"] == ["differs_at_input"]:
        first = found[0]
        return first.inputs or dumps.is_module(first.name), f"first {first.name}"
    accepted = expected["culprit"]
    culprit = next((name for name in accepted if any(d.name == name for d in found)), None)
    if culprit is None:
        return False, f"none of {accepted} differs; first {found[0]}"
    outer = around(target, culprit)
    # Gradients of parameters stand where their module first ran, but come last.
    is_late = not culprit.endswith("parameters_grad")
    first = next(
        d
        for d in found
        if d.outputs
        and d.name not in outer
        and not (d.is_alone and d.name not in accepted)
        and not (is_late and d.name.endswith("parameters_grad"))
    )
    # Inside an accepted module a function may be given the wrong thing without any record of who did it.
    ok = first.name in accepted or (first.inputs and not around(target, first.name).isdisjoint(accepted))
    return ok, f"first {first.name}, its inputs {'differ' if first.inputs else 'agree'}"


def main(root: Path) -> int:
    failed = 0
    for entry in json.loads((root / "index.json").read_text()):
        ok, text = report(root, entry)
        failed += not ok
        print("ok   " if ok else "WRONG", entry["case"], entry["level"], entry["task"], text)
        if not ok:
            print("      accepted:", *entry["expected"]["culprit"])
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) != 0)
