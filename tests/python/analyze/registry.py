"""What a case of the corpus is: a few lines every rank runs, and the answer that is right for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol

LEVELS = ("L0", "L1", "mix")


class Run(Protocol):
    """What a case is given on its rank."""

    rank: int
    world: int

    def window(self, model: Any = None) -> AbstractContextManager[None]:
        """What runs inside is collected; ``model`` is the one whose modules are recorded."""


@dataclass(frozen=True)
class Born:
    """A place where something not finite comes from.

    The line that calls the operation is marked ``# born`` in the case, the call of the model ``# ran``.
    """

    rank: int
    # A regular expression for the whole name.
    operation: str
    values: tuple[str, ...] = ()
    kind: str = "produced"
    phase: str = "forward"
    parameter: str | None = None
    # Regular expressions, outermost first; none at level L1.
    modules: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The comment on the line of the case that its call stack must show."""
        return "ran" if self.operation.startswith("Module.") else "born"


@dataclass(frozen=True)
class Arrival:
    """A rank that got it from another one."""

    rank: int
    operation: str
    # None where nothing on the way was recorded.
    from_rank: int | None


@dataclass(frozen=True)
class Case:
    """A part of the corpus. ``births`` holds every independent origin by level, the earliest first."""

    name: str
    world: int
    run: Callable[[Run], None]
    births: Mapping[str, tuple[Born, ...]]
    arrivals: tuple[Arrival, ...] = ()
    # Regular expressions for operations that must be called harmless, by level.
    harmless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    task: str = "statistics"

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.births)


CASES: dict[str, Case] = {}


def case(world: int, births: Mapping[str, tuple[Born, ...]], **more: Any) -> Callable[[Any], Any]:
    """Adds a function to the corpus, under its own name."""

    def add(run: Callable[[Run], None]) -> Callable[[Run], None]:
        name = run.__name__
        assert name not in CASES
        assert set(births) <= set(LEVELS)
        CASES[name] = Case(name, world, run, births, **more)
        return run

    return add


def everywhere(*births: Born, levels: tuple[str, ...] = ("L1", "mix")) -> dict[str, tuple[Born, ...]]:
    """The same answer at several levels."""
    return dict.fromkeys(levels, births)
