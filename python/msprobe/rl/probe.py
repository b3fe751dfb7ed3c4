"""``RLProbe``: what an RL framework calls, and nothing of msprobe besides.

Only this file knows how key data, configurations and layers are collected. It imports that when the master
switch is on, and never before.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msprobe.rl.config import Settings, Source

_SWITCHES = {
    "actor_generate_sequences": "actor_infer_dump",
    "actor_compute_log_prob": "actor_train_dump",
    "reference_compute_log_prob": "reference_dump",
    "critic_compute_values": "critic_train_dump",
    "actor_update": "actor_train_dump",
    "critic_update": "critic_train_dump",
}
_GENERATE = "actor_generate_sequences"

PHASES = tuple(_SWITCHES)
"""The phases of an iteration whose layers can be collected, in the order in which they run."""

KEYS = (
    "prompts",
    "responses",
    "values",
    "old_log_prob",
    "ref_log_prob",
    "advantages",
    "log_prob",
    "kl_loss",
    "loss",
)
"""The names of key data that comparison knows, in the order in which data flows. Others are welcome."""


class RLProbe:
    """Collects what two RL runs are compared by. A process needs one, and can ask it everything.

    ``config`` is the ``msprobe_config`` block as a mapping, a mapping that has it under that name, or the
    path of a YAML file with either. ``None`` means all defaults, and so nothing is collected. What is wrong
    with a block is a ``ValueError`` here, before training begins.

    Every method may be called whatever is switched on; what is not costs next to nothing.
    """

    def __init__(self, config: Source = None) -> None:
        self.settings = Settings.load(config)
        """What the block says."""
        self.enabled = self.settings.msprobe
        """Whether anything is collected: the master switch, unless msprobe could not be imported."""
        self._saver_class: Any = None
        self._saver: Any = None
        self._debugger: Any = None
        self._collected: frozenset[str] = frozenset()
        self._hooked: weakref.WeakSet[Any] = weakref.WeakSet()
        self._open: _Phase | None = None
        if self.enabled:
            self._set_up()
        if not self.enabled and type(self) is RLProbe:
            self.__class__ = _Off

    # ---- what a framework calls

    def phase(self, phase: str, model: Any = None) -> _Phase:
        """``with probe.phase("actor_update", actor): ...`` collects the layers of ``model`` in the block.

        ``phase`` is one of `PHASES`; ``model`` is a module or a list of modules, and may be ``None`` where
        the phase is not collected. The phase ends with the block, also when the block raises. Put it around
        all micro batches of an iteration: a phase that begins again in the same iteration replaces what it
        had collected.
        """
        return _Phase(self, phase, model)

    def begin(self, phase: str, model: Any = None) -> None:
        """Begins a phase where ``with`` does not fit; ``end`` ends it.

        A phase that is still open is ended first, with a warning.
        """
        self.phase(phase, model).__enter__()

    def end(self) -> None:
        """Ends the phase that is open; without one there is a warning."""
        if self._open is not None:
            self._close()
        elif self.enabled:
            _warn("RLProbe.end() is ignored: no phase is open")

    def save(self, data: Mapping[str, Any]) -> None:
        """Saves key data (``key_data_dump``): tensors, or lists of tensors, by name.

        The names in `KEYS` are put in the order of data flow when two runs are compared. Saving a name again
        in the same iteration makes its next micro step.
        """
        if self.enabled and self.settings.key_data_dump:
            self._made_saver().save(dict(data) if isinstance(data, Mapping) else data)

    def save_config(self, config: Any) -> None:
        """Writes ``configurations.json`` (``configurations_dump``), usually a dict of dicts.

        What JSON cannot express is written as its text.
        """
        if self.enabled and self.settings.configurations_dump:
            from msprobe.rl.plain import plain

            self._made_saver().save_config(plain(config))

    def step(self) -> None:
        """Ends an iteration. To be called once in each, collected or not: steps are counted here."""
        if not self.enabled:
            return
        if self._open is not None:
            _warn(f"RLProbe.step() ends the phase {self._open.name}, which is still open")
            self._close()
        self._made_saver().step()
        if self._debugger is not None:
            self._debugger.step()

    # ---- set-up

    def _set_up(self) -> None:
        settings = self.settings
        self._saver_class = _imported("msprobe.core", "SingleSave", "nothing is collected")
        if self._saver_class is None:
            self.enabled = False
            return
        collected = [phase for phase, switch in _SWITCHES.items() if getattr(settings, switch)]
        if not collected:
            return
        debugger = _imported("msprobe.pytorch", "PrecisionDebugger", "no layers are collected")
        if debugger is None:
            return
        self._debugger = debugger(
            task="statistics",
            level="L0",
            step=[f"{settings.step_start}-{settings.step_end}"],
            dump_path=settings.dump_path,
        )
        self._collected = frozenset(collected)

    def _made_saver(self) -> Any:
        # It asks for the rank when it is made, and many frameworks read their configuration before they join
        # a group.
        if self._saver is None:
            self._saver = self._saver_class(self.settings.dump_path)
        return self._saver

    # ---- phases

    def _enter(self, phase: _Phase, model: Any) -> None:
        if not self.enabled:
            return
        if self._open is not None:
            _warn(f"RLProbe begins the phase {phase.name} and ends {self._open.name}, which is still open")
            self._close()
        if phase.name in self._collected:
            self._start(phase.name, model)
        self._open = phase

    def _start(self, phase: str, model: Any) -> None:
        debugger, settings = self._debugger, self.settings
        service = debugger.service
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        is_new = model is None or not all(item in self._hooked for item in models)
        # Hooks count calls outside of phases too, and how many there were may differ from run to run.
        service.reset_status()
        service.first_start = is_new
        service.config.dump_path = f"{settings.dump_path.rstrip('/')}/{phase}"
        if phase == _GENERATE:
            debugger.start(model=model, token_range=[settings.token_range_start, settings.token_range_end])
        else:
            debugger.start(model=model)
        if not service.first_start:
            # A start outside of the steps to collect hooks nothing.
            self._hooked.update(models)

    def _close(self) -> None:
        phase, self._open = self._open, None
        if phase is None or phase.name not in self._collected:
            return
        debugger = self._debugger
        debugger.stop()
        debugger.service.reset_status()
        # It would keep the model of the last start alive.
        debugger.model = None


class _Phase:
    """A phase of a probe, for ``with``."""

    __slots__ = ("_model", "_probe", "name")

    def __init__(self, probe: RLProbe, name: str, model: Any) -> None:
        if name not in _SWITCHES:
            raise ValueError(f"unknown phase {name!r}; it must be one of {', '.join(PHASES)}")
        self.name = name
        self._probe = probe
        self._model = model

    def __enter__(self) -> None:
        model, self._model = self._model, None
        self._probe._enter(self, model)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Another phase, or the end of the iteration, may have ended it already, and said so.
        if self._probe._open is self:
            self._probe._close()


class _Nothing:
    """A phase of which nothing is collected."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_NOTHING: Any = _Nothing()


class _Off(RLProbe):
    """A probe that is switched off: nothing is checked, nothing is noted."""

    def phase(self, phase: str, model: Any = None) -> _Phase:
        nothing: _Phase = _NOTHING
        return nothing

    def begin(self, phase: str, model: Any = None) -> None:
        pass

    def end(self) -> None:
        pass

    def save(self, data: Mapping[str, Any]) -> None:
        pass

    def save_config(self, config: Any) -> None:
        pass

    def step(self) -> None:
        pass


def _imported(module: str, name: str, consequence: str) -> Any:
    """A name of a module, or ``None`` and a printed line where the import fails: training goes on."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, OSError, AttributeError) as error:
        text = " ".join(str(error).split())
        print(f"[msprobe] cannot import {name} from {module}, so {consequence}: {text}", flush=True)
        return None


def _warn(message: str) -> None:
    from msprobe.core.common.log import logger

    logger.warning(message)
