"""A recorded dump next to one just made: load both, leave out artefacts, tell every difference."""

from __future__ import annotations

import functools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

GOLDEN = Path(__file__).parents[2] / "golden" / "dump_pytorch"

RELATIVE = 1e-5
# A mean near zero is what is left of larger numbers; its error is measured against them.
MEAN_SLACK = 1e-6
STATISTICS = ("Max", "Min", "Mean", "Norm")

# The reference puts an identity, built with view_as, around each module to see its gradients pass.
ARTEFACT_FRAMES = ("in setup_input_hook", "in setup_output_hook", "BackwardHookFunction")
VIEW_AS = re.compile(r"^Tensor\.view_as\.\d+\.(forward|backward)$")


@dataclass
class Dump:
    """What lies below a dump_path: every name, every JSON document, every tensor."""

    listing: list[str]
    documents: dict[str, Any]
    tensors: dict[str, Any]


def load(root: Path) -> Dump:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    names = {path.relative_to(root).as_posix(): path for path in paths}
    return Dump(
        listing=list(names),
        documents={
            name: json.loads(path.read_text()) for name, path in names.items() if name.endswith(".json")
        },
        tensors={name: torch.load(path) for name, path in names.items() if name.endswith(".pt")},
    )


@functools.cache
def gives_recorded_bits() -> bool:
    """Whether this machine multiplies matrices and convolves to the bits that were recorded.

    The order of a sum depends on the instructions a processor has. Where it is another one, floats are held
    to the rounding of float32, and their checksums to having the right form.
    """

    def tensors(case: str, call: str, *names: str) -> list[torch.Tensor]:
        folder = GOLDEN / case / "dump" / "step0" / "rank" / "dump_tensor_data"
        return [torch.load(folder / f"{call}.{name}.pt").detach() for name in names]

    linear = tensors(
        "mlp_l0_tensor",
        "Module.fc1.Linear.forward.0",
        *("input.0", "parameters.weight", "parameters.bias", "output.0"),
    )
    conv = tensors(
        "convbn_l1_tensor_list", "Functional.conv2d.0.forward", *("input.0", "input.1", "input.2", "output.0")
    )
    with torch.no_grad():
        return bool(
            torch.equal(torch.nn.functional.linear(*linear[:3]), linear[3])
            # As the recorded model does: stride 1, padding 1.
            and torch.equal(torch.nn.functional.conv2d(*conv[:3], padding=1), conv[3])
        )


CHECKSUM = re.compile(r"[0-9a-f]{8}")

# Artefacts


def artefacts(stack: dict[str, Any], construct: dict[str, Any]) -> set[str]:
    """The view_as records that are the tool's own doing."""
    own: set[str] = set()
    of_the_user: set[str] = set()
    for names, frames in stack.values():
        made_by_hook = any(mark in frame for frame in frames for mark in ARTEFACT_FRAMES)
        (own if made_by_hook else of_the_user).update(name for name in names if VIEW_AS.match(name))
    if own and not of_the_user:
        # Names out of scope stand in construct.json but have no stack.
        own.update(name for name in construct if VIEW_AS.match(name))
    return own


def without_artefacts(dump: Dump) -> Dump:
    documents = dict(dump.documents)
    for name in list(documents):
        if not name.endswith("/stack.json"):
            continue
        folder = name.removesuffix("stack.json")
        stack = documents[name]
        construct = documents[folder + "construct.json"]
        own = artefacts(stack, construct)
        documents[name] = _stack_without(stack, own)
        documents[folder + "construct.json"] = _construct_without(construct, own)
        data = documents[folder + "dump.json"]
        kept = {record: value for record, value in data["data"].items() if record not in own}
        documents[folder + "dump.json"] = {**data, "data": kept}
    return Dump(dump.listing, documents, dump.tensors)


def _stack_without(stack: dict[str, Any], own: set[str]) -> dict[str, Any]:
    entries = [[[name for name in names if name not in own], frames] for names, frames in stack.values()]
    return {str(index): entry for index, entry in enumerate(entry for entry in entries if entry[0])}


def _construct_without(construct: dict[str, Any], own: set[str]) -> dict[str, Any]:
    return {name: parent for name, parent in construct.items() if name not in own}


# Comparison


def compare(expected: Dump, got: Dump) -> list[str]:
    """Every difference as `where: key: expected … got …`; empty when the dumps agree."""
    differences = _names("files", expected.listing, got.listing)
    for name in expected.documents:
        if name in got.documents:
            differences += compare_documents(name, expected.documents[name], got.documents[name])
    for name in expected.tensors:
        if name in got.tensors:
            differences += _tensors(name, expected.tensors[name], got.tensors[name])
    return differences


def compare_documents(name: str, expected: Any, got: Any) -> list[str]:
    kind = Path(name).name
    if kind == "stack.json":
        groups = [[names for names, _ in stack.values()] for stack in (expected, got)]
        return _names(name, list(expected), list(got)) + _values(name, *groups)
    if kind == "construct.json":
        return _mappings(name, expected, got)
    header = {key: value for key, value in expected.items() if key != "data"}
    differences = _names(name, list(expected), list(got))
    differences += _values(name, header, {key: value for key, value in got.items() if key != "data"})
    return differences + _mappings(name, expected["data"], got.get("data", {}))


def _mappings(name: str, expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """Records by name, and their order."""
    differences = _names(name, list(expected), list(got))
    for record, value in expected.items():
        if record in got:
            differences += _values(f"{name}: {record}", value, got[record])
    return differences


def _names(where: str, expected: list[str], got: list[str]) -> list[str]:
    if expected == got:
        return []
    missing = [f"{where}: {name}: expected but missing" for name in expected if name not in got]
    surplus = [f"{where}: {name}: got but not expected" for name in got if name not in expected]
    if missing or surplus:
        return missing + surplus
    for position, (left, right) in enumerate(zip(expected, got)):
        if left != right:
            return [f"{where}: order at {position}: expected {left} got {right}"]
    return [f"{where}: repeated names: expected {expected} got {got}"]


def _values(where: str, expected: Any, got: Any) -> list[str]:
    if type(expected) is not type(got):
        return [f"{where}: expected {expected!r} got {got!r}"]
    if isinstance(expected, dict):
        differences = _names(where, list(expected), list(got))
        for key, value in expected.items():
            if key not in got:
                continue
            if key == "md5" and "float" in str(expected.get("dtype")) and not gives_recorded_bits():
                is_checksum = isinstance(got[key], str) and CHECKSUM.fullmatch(got[key])
                differences += [] if is_checksum else [f"{where}: {key}: got {got[key]!r}"]
            elif key in STATISTICS and "dtype" in expected:
                differences += _statistic(f"{where}: {key}", key, expected, got)
            else:
                differences += _values(f"{where}: {key}", value, got[key])
        return differences
    if isinstance(expected, list):
        if len(expected) != len(got):
            return [f"{where}: expected {len(expected)} elements got {len(got)}"]
        return [
            difference
            for index, (left, right) in enumerate(zip(expected, got))
            for difference in _values(f"{where}: {index}", left, right)
        ]
    if expected == got or (expected != expected and got != got):
        return []
    return [f"{where}: expected {expected!r} got {got!r}"]


def _statistic(where: str, key: str, expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    left, right = expected[key], got[key]
    if type(left) is type(right) is float and math.isfinite(left) and math.isfinite(right):
        slack = RELATIVE * abs(left)
        if key == "Mean":
            reach = [abs(expected[end]) for end in ("Max", "Min") if isinstance(expected[end], (int, float))]
            slack = max(slack, MEAN_SLACK * max(reach, default=0.0))
        if abs(left - right) <= slack:
            return []
        return [f"{where}: expected {left!r} got {right!r}"]
    return _values(where, left, right)


def _tensors(name: str, expected: Any, got: Any) -> list[str]:
    if (expected.dtype, expected.shape) != (got.dtype, got.shape):
        return [f"{name}: expected {expected.dtype} {list(expected.shape)} got {got.dtype} {list(got.shape)}"]
    left, right = (tensor.contiguous().view(-1).view(torch.uint8) for tensor in (expected, got))
    if torch.equal(left, right):
        return []
    if expected.is_floating_point() and not gives_recorded_bits():
        size = expected.abs().max().item() if expected.numel() else 0.0
        if torch.allclose(expected, got, rtol=RELATIVE, atol=MEAN_SLACK * size, equal_nan=True):
            return []
    return [f"{name}: contents: expected {expected.tolist()} got {got.tolist()}"]


# Log

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+\) (?=\[)")


def log_lines(output: str) -> list[str]:
    """The lines of the tool without time and process; lines of others are left out.

    Two processes may write into one line.
    """
    lines = STAMP.sub("\n\\g<0>", output).split("\n")
    return [STAMP.sub("", line) for line in lines if STAMP.match(line)]
