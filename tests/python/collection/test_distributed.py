"""Two gloo ranks: results do not change, and every collective is recorded with what it left behind."""

from __future__ import annotations

import functools
import json
import zlib
from typing import Any

import pytest
import torch

from tests.python.collection import runs
from tests.python.collection.scripts.collectives import COLLECTIVES, own

RANKS = (0, 1)
GROUP = f"{zlib.crc32(b'[0, 1]'):08x}"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("distributed")
    jobs = {
        mode: functools.partial(runs.run_worker, root / mode, "collectives", mode, str(runs.free_port()))
        for mode in ("absent", "mix")
    }
    return runs.run_all(jobs)


def told(pairs: dict[str, runs.Result], mode: str, rank: int) -> Any:
    return json.loads((pairs[mode].ok().folder / f"result{rank}.json").read_text())


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collective_result(name: str, rank: int, pairs: dict[str, runs.Result]) -> None:
    without, collected = (told(pairs, mode, rank)["collectives"] for mode in ("absent", "mix"))
    assert collected[name] == without[name]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("kind", ["ddp", "fsdp", "dtensor"])
def test_training_result(kind: str, rank: int, pairs: dict[str, runs.Result]) -> None:
    assert told(pairs, "mix", rank)[kind] == told(pairs, "absent", rank)[kind]


def record(pairs: dict[str, runs.Result], rank: int, name: str) -> dict[str, Any]:
    found: dict[str, Any] = pairs["mix"].data(0, rank)[f"Distributed.{name}.forward"]
    return found


def means(values: Any) -> Any:
    """Tensors by their mean, so that a record can be told from another."""
    if isinstance(values, list):
        return [means(value) for value in values]
    return values["Mean"] if isinstance(values, dict) and "Mean" in values else values


def mean(*tensors: Any) -> list[Any]:
    return [pytest.approx(tensor.double().mean().item(), rel=1e-5) for tensor in tensors]


@pytest.mark.parametrize("rank", RANKS)
def test_output_is_the_arguments_after_the_call(rank: int, pairs: dict[str, runs.Result]) -> None:
    mine, others = own(rank, 3), own(1 - rank, 3)
    both = [own(0, 3), own(1, 3)]
    total = both[0] + both[1]

    def inputs(name: str) -> Any:
        return means(record(pairs, rank, name)["input_args"])

    def outputs(name: str) -> Any:
        return means(record(pairs, rank, name)["output"])

    assert inputs("all_reduce.0") == mean(mine)
    assert outputs("all_reduce.0")[:1] == mean(torch.maximum(*both))
    assert inputs("broadcast.0") == mean(mine)
    assert outputs("broadcast.0")[:1] == mean(both[1])
    assert inputs("all_gather.0") == [[0.0, 0.0], *mean(mine)]
    assert outputs("all_gather.0") == [mean(*both), *mean(mine)]
    assert outputs("all_gather_into_tensor.0")[:1] == mean(torch.cat(both))
    assert outputs("_all_gather_base.0")[:1] == mean(torch.cat(both))
    assert outputs("reduce_scatter.0")[0] == mean(total)[0]
    half = (own(0, 6) + own(1, 6))[3 * rank : 3 * rank + 3]
    assert outputs("reduce_scatter_tensor.0")[:1] == mean(half)
    assert outputs("_reduce_scatter_base.0")[:1] == mean(half)
    mixed = torch.cat([own(other, 6)[3 * rank : 3 * rank + 3] for other in RANKS])
    assert outputs("all_to_all_single.0")[:1] == mean(mixed)
    assert outputs("all_to_all.0")[0] == mean(*(own(other + 9 * rank, 3) for other in RANKS))
    assert outputs("scatter.0")[:1] == mean(mine)
    if rank == 0:
        assert outputs("reduce.0")[:1] == mean(total)
        assert outputs("gather.0")[1] == mean(*both)
        assert outputs("send.0")[:1] == mean(mine)
    else:
        assert outputs("recv.0")[:1] == mean(others)


@pytest.mark.parametrize("rank", RANKS)
def test_asynchronous_output_is_that_of_wait(rank: int, pairs: dict[str, runs.Result]) -> None:
    others = own(1 - rank, 3)
    total = own(0, 3) + own(1, 3)
    waited = record(pairs, rank, "all_reduce.1")
    assert list(waited) == ["input_args", "input_kwargs", "is_recompute", "output"]
    assert means(waited["input_args"]) == mean(own(rank, 3))
    assert means(waited["output"])[:1] == mean(total)
    assert means(record(pairs, rank, "irecv.0")["input_args"])[:1] == [0.0]
    assert means(record(pairs, rank, "irecv.0")["output"])[:1] == mean(others)
    assert means(record(pairs, rank, "isend.0")["output"])[:1] == mean(own(rank, 3))
    assert "output" not in record(pairs, rank, "all_reduce.2")


@pytest.mark.parametrize("rank", RANKS)
def test_point_to_point_batch(rank: int, pairs: dict[str, runs.Result]) -> None:
    batch = record(pairs, rank, "batch_isend_irecv.0")
    given, returned = batch["input_args"][0], batch["output"][0]
    assert [op["op"] for op in given] == ["isend", "irecv"]
    for op in given:
        assert list(op) == ["class_type", "tensor", "op", "peer", "tag", "group_id"]
        assert (op["class_type"], op["peer"], op["tag"]) == ("torch.distributed.P2POp", 1 - rank, 0)
        assert op["group_id"] == GROUP
    assert [op["tensor"]["Mean"] for op in given] == [*mean(own(rank, 3)), 0.0]
    assert [op["tensor"]["Mean"] for op in returned] == mean(own(rank, 3), own(1 - rank, 3))
    # The two transfers are part of the batch.
    assert "Distributed.isend.1.forward" not in pairs["mix"].data(0, rank)


@pytest.mark.parametrize("rank", RANKS)
def test_orders(rank: int, pairs: dict[str, runs.Result]) -> None:
    """dump.json goes by the time of the input, construct.json by that of the output."""
    pair = ["Distributed.all_reduce.1.forward", "Torch.neg.1.forward"]
    data, construct = list(pairs["mix"].data(0, rank)), list(pairs["mix"].document("construct.json", 0, rank))
    assert [name for name in data if name in pair] == pair
    assert [name for name in construct if name in pair] == pair[::-1]


@pytest.mark.parametrize("rank", RANKS)
def test_reduce_op(rank: int, pairs: dict[str, runs.Result]) -> None:
    assert record(pairs, rank, "all_reduce.0")["input_kwargs"]["op"] == {
        "type": "torch.distributed.ReduceOp",
        "value": "RedOpType.MAX",
    }


@pytest.mark.parametrize("rank", RANKS)
def test_ddp_records(rank: int, pairs: dict[str, runs.Result]) -> None:
    data = pairs["mix"].data(1, rank)
    modules = [name for name in data if name.startswith("Module.") and "forward" in name]
    assert modules == [
        "Module.module.0.Linear.forward.0",
        "Module.module.1.ReLU.forward.0",
        "Module.module.2.Linear.forward.0",
        "Module.module.Sequential.forward.0",
    ]
    for name in modules:
        assert name.replace("forward", "backward") in data
    gradient = data["Module.module.0.Linear.parameters_grad"]
    assert [gradient[key][0]["shape"] for key in ("weight", "bias")] == [[8, 4], [8]]


def dtensors(value: Any) -> list[dict[str, Any]]:
    """Every DTensor encoded anywhere below."""
    if isinstance(value, list):
        return [found for item in value for found in dtensors(item)]
    if isinstance(value, dict):
        own_type = [value] if value.get("type") == "torch.distributed.tensor.DTensor" else []
        return own_type + [found for item in value.values() for found in dtensors(item)]
    return []


@pytest.mark.parametrize("rank", RANKS)
def test_fsdp_records(rank: int, pairs: dict[str, runs.Result]) -> None:
    result = pairs["mix"]
    assert not list(result.folder.rglob("dump_error_info.log"))
    data = result.data(3, rank)
    names = [name for name in data if name.startswith("Module.")]
    # fully_shard makes a Linear an FSDPLinear; either name tells which module it is.
    names = [name.replace("FSDP", "") for name in names]
    for module in ("Module.0.Linear", "Module.1.ReLU", "Module.2.Linear"):
        assert f"{module}.forward.0" in names
        assert f"{module}.backward.0" in names
    # The optimizer works on shards.
    construct = result.document("construct.json", 3, rank)
    stepped = [name for name in data if construct.get(name) == "optimizer"]
    shards = dtensors([data[name]["input_args"] for name in stepped])
    assert [4, 4] in [shard["shape"] for shard in shards]  # half of [8, 4]
    assert all(shard["placements"] == [{"Shard": {"dim": 0}}] for shard in shards)


@pytest.mark.parametrize("rank", RANKS)
def test_dtensor(rank: int, pairs: dict[str, runs.Result]) -> None:
    data = pairs["mix"].data(5, rank)
    whole = torch.arange(8.0).reshape(4, 2)
    expected = [
        (whole[2 * rank : 2 * rank + 2], {"Shard": {"dim": 0}}),
        (whole, {"Replicate": {}}),
        (whole + rank, {"Partial": {"reduce_op": "sum"}}),
    ]
    for index, (local, placement) in enumerate(expected):
        value = data[f"Torch.neg.{index}.forward"]["input_args"][0]
        assert value["type"] == "torch.distributed.tensor.DTensor"
        assert value["dtype"] == "torch.float32"
        assert value["shape"] == list(local.shape)
        assert [value["Max"], value["Min"]] == [local.max().item(), local.min().item()]
        assert value["device_mesh"] == [0, 1]
        assert value["placements"] == [placement]
