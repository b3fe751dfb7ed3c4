"""RLProbe with real models and real files: a tiny transformers model, alone and in training's wrappers."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs

LOOP = """\
import copy, gc, json, sys, weakref
import torch
import torch.distributed as dist
from tests.python.compare.faults.models import hugging_face
from msprobe.rl import RLProbe

kind = sys.argv[1]
# Made before the group: every file has to be in the place of its rank all the same.
probe = RLProbe("train.yaml")
if kind != "plain":
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=0, world_size=1)


def llama():
    transformers = hugging_face()
    torch.manual_seed(7)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=31, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=None, pad_token_id=0,
    ))


def wrapped(model):
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
    return model


def log_prob(model, ids):
    logits = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return logits.gather(2, ids[:, 1:, None]).squeeze(2)


probe.save_config({"actor": {"dtype": torch.float32, "layers": 2}, "rl": {"reward": log_prob}})
plain = llama()
actor, reference = wrapped(plain), llama()
optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
prompts = torch.randint(3, 31, (4, 5), generator=torch.Generator().manual_seed(1))
for step in range(3):
    if step == 2:
        # A new reference model: the actor as it is now, hooks and all.
        reference = copy.deepcopy(plain) if kind == "plain" else llama()
    with probe.phase("actor_generate_sequences", actor):
        if kind != "fsdp":
            ids = plain.generate(prompts, max_new_tokens=4, do_sample=False)
        else:
            ids = torch.cat([prompts, prompts], 1)
    probe.save({"prompts": list(prompts), "responses": list(ids[:, 5:])})
    log_prob(actor, ids)  # in no phase
    with probe.phase("reference_compute_log_prob", [reference]), torch.no_grad():
        ref = log_prob(reference, ids)
        log_prob(actor, ids)  # another model in this phase
    with probe.phase("actor_compute_log_prob", actor), torch.no_grad():
        old = log_prob(actor, ids)
    with probe.phase("actor_update", actor):
        for micro in range(4):
            new = log_prob(actor, ids[micro:micro + 1])
            kl = (ref[micro] - new[0]).mean()
            loss = -(new[0] - old[micro]).exp().mean() + 0.1 * kl
            probe.save({"log_prob": new, "loss": loss, "kl_loss": kl})
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    probe.step()

alive = weakref.ref(reference)
del reference
gc.collect()
print("RESULT " + json.dumps({"reference is alive": alive() is not None}), flush=True)
"""

CONFIG = """\
msprobe_config:
  msprobe: true
  dump-path: ./dump
  key-data-dump: true
  configurations_dump: true
  actor_infer_dump: true
  actor_train_dump: true
  reference_dump: true
  step_start: 1
  step_end: 2
  token_range_end: 1
"""
KINDS = ("plain", "ddp", "fsdp")
JSON_FILES = ("construct.json", "dump.json", "stack.json")
TRAINED = ("actor_compute_log_prob", "actor_update", "reference_compute_log_prob")


def run(folder: Path, kind: str) -> runs.Result:
    folder.mkdir()
    (folder / "train.yaml").write_text(CONFIG)
    (folder / "train.py").write_text(LOOP)
    return runs.run(folder, "train.py", kind, str(folder / "store"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("models")
    return runs.run_all({kind: functools.partial(run, root / kind, kind) for kind in KINDS})


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str, ran: dict[str, runs.Result]) -> None:
    result = ran[kind].ok()
    assert [line for line in result.log if "[ERROR]" in line or "[WARNING]" in line] == []
    root = result.folder / "dump"
    rank = "rank" if kind == "plain" else "rank0"
    layers = {
        f"{phase}/step{step}/{rank}/{file}"
        for phase in (*TRAINED, "actor_generate_sequences")
        for step in (1, 2)
        for file in JSON_FILES
    }
    data = set()
    for step in range(3):
        for key in ("prompts", "responses"):
            place = f"data/{key}/step{step}/rank0/micro_step0"
            data |= {f"{place}/{key}.json", *(f"{place}/{key}.{index}.npy" for index in range(4))}
        for key in ("log_prob", "loss", "kl_loss"):
            for micro in range(4):
                place = f"data/{key}/step{step}/rank0/micro_step{micro}"
                data |= {f"{place}/{key}.json", f"{place}/{key}.npy"}
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert found == {"configurations.json", *layers, *data}


@pytest.mark.parametrize("kind", KINDS)
def test_configurations(kind: str, ran: dict[str, runs.Result]) -> None:
    config = json.loads((ran[kind].ok().folder / "dump/configurations.json").read_text())
    reward = config["rl"].pop("reward")
    assert reward.startswith("<function log_prob at ")
    assert config == {"actor": {"dtype": "torch.float32", "layers": 2}, "rl": {}}


def records(result: runs.Result, kind: str, phase: str, step: int) -> dict[str, Any]:
    return result.ok().data(step, None if kind == "plain" else 0, f"dump/{phase}")


def numbers(data: dict[str, Any], module: str, direction: str) -> list[int]:
    """Of the calls of one module."""
    name = re.compile(rf"Module\.(?:\S*\.)?{re.escape(module)}\.{direction}\.(\d+)")
    return [int(found[1]) for found in map(name.fullmatch, data) if found]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_call_numbers_begin_at_0_in_each_phase(kind: str, step: int, ran: dict[str, runs.Result]) -> None:
    result = ran[kind]
    for module in ("layers.0.mlp.up_proj.Linear", "lm_head.Linear"):
        data = records(result, kind, "actor_compute_log_prob", step)
        assert (numbers(data, module, "forward"), numbers(data, module, "backward")) == ([0], [])
        # A list of models has its places in the names. The actor is called here too, under its own names.
        both = records(result, kind, "reference_compute_log_prob", step)
        reference = {name: value for name, value in both.items() if name.startswith("Module.0.")}
        actor = {name: value for name, value in both.items() if name not in reference}
        assert numbers(reference, module, "forward") == numbers(actor, module, "forward") == [0]
        data = records(result, kind, "actor_update", step)
        assert numbers(data, module, "forward") == [0, 1, 2, 3]
        assert numbers(data, module, "backward") == [0, 1, 2, 3]
        generated = records(result, kind, "actor_generate_sequences", step)
        assert numbers(generated, module, "forward") == ([] if kind == "fsdp" else [0, 1])
        assert numbers(generated, module, "backward") == []


@pytest.mark.parametrize("kind", ["plain", "ddp"])
def test_generated_tokens_are_one_call_each(kind: str, ran: dict[str, runs.Result]) -> None:
    data = records(ran[kind], kind, "actor_generate_sequences", 1)
    shapes = [
        value["output"][0]["shape"][:2]
        for name, value in data.items()
        if re.search(r"embed_tokens\.Embedding\.forward", name)
    ]
    # The prompt, then a token at a time.
    assert shapes == [[4, 5], [4, 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_parameters(kind: str, ran: dict[str, runs.Result]) -> None:
    data = records(ran[kind], kind, "actor_update", 1)
    gradients = [name for name in data if name.endswith("lm_head.Linear.parameters_grad")]
    assert len(gradients) == 1
    assert list(data[gradients[0]]) == ["weight"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_kept_alive(kind: str, ran: dict[str, runs.Result]) -> None:
    assert ran[kind].ok().printed() == {"reference is alive": False}
