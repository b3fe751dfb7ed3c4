"""Collection in reinforcement learning, for any framework that can make five calls.

::

    from msprobe.rl import RLProbe

    probe = RLProbe("train.yaml")                       # its msprobe_config block says what to collect
    probe.save_config({"actor": {...}, "rl": {...}})    # once, in the process that has the configuration

    for batch in data:
        with probe.phase("actor_generate_sequences", actor):
            responses = rollout(batch)
        probe.save({"prompts": prompts, "responses": responses})
        with probe.phase("reference_compute_log_prob", reference):
            ...
        with probe.phase("actor_update", actor):
            ...
            probe.save({"log_prob": log_prob, "loss": loss})
        probe.step()

Two runs collected like this are compared by their key data first, then by the layers of the model that the
key data points to. With ``msprobe: false`` the calls stay where they are and cost nothing: no other part of
this package is imported.
"""

from msprobe.rl.config import Settings
from msprobe.rl.probe import KEYS, PHASES, RLProbe

__all__ = ["KEYS", "PHASES", "RLProbe", "Settings"]
