"""What a case is, what a comparison has to say about it, and the list of all cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import inject
from .inject import Injection

DIVERGED = ("diverged",)
AT_INPUT = ("differs_at_input",)
SAME_BITS = ("identical",)
ROUNDING = ("identical", "within_tolerance")

LEVELS = ("mix", "L0", "L1")
TASKS = ("statistics", "tensor", "md5")


@dataclass(frozen=True)
class Expected:
    """The verdict a case has to get.

    ``where`` is the path of the module in which the fault is, "" for the model itself, which has no record.
    ``api`` is the function in that module, as ``name`` or ``name:n`` for the n-th call there; ``also`` are
    others that may be named, for example one that was given its operands the wrong way round. A comparison
    may name the function or its immediate wrapper: the module it runs in, and where that is no more than
    the function, as ``Linear`` is, the module around it. Where a module is at fault, so may its own wrapper.
    """

    status: tuple[str, ...] = DIVERGED
    where: str | None = None
    api: str | None = None
    also: tuple[str, ...] = ()
    direction: str = "forward"
    step: int = 0
    rank: int | None = None
    # The module that shows the fault first where only statistics are known.
    in_statistics: str | None = None
    # A weight's gradient alone is wrong: the record of the module's parameter gradients may be named too.
    parameters_grad: bool = False


@dataclass(frozen=True)
class Case:
    """Two trainings: a good one, and one into which something is injected."""

    name: str
    model: str
    inject: Injection
    expected: Expected
    target_model: str | None = None
    train: bool = False
    steps: int = 1
    # The injection is there from this step on.
    faulty_from: int = 0
    threads: int = 1
    levels: tuple[str, ...] = LEVELS
    tasks: tuple[str, ...] = TASKS
    # The two sides differ in which calls there are, or in their order.
    is_reshaped: bool = False
    # Processes that train together, see ranks.py; the injection is in rank ``expected.rank`` only.
    world: int = 1
    golden_threads: int = 1

    @property
    def is_fault(self) -> bool:
        return self.expected.where is not None or self.expected.status == AT_INPUT

    @property
    def golden_key(self) -> str:
        """Cases with the same key share the good training."""
        parts = [
            self.model,
            "train" if self.train else "eval",
            f"{self.steps}steps",
            f"{self.golden_threads}threads",
        ]
        return "-".join(parts if self.world == 1 else [*parts, f"{self.world}ranks"])


def fault(
    name: str, model: str, injection: Injection, where: str, api: str | None = None, **more: Any
) -> Case:
    """A case whose culprit is ``api`` in ``where``; without one only modules show it, and L1 is left out."""
    wanted = {
        key: more.pop(key)
        for key in ("status", "also", "direction", "step", "rank", "parameters_grad", "in_statistics")
        if key in more
    }
    levels = more.pop("levels", LEVELS if api is not None else ("mix", "L0"))
    if where == "":
        levels = tuple(level for level in levels if level != "L0")
    return Case(name, model, injection, Expected(where=where, api=api, **wanted), levels=levels, **more)


def backward_fault(
    name: str, model: str, injection: Injection, where: str, api: str | None = None, **more: Any
) -> Case:
    return fault(name, model, injection, where, api, direction="backward", **more)


def clean(name: str, model: str, injection: Injection = inject.nothing, **more: Any) -> Case:
    """A pair that must not raise an alarm; ``tasks`` leaves md5 out where bits differ."""
    status = more.pop("status", SAME_BITS)
    more.setdefault("tasks", TASKS if status == SAME_BITS else ("statistics", "tensor"))
    return Case(name, model, injection, Expected(status=status), **more)


def all_cases() -> list[Case]:
    from . import cases_bert, cases_clean, cases_gpt2, cases_llama, cases_own, cases_ranks

    groups: list[Callable[[], list[Case]]] = [
        cases_bert.cases,
        cases_gpt2.cases,
        cases_llama.cases,
        cases_own.cases,
        cases_ranks.cases,
        cases_clean.cases,
    ]
    cases = [case for group in groups for case in group()]
    assert len({case.name for case in cases}) == len(cases)
    return cases
