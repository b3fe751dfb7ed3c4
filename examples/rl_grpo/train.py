"""GRPO training of a tiny language model on the CPU, watched by msprobe.

    python train.py --dump-path run_a
    python train.py --dump-path run_b --perturb reference:1:model.layers.1.mlp.down_proj:1e-3
    msprobe rl compare run_a run_b -o compared

The model is made up here, with random weights, and learns to answer sums with digits. Nothing is downloaded.
All that concerns msprobe goes through ``RLProbe`` and the block ``msprobe_config`` of a YAML file; look for
``probe``. ``--perturb`` puts a fault into a run, so that there is something to find: see README.md.
"""

from __future__ import annotations

import argparse
import copy
import random
import string
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import yaml
from torch import Tensor, nn
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from msprobe.rl import RLProbe

PAD, EOS = 0, 1
CHARACTERS = string.digits + "+=" + string.ascii_lowercase
TOKEN_OF = {character: number for number, character in enumerate(CHARACTERS, start=2)}
VOCABULARY = len(CHARACTERS) + 2

PROMPTS_PER_STEP = 4
SAMPLES_PER_PROMPT = 4
MICRO_BATCHES = 2
# Each rollout is used for two updates; in the second one the policy is no longer the one that sampled.
UPDATES_PER_STEP = 2
RESPONSE_TOKENS = 8
LEARNING_RATE = 3e-3
CLIP = 0.2
KL_WEIGHT = 0.05


@dataclass(frozen=True)
class Perturbation:
    """A fault put into a run when a step begins: ``MODEL:STEP:MODULE:AMOUNT`` or ``sampling:STEP``."""

    target: str
    step: int
    module: str = ""
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Perturbation:
        target, step, *rest = text.split(":")
        if (target, len(rest)) == ("sampling", 0):
            return cls(target, int(step))
        if target in ("actor", "reference") and len(rest) == 2:
            return cls(target, int(step), rest[0], float(rest[1]))
        raise argparse.ArgumentTypeError(f"{text!r} is neither MODEL:STEP:MODULE:AMOUNT nor sampling:STEP")

    def apply(self, model: nn.Module) -> None:
        """Changes the first weight of the module, for good."""
        with torch.no_grad():
            model.get_submodule(self.module).weight.view(-1)[0] += self.amount


@dataclass(frozen=True)
class Options:
    """The command line; goes to every process."""

    probe_config: dict[str, Any]
    ranks: int
    steps: int
    seed: int
    perturb: Perturbation | None
    perturb_rank: int | None


@dataclass
class Rollout:
    """Prompts and sampled responses side by side: prompts padded on the left, responses on the right."""

    tokens: Tensor
    attention_mask: Tensor
    response_mask: Tensor
    rewards: Tensor
    advantages: Tensor

    def micro_batches(self) -> Iterator[Rollout]:
        parts = [value.chunk(MICRO_BATCHES) for value in vars(self).values()]
        for pieces in zip(*parts):
            yield Rollout(*pieces)


def make_model(seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        # Larger than usual, so that an untrained model has preferences.
        initializer_range=0.1,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=EOS,
    )
    return LlamaForCausalLM(config)


def make_sums(seed: int, step: int, rank: int) -> list[tuple[str, str]]:
    """The questions of a step and their answers. Every rank has its own."""
    numbers = random.Random(f"{seed} {step} {rank}")
    pairs = [(numbers.randrange(20), numbers.randrange(20)) for _ in range(PROMPTS_PER_STEP)]
    return [(f"{a}+{b}=", str(a + b)) for a, b in pairs]


def reward_of(response: str, answer: str) -> float:
    """What share of the response is digits, and one more for the right answer."""
    digits = sum(character.isdigit() for character in response)
    return digits / RESPONSE_TOKENS + float(response == answer)


def make_rollout(actor: nn.Module, sums: Sequence[tuple[str, str]], probe: RLProbe) -> Rollout:
    """Samples some responses to each question and rewards those that are better than the others."""
    repeated = [one for one in sums for _ in range(SAMPLES_PER_PROMPT)]
    prompts = [torch.tensor([TOKEN_OF[character] for character in question]) for question, _ in repeated]
    padded = nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_value=PAD, padding_side="left")
    sampling = GenerationConfig(
        do_sample=True, top_k=0, max_new_tokens=RESPONSE_TOKENS, pad_token_id=PAD, eos_token_id=EOS
    )
    with torch.no_grad(), probe.phase("actor_generate_sequences", actor):
        tokens = actor.generate(padded, attention_mask=(padded != PAD).long(), generation_config=sampling)

    sampled = tokens[:, padded.shape[1] :]
    # A response ends with its first EOS.
    response_mask = ((sampled == EOS).cumsum(1) - (sampled == EOS).long() == 0).long()
    responses = [row[: int(mask.sum())] for row, mask in zip(sampled, response_mask)]
    probe.save({"prompts": prompts, "responses": responses})

    texts = ["".join(CHARACTERS[token - 2] for token in row.tolist() if token > EOS) for row in responses]
    rewards = torch.tensor([reward_of(text, answer) for text, (_, answer) in zip(texts, repeated)])
    groups = rewards.view(-1, SAMPLES_PER_PROMPT)
    advantages = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)
    return Rollout(
        tokens=tokens,
        attention_mask=torch.cat([(padded != PAD).long(), response_mask], dim=1),
        response_mask=response_mask,
        rewards=rewards,
        advantages=advantages.view(-1, 1) * response_mask,
    )


def log_prob_of(model: nn.Module, batch: Rollout) -> Tensor:
    """The log probability of every token of the responses."""
    length = batch.response_mask.shape[1]
    positions = (batch.attention_mask.cumsum(1) - 1).clamp(min=0)
    output = model(batch.tokens, attention_mask=batch.attention_mask, position_ids=positions, use_cache=False)
    # What is said at a place is about the next one.
    log_probs = output.logits[:, -length - 1 : -1].log_softmax(dim=-1)
    chosen = log_probs.gather(2, batch.tokens[:, -length:, None]).squeeze(2)
    return chosen * batch.response_mask


def mean_of_tokens(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum() / mask.sum()


def train_step(
    actor: nn.Module, reference: nn.Module, optimizer: torch.optim.Optimizer, batch: Rollout, probe: RLProbe
) -> tuple[float, float]:
    """Updates the actor with a rollout; the loss and the divergence from the reference, both means."""
    batches = list(batch.micro_batches())
    with torch.no_grad(), probe.phase("reference_compute_log_prob", reference):
        ref_log_probs = [log_prob_of(reference, one) for one in batches]
    with torch.no_grad(), probe.phase("actor_compute_log_prob", actor):
        old_log_probs = [log_prob_of(actor, one) for one in batches]

    losses, kl_losses = [], []
    with probe.phase("actor_update", actor):
        for _ in range(UPDATES_PER_STEP):
            optimizer.zero_grad()
            for one, old_log_prob, ref_log_prob in zip(batches, old_log_probs, ref_log_probs):
                log_prob = log_prob_of(actor, one)
                ratio = (log_prob - old_log_prob).exp()
                gain = torch.min(ratio * one.advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * one.advantages)
                # An estimate of the divergence that is never negative and has little variance.
                distance = ref_log_prob - log_prob
                kl_loss = mean_of_tokens(distance.exp() - distance - 1, one.response_mask)
                loss = KL_WEIGHT * kl_loss - mean_of_tokens(gain, one.response_mask)
                (loss / MICRO_BATCHES).backward()
                probe.save(
                    {
                        "old_log_prob": old_log_prob,
                        "ref_log_prob": ref_log_prob,
                        "advantages": one.advantages,
                        "log_prob": log_prob,
                        "kl_loss": kl_loss,
                        "loss": loss,
                    }
                )
                losses.append(float(loss.detach()))
                kl_losses.append(float(kl_loss.detach()))
            average_gradients(actor)
            optimizer.step()
    return sum(losses) / len(losses), sum(kl_losses) / len(kl_losses)


def average_gradients(model: nn.Module) -> None:
    if dist.is_initialized():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


def train(rank: int, options: Options) -> None:
    probe = RLProbe(options.probe_config)
    actor = make_model(options.seed)
    reference = copy.deepcopy(actor).requires_grad_(False)
    optimizer = torch.optim.AdamW(actor.parameters(), lr=LEARNING_RATE)
    probe.save_config(
        {
            "actor": {"model": actor.config.to_dict(), "learning_rate": LEARNING_RATE},
            "ref": {"model": reference.config.to_dict()},
            "reward": {"rule": reward_of.__doc__},
            "rl": {"clip": CLIP, "kl_weight": KL_WEIGHT, "ranks": options.ranks, "seed": options.seed},
            "generate": {"samples_per_prompt": SAMPLES_PER_PROMPT, "response_tokens": RESPONSE_TOKENS},
        }
    )
    fault = options.perturb if options.perturb_rank in (None, rank) else None
    for step in range(options.steps):
        sampling_seed = options.seed + 1000 * step + rank
        if fault is not None and fault.step == step:
            if fault.target == "sampling":
                sampling_seed += 500
            else:
                fault.apply(actor if fault.target == "actor" else reference)
        torch.manual_seed(sampling_seed)
        batch = make_rollout(actor, make_sums(options.seed, step, rank), probe)
        loss, kl = train_step(actor, reference, optimizer, batch, probe)
        probe.step()
        if rank == 0:
            reward = float(batch.rewards.mean())
            print(f"step {step}: reward {reward:.4f}  loss {loss:+.6f}  kl {kl:.6f}", flush=True)


def run(rank: int, options: Options, meeting_point: str) -> None:
    """One process. Results depend on the number of threads, and models this small are faster with one."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if options.ranks > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=options.ranks
        )
    train(rank, options)
    if options.ranks > 1:
        dist.destroy_process_group()


def read_options() -> Options:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("msprobe.yaml"))
    parser.add_argument("--dump-path", help="instead of dump_path of the file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="another key of msprobe_config"
    )
    parser.add_argument("--ranks", type=int, default=1, help="processes, each with its own prompts")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--perturb",
        type=Perturbation.parse,
        metavar="FAULT",
        help="from STEP on: {actor,reference}:STEP:MODULE:AMOUNT (one weight is changed), or sampling:STEP",
    )
    parser.add_argument("--perturb-rank", type=int, help="only in this process")
    arguments = parser.parse_args()
    probe_config = yaml.safe_load(arguments.config.read_text(encoding="utf-8"))["msprobe_config"]
    for setting in arguments.set:
        key, _, value = setting.partition("=")
        probe_config[key] = yaml.safe_load(value)
    if arguments.dump_path is not None:
        probe_config["dump_path"] = arguments.dump_path
    return Options(
        probe_config=probe_config,
        ranks=arguments.ranks,
        steps=arguments.steps,
        seed=arguments.seed,
        perturb=arguments.perturb,
        perturb_rank=arguments.perturb_rank,
    )


def main() -> None:
    options = read_options()
    if options.ranks == 1:
        run(0, options, "")
        return
    with tempfile.TemporaryDirectory() as directory:
        mp.spawn(run, args=(options, f"{directory}/meeting_point"), nprocs=options.ranks)


if __name__ == "__main__":
    main()
