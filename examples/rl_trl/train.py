"""GRPO with TRL on the CPU, with a tiny model made up here, watched by msprobe.

    python train.py --dump-path run_a
    python train.py --dump-path run_b --perturb 1:model.layers.1.mlp.down_proj:1e-3
    msprobe rl compare run_a run_b -o compared

What connects TRL and msprobe is in recipe.py; this is an ordinary training with TRL. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import random
import string
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml
from datasets import Dataset
from recipe import ProbedGRPOTrainer
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    PrinterCallback,
    TrainerCallback,
)
from transformers.utils.logging import disable_progress_bar
from trl import GRPOConfig

from msprobe.rl import RLProbe

CHARACTERS = string.digits + "+=" + string.ascii_lowercase
RESPONSE_TOKENS = 8


class Fault(TrainerCallback):  # type: ignore[misc]
    """Changes the first weight of a module of the reference model: ``STEP:MODULE:AMOUNT``."""

    def __init__(self, text: str) -> None:
        step, self._module, amount = text.split(":")
        self._step, self._amount = int(step), float(amount)
        self.reference: Any = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self._step:
            with torch.no_grad():
                self.reference.get_submodule(self._module).weight.view(-1)[0] += self._amount


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each character."""
    words = ["<pad>", "<eos>", *CHARACTERS]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, "<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )


def save_model(directory: Path, seed: int) -> None:
    """TRL makes the reference model from the files the actor came from, so there have to be files."""
    tokenizer = make_tokenizer()
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def make_dataset(seed: int) -> Dataset:
    numbers = random.Random(seed)
    pairs = [(numbers.randrange(20), numbers.randrange(20)) for _ in range(64)]
    return Dataset.from_list([{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in pairs])


def digits_reward(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """What share of a response is digits, and one more for the right answer."""
    texts = [completion.replace(" ", "") for completion in completions]
    digits = [sum(character.isdigit() for character in text) / RESPONSE_TOKENS for text in texts]
    return [share + float(text == right) for share, text, right in zip(digits, texts, answer)]


def grpo_config(output: Path, steps: int, seed: int, updates: int) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(output),
        max_steps=steps,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        num_generations=4,
        num_iterations=updates,
        max_completion_length=RESPONSE_TOKENS,
        learning_rate=3e-3,
        # There is a reference model only if this is not 0.
        beta=0.05,
        seed=seed,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("msprobe.yaml"))
    parser.add_argument("--dump-path", help="instead of dump_path of the file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="another key of the file"
    )
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=1, help="optimizer steps per rollout")
    parser.add_argument(
        "--perturb", type=Fault, metavar="STEP:MODULE:AMOUNT", help="a fault in the reference model"
    )
    options = parser.parse_args()
    probe_config = yaml.safe_load(options.config.read_text(encoding="utf-8"))["msprobe_config"]
    for setting in options.set:
        key, _, value = setting.partition("=")
        probe_config[key] = yaml.safe_load(value)
    if options.dump_path is not None:
        probe_config["dump_path"] = options.dump_path

    torch.set_num_threads(1)
    disable_progress_bar()
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model"
        save_model(model, options.seed)
        trainer = ProbedGRPOTrainer(
            probe=RLProbe(probe_config),
            model=str(model),
            reward_funcs=digits_reward,
            args=grpo_config(Path(directory) / "output", options.steps, options.seed, options.updates),
            train_dataset=make_dataset(options.seed),
        )
        trainer.remove_callback(PrinterCallback)
        if options.perturb is not None:
            options.perturb.reference = trainer.ref_model
            trainer.add_callback(options.perturb)
        trainer.train()
    for entry in trainer.state.log_history:
        if "reward" in entry and trainer.is_world_process_zero():
            reward, loss, kl = (entry[name] for name in ("reward", "loss", "kl"))
            print(f"step {entry['step'] - 1}: reward {reward:.4f}  loss {loss:+.6f}  kl {kl:.6f}")


if __name__ == "__main__":
    main()
