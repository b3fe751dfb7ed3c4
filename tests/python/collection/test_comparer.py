"""The comparer sees what it must see: a recorded case equals itself, and every kind of change is told."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch

from tests.python.collection.golden import (
    GOLDEN,
    Dump,
    artefacts,
    compare,
    gives_recorded_bits,
    load,
    log_lines,
    without_artefacts,
)

CASES = sorted(path.name for path in GOLDEN.iterdir() if (path / "train.py").exists())
DUMP, CONSTRUCT, STACK = "step0/rank/dump.json", "step0/rank/construct.json", "step0/rank/stack.json"
LINEAR = "Module.fc1.Linear.forward.0"


@pytest.mark.parametrize("case", CASES)
def test_equals_itself(case: str) -> None:
    dump = load(GOLDEN / case / "dump")
    assert compare(dump, copy.deepcopy(dump)) == []
    assert compare(without_artefacts(dump), without_artefacts(dump)) == []


def swap(mapping: dict[str, Any], first: str, second: str) -> dict[str, Any]:
    turned = {first: second, second: first}
    return {turned.get(key, key): mapping[turned.get(key, key)] for key in mapping}


def changed_order(dump: Dump) -> None:
    document = dump.documents[DUMP]
    document["data"] = swap(document["data"], LINEAR, "Module.act.ReLU.forward.0")


def changed_keys(dump: Dump) -> None:
    data = dump.documents[DUMP]["data"]
    data[LINEAR] = swap(data[LINEAR], "output", "parameters")


def missing_record(dump: Dump) -> None:
    del dump.documents[DUMP]["data"][LINEAR]


def surplus_record(dump: Dump) -> None:
    dump.documents[DUMP]["data"]["Torch.relu.0.forward"] = {}


def scale(key: str, factor: float) -> Callable[[Dump], None]:
    def change(dump: Dump) -> None:
        dump.documents[DUMP]["data"][LINEAR]["output"][0][key] *= factor

    return change


def put(key: str, value: Any) -> Callable[[Dump], None]:
    def change(dump: Dump) -> None:
        dump.documents[DUMP]["data"][LINEAR]["output"][0][key] = value

    return change


def changed_header(dump: Dump) -> None:
    dump.documents[DUMP]["level"] = "L1"


def changed_recompute(dump: Dump) -> None:
    dump.documents[DUMP]["data"][LINEAR]["is_recompute"] = True


def shorter_list(dump: Dump) -> None:
    dump.documents[DUMP]["data"][LINEAR]["output"] = []


def changed_parent(dump: Dump) -> None:
    dump.documents[CONSTRUCT][LINEAR] = "Module.act.ReLU.forward.0"


def changed_construct_order(dump: Dump) -> None:
    dump.documents[CONSTRUCT] = swap(dump.documents[CONSTRUCT], LINEAR, "Module.act.ReLU.forward.0")


def changed_grouping(dump: Dump) -> None:
    stack = dump.documents[STACK]
    stack["0"][0].append(stack["1"][0].pop())


def missing_file(dump: Dump) -> None:
    dump.listing.pop()


def changed_tensor(dump: Dump) -> None:
    name = next(iter(dump.tensors))
    if gives_recorded_bits():
        dump.tensors[name] = torch.nextafter(dump.tensors[name], torch.tensor(9.0))
    else:
        dump.tensors[name] = dump.tensors[name] * 1.001


def changed_tensor_dtype(dump: Dump) -> None:
    name = next(iter(dump.tensors))
    dump.tensors[name] = dump.tensors[name].double()


CHANGES: dict[str, tuple[Callable[[Dump], None], str]] = {
    "order": (changed_order, f"order at 0: expected {LINEAR} got Module.act.ReLU.forward.0"),
    "key order": (changed_keys, f"{LINEAR}: order at 2: expected output got parameters"),
    "missing record": (missing_record, f"{LINEAR}: expected but missing"),
    "surplus record": (surplus_record, "Torch.relu.0.forward: got but not expected"),
    "maximum": (scale("Max", 1.0 + 2e-5), "Max: expected"),
    "mean": (scale("Mean", 1.0 + 2e-5), "Mean: expected"),
    "norm is infinite": (put("Norm", float("inf")), "Norm: expected 3.001668930053711 got inf"),
    "norm is an integer": (put("Norm", 3), "Norm: expected 3.001668930053711 got 3"),
    "null": (put("Min", None), "Min: expected -0.3240145444869995 got None"),
    "dtype": (put("dtype", "torch.float16"), "dtype: expected 'torch.float32' got 'torch.float16'"),
    "shape": (put("shape", [5, 4]), "shape: 0: expected 4 got 5"),
    "requires_grad": (put("requires_grad", False), "requires_grad: expected True got False"),
    "data_name": (put("data_name", "x.pt"), "data_name: expected"),
    "header": (changed_header, "level: expected 'L0' got 'L1'"),
    "is_recompute": (changed_recompute, "is_recompute: expected False got True"),
    "length": (shorter_list, "output: expected 1 elements got 0"),
    "parent": (changed_parent, f"{LINEAR}: expected None got 'Module.act.ReLU.forward.0'"),
    "construct order": (changed_construct_order, f"order at 0: expected {LINEAR}"),
    "stack grouping": (changed_grouping, "stack.json: 0: expected 3 elements got 4"),
    "file": (missing_file, "expected but missing"),
    "tensor": (changed_tensor, "contents: expected"),
    "tensor dtype": (changed_tensor_dtype, "expected torch.float32"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_sees(change: str) -> None:
    expected = load(GOLDEN / "mlp_l0_tensor" / "dump")
    got = copy.deepcopy(expected)
    mutate, told = CHANGES[change]
    mutate(got)
    assert any(told in difference for difference in compare(expected, got)), compare(expected, got)


def test_tolerates() -> None:
    expected = load(GOLDEN / "mlp_l0_tensor" / "dump")
    got = copy.deepcopy(expected)
    scale("Max", 1.0 + 5e-6)(got)
    gradient = got.documents[DUMP]["data"]["Module.fc2.Linear.parameters_grad"]["bias"][0]
    assert abs(gradient["Mean"]) < 1e-7 < gradient["Max"]
    gradient["Mean"] = 0.0
    assert compare(expected, got) == []


def test_special_numbers() -> None:
    expected = load(GOLDEN / "value_types_l1_statistics" / "dump")
    for value in (float("nan"), float("inf"), 1.0):
        got = copy.deepcopy(expected)
        got.documents[DUMP]["data"]["myops.probe.9.forward"]["input_args"][0]["Max"] = value
        assert (compare(expected, got) == []) == (value != value)


def test_artefacts() -> None:
    """All view_as of the recorded cases are the hooks', and leave every document."""
    for case in CASES:
        dump = load(GOLDEN / case / "dump")
        held = json_names(dump)
        kept = json_names(without_artefacts(dump))
        assert ("mix" in case) == any("view_as" in name for name in held)
        assert sorted(kept) == sorted(name for name in held if "view_as" not in name)


def json_names(dump: Dump) -> list[str]:
    names: list[str] = []
    for path, document in dump.documents.items():
        if path.endswith("stack.json"):
            names += [name for group, _ in document.values() for name in group]
        else:
            names += list(document.get("data", document))
    return names


def test_view_as_of_the_user_stays() -> None:
    stack = {
        "0": [
            ["Tensor.view_as.0.forward"],
            ["File <torch>/utils/hooks.py, line 1, in setup_input_hook, \n x"],
        ],
        "1": [["Tensor.view_as.1.forward"], ["File train.py, line 1, in forward, \n x.view_as(y)"]],
    }
    assert artefacts(stack, {"Tensor.view_as.2.forward": None}) == {"Tensor.view_as.0.forward"}


def test_log_lines() -> None:
    text = (
        "2026-01-02 03:04:05 (17) [INFO] one \n"
        "/site/x.py:1: UserWarning: two\n"
        "2026-01-02 03:04:05 (9) [rank 1] [INFO] 3"
    )
    assert log_lines(text) == ["[INFO] one ", "[rank 1] [INFO] 3"]
