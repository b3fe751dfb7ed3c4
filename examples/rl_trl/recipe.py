"""``trl.GRPOTrainer`` that saves key data and collects layers through msprobe's ``RLProbe``.

    from recipe import ProbedGRPOTrainer
    trainer = ProbedGRPOTrainer(model=..., reward_funcs=..., args=..., probe=RLProbe("msprobe.yaml"))

It only looks on: every method calls the one of TRL and hands back what that returned. Those whose names begin
with an underscore are TRL's own affair and may have other names one day. Then the keys taken from them are
missing, and training is what it was.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback
from trl import GRPOTrainer

from msprobe.rl import RLProbe


class ProbedGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """A ``GRPOTrainer`` with one argument more. An optimizer step of TRL is a step of the probe."""

    def __init__(self, *args: Any, probe: RLProbe, **kwargs: Any) -> None:
        self.probe = probe
        self._updating = False
        self._in_loss = False
        self._log_prob: Tensor | None = None
        super().__init__(*args, **kwargs)
        self.add_callback(_EndOfStep(self))
        if self.accelerator.is_main_process:
            probe.save_config({"actor": self._bare(self.model).config.to_dict(), "rl": self.args.to_dict()})

    @property
    def _watching(self) -> bool:
        """Evaluation is no part of an iteration."""
        return self.probe.enabled and self.model.training

    def _bare(self, model: Any) -> Any:
        """Without the wrappers of distributed training, so that modules have the same names everywhere."""
        return self.accelerator.unwrap_model(model)

    # ---- rollout

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        if not self._watching:
            return super()._generate_and_score_completions(inputs)
        # Only if a rollout does not last until the end of an optimizer step.
        self._end_update()
        output = super()._generate_and_score_completions(inputs)
        self.probe.save(
            {
                "prompts": _sequences(output["prompt_ids"], output["prompt_mask"]),
                "responses": _sequences(output["completion_ids"], output["completion_mask"]),
            }
        )
        return output

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        with self._phase("actor_generate_sequences", self.model):
            return super()._generate(*args, **kwargs)

    def _get_per_token_logps_and_entropies(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """Where TRL computes log probabilities: of the reference, of the actor before and in an update."""
        if self._in_loss:
            result = super()._get_per_token_logps_and_entropies(model, *args, **kwargs)
            self._log_prob = result[0]
            return result
        is_reference = model is getattr(self, "ref_model", None)
        with self._phase("reference_compute_log_prob" if is_reference else "actor_compute_log_prob", model):
            return super()._get_per_token_logps_and_entropies(model, *args, **kwargs)

    def _phase(self, name: str, model: Any) -> AbstractContextManager[None]:
        return self.probe.phase(name, self._bare(model)) if self._watching else nullcontext()

    # ---- update

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._watching:
            return super().compute_loss(model, inputs, *args, **kwargs)
        if not self._updating:
            # Lasts until the optimizer has stepped: all micro batches are one phase.
            self._updating = True
            self.probe.begin("actor_update", self._bare(model))
        self._in_loss, self._log_prob = True, None
        try:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        finally:
            self._in_loss = False
        self.probe.save(key_data(inputs, self._log_prob, loss))
        self._log_prob = None
        return loss

    def _end_update(self) -> None:
        if self._updating:
            self._updating = False
            self.probe.end()


class _EndOfStep(TrainerCallback):  # type: ignore[misc]
    """After the optimizer has stepped."""

    def __init__(self, trainer: ProbedGRPOTrainer) -> None:
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._trainer._end_update()
        self._trainer.probe.step()


def key_data(inputs: dict[str, Any], log_prob: Tensor | None, loss: Tensor) -> dict[str, Tensor]:
    """What TRL has of a micro batch, under the names comparison knows.

    Without ``beta`` there is no reference. TRL has ``old_log_prob`` only if a rollout is used for more than
    one update, or comes from vLLM; otherwise it would be ``log_prob`` again.
    """
    old, ref, advantages = (
        inputs.get(name) for name in ("old_per_token_logps", "ref_per_token_logps", "advantages")
    )
    found: dict[str, Tensor | None] = {"old_log_prob": old, "ref_log_prob": ref}
    if advantages is not None:
        # One value per sample, for all of its tokens.
        found["advantages"] = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
    found["log_prob"] = log_prob
    if ref is not None and log_prob is not None:
        found["kl_loss"] = _kl(log_prob.detach(), ref, inputs["completion_mask"])
    found["loss"] = loss
    return {name: value for name, value in found.items() if value is not None and value.numel() > 0}


def _kl(log_prob: Tensor, ref_log_prob: Tensor, mask: Tensor) -> Tensor:
    """The mean over tokens of the divergence that the loss has as a term; TRL keeps it to itself."""
    distance = ref_log_prob - log_prob
    per_token = torch.exp(distance) - distance - 1
    return (per_token * mask).sum() / mask.sum().clamp(min=1)


def _sequences(tokens: Tensor, mask: Tensor) -> list[Tensor]:
    """Rows without padding. One that is masked as a whole, as truncated responses may be, stays as it is."""
    return [row[keep.bool()] if keep.any() else row for row, keep in zip(tokens, mask)]
