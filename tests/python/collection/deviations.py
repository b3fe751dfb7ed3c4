"""Where a recorded case is not what we write: one row per record, with what differs and why.

A row changes the recorded document into the expected one. It must change something, and only the record it
names, so a row that no longer holds shows as a difference of that record.
"""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass
from typing import Any, Callable

from tests.python.collection.golden import GOLDEN

BEFORE = "module inputs are measured before the call, so an in-place module shows what it was given"
KEPT = "in-place modules and modules whose output is modified in place keep their backward record"
NODE = "no identity node around modules: the node of an in-place API is the one it has at level L1"
PARENT = "with the backward of every module seen, the parent is the module the API belongs to"
SCOPE_END = "both ends belong to a scope"
META = "that a tensor has no elements is told apart from elements that were not measured"
EXACT = "statistics are not rounded through the tensor's dtype or float32"

Records = dict[str, Any]


@dataclass(frozen=True)
class Deviation:
    case: str
    file: str
    record: str
    what: str
    why: str
    change: Callable[[Records], Records]

    def apply(self, document: Records) -> Records:
        """The expected document. Records are the document itself, or its `data`."""
        document = copy.deepcopy(document)
        if "data" in document:
            return {**document, "data": self.change(document["data"])}
        return self.change(document)


def recorded(case: str, step: int, record: str, *path: Any) -> Any:
    """A value another recorded case has for the same computation."""
    value = json.loads((GOLDEN / case / f"dump/step{step}/rank/dump.json").read_text())["data"][record]
    for key in path:
        value = value[key]
    return value


def named(value: Any, data_name: str | None) -> Any:
    return {**value, "data_name": data_name} if data_name else value


def insert_after(anchor: str, record: str, value: Any) -> Callable[[Records], Records]:
    def change(records: Records) -> Records:
        assert anchor in records, f"{anchor} is not in the recorded case"
        assert record not in records, f"{record} is in the recorded case"
        result: Records = {}
        for name, old in records.items():
            result[name] = old
            if name == anchor:
                result[record] = value
        return result

    return change


def put(record: str, *path: Any, value: Any) -> Callable[[Records], Records]:
    """Replace (or append) the value at the path inside the record."""

    def change(records: Records) -> Records:
        if not path:
            assert record in records, f"{record} is not in the recorded case"
            return {**records, record: value}
        target = records[record]
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
        return records

    return change


def _mlp_modules(case: str, step: int, anchor_act: str, *, saved: bool) -> list[Deviation]:
    """The module records of the MLP that in-place operations used to spoil."""
    file = f"step{step}/rank/dump.json"
    l1 = "mlp_l1_statistics"

    def tensor(record: str, *path: Any, name: str) -> Any:
        return named(recorded(l1, step, record, *path), name if saved else None)

    def backward(module: str, given: Any, returned: list[Any]) -> Records:
        return {"input": [given], "output": returned}

    fc2, act, fc1 = (
        "Module.fc2.Linear.backward.0",
        "Module.act.ReLU.backward.0",
        "Module.fc1.Linear.backward.0",
    )
    relu = "Functional.relu.0.backward"
    fc2_record = backward(
        fc2,
        tensor("Tensor.__iadd__.0.backward", "output", 0, name=f"{fc2}.input.0.pt"),
        [tensor("Functional.linear.1.backward", "output", 1, name=f"{fc2}.output.0.pt")],
    )
    act_record = backward(
        act,
        tensor(relu, "input", 0, name=f"{act}.input.0.pt"),
        [tensor(relu, "output", 0, name=f"{act}.output.0.pt")],
    )
    fc1_record = backward(fc1, tensor(relu, "output", 0, name=f"{fc1}.input.0.pt"), [])
    entered = "Module.act.ReLU.forward.0"
    given = tensor("Functional.linear.0.forward", "output", 0, name=f"{entered}.input.0.pt")
    before_fc2 = "Module.fc2.Linear.parameters_grad" if saved else "Functional.linear.1.backward"
    return [
        Deviation(case, file, entered, "input", BEFORE, put(entered, "input_args", 0, value=given)),
        Deviation(case, file, fc2, "exists", KEPT, insert_after(before_fc2, fc2, fc2_record)),
        Deviation(case, file, act, "exists", KEPT, insert_after(anchor_act, act, act_record)),
        Deviation(case, file, fc1, "exists", KEPT, insert_after(act, fc1, fc1_record)),
    ]


def _mlp_mix(step: int) -> list[Deviation]:
    case, file, construct = (
        "mlp_mix_statistics",
        f"step{step}/rank/dump.json",
        f"step{step}/rank/construct.json",
    )
    iadd, relu = "Tensor.__iadd__.0.backward", "Functional.relu.0.backward"
    linear0, linear1 = "Functional.linear.0.backward", "Functional.linear.1.backward"
    fc2, act, fc1 = (
        "Module.fc2.Linear.backward.0",
        "Module.act.ReLU.backward.0",
        "Module.fc1.Linear.backward.0",
    )
    rows = [
        Deviation(
            case, file, record, "output", NODE,
            put(record, "output", value=recorded("mlp_l1_statistics", step, record, "output")),
        )
        for record in (iadd, relu)
    ]  # fmt: skip
    rows += _mlp_modules(case, step, relu, saved=False)
    rows += [
        Deviation(case, construct, linear1, "parent", PARENT, put(linear1, value=fc2)),
        Deviation(case, construct, fc2, "exists", KEPT, insert_after(linear1, fc2, None)),
        Deviation(case, construct, fc1, "exists", KEPT, insert_after(act, fc1, None)),
        Deviation(case, construct, linear0, "parent", PARENT, put(linear0, value=None)),
    ]
    return rows


def _mlp_l0() -> list[Deviation]:
    case, construct = "mlp_l0_tensor", "step0/rank/construct.json"
    fc2, drop = "Module.fc2.Linear.backward.0", "Module.drop.Dropout.backward.0"
    act, fc1 = "Module.act.ReLU.backward.0", "Module.fc1.Linear.backward.0"
    return [
        *_mlp_modules(case, 0, drop, saved=True),
        Deviation(
            case, construct, fc2, "exists", KEPT, insert_after("Module.fc2.Linear.forward.0", fc2, None)
        ),
        Deviation(case, construct, act, "exists", KEPT, insert_after(drop, act, None)),
        Deviation(case, construct, fc1, "exists", KEPT, insert_after(act, fc1, None)),
    ]


def _value_types() -> list[Deviation]:
    case, file, record = "value_types_l1_statistics", "step0/rank/dump.json", "myops.probe.8.forward"
    big = 2.0**60
    rows = [
        (2, "Norm", math.sqrt(5.0)),  # bfloat16 [1, 2]
        (3, "Mean", 32752.5),  # float16 [1, 65504]
        (4, "Max", 1e300),  # float64 [1e300, 1]
        (4, "Mean", 5e299),
        (4, "Norm", 1e300),
    ]
    assert big == 1.152921504606847e18  # int64 [2**60, 1]: float32 happens to be exact, no row
    meta = "myops.probe.10.forward"
    return [
        *(
            Deviation(
                case,
                file,
                record,
                f"{key} of argument {index}",
                EXACT,
                put(record, "input_args", index, key, value=value),
            )
            for index, key, value in rows
        ),
        Deviation(case, file, meta, "layout", META, put(meta, "input_args", 0, "layout", value="meta")),
    ]


def _scope_mix() -> list[Deviation]:
    record = "Functional.softmax.0.forward"
    output = recorded("transformer_mix_statistics", 0, record, "output")
    return [
        Deviation(
            "scope_mix",
            "step0/rank/dump.json",
            record,
            "output",
            SCOPE_END,
            put(record, "output", value=output),
        )
    ]


# What is added to a line of the log, which keeps its words.
LOG_ADDITIONS = {
    "msprobe is collecting data on Torch.exp.0.forward. Overflow detected.": " Its input was finite.",
    **{
        f"msprobe is collecting data on {name}.0.forward. Overflow detected.": (
            " Its input was already not finite, so look for an earlier call."
        )
        for name in ("Torch.add", "Tensor.sum")
    },
}

DEVIATIONS: list[Deviation] = [*_mlp_mix(0), *_mlp_mix(1), *_mlp_l0(), *_scope_mix(), *_value_types()]


@dataclass(frozen=True)
class TensorDeviation:
    """A tensor file that is not among the recorded ones (`same_as` none), or has the contents of another."""

    case: str
    file: str
    same_as: str | None
    why: str


_SAVED = "step0/rank/dump_tensor_data/"

TENSOR_DEVIATIONS = [
    TensorDeviation(
        "mlp_l0_tensor",
        _SAVED + "Module.act.ReLU.forward.0.input.0.pt",
        _SAVED + "Module.fc1.Linear.forward.0.output.0.pt",
        BEFORE,
    ),
    TensorDeviation("mlp_l0_tensor", _SAVED + "Module.fc2.Linear.backward.0.input.0.pt", None, KEPT),
    TensorDeviation(
        "mlp_l0_tensor",
        _SAVED + "Module.fc2.Linear.backward.0.output.0.pt",
        _SAVED + "Module.drop.Dropout.backward.0.input.0.pt",
        KEPT,
    ),
    TensorDeviation(
        "mlp_l0_tensor",
        _SAVED + "Module.act.ReLU.backward.0.input.0.pt",
        _SAVED + "Module.drop.Dropout.backward.0.output.0.pt",
        KEPT,
    ),
    TensorDeviation("mlp_l0_tensor", _SAVED + "Module.act.ReLU.backward.0.output.0.pt", None, KEPT),
    TensorDeviation("mlp_l0_tensor", _SAVED + "Module.fc1.Linear.backward.0.input.0.pt", None, KEPT),
]
