"""One API of a dump from its record to its outcome."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import torch

from msprobe import _native
from msprobe.core.tensor import save_pt
from msprobe.pytorch.log import logger
from msprobe.pytorch.precheck import repeatable
from msprobe.pytorch.precheck.execute import Case, Executor, Ran, as_leaves
from msprobe.pytorch.precheck.tree import leaves, tensors

FILE_MODE = 0o640
_INSTALLED = ("site-packages/", "dist-packages/")
_HINT = "expected scalar type Long"


class Checker:
    """Checks APIs of one dump on one device."""

    def __init__(
        self,
        plan: _native.PrecheckPlan,
        device: torch.device,
        error_data: Path | None = None,
        is_strict: bool = False,
    ) -> None:
        self._plan = plan
        self._device = device
        self._error_data = error_data
        self._is_strict = is_strict
        self._executor = Executor(device, plan.data_dir, is_strict)

    def check(self, position: int) -> _native.PrecheckOutcome:
        """Runs the API in that place. Only what ends the process gets out of here."""
        case = self._plan.case(position)
        if case.skip is not None:
            return _native.precheck_skip(case.full_name, case.skip)
        if case.forward is None:
            return _native.precheck_skip(case.full_name, "The dump has no forward entry of this API.")
        begun = time.perf_counter()
        try:
            ran = self._run(case)
            notes = {
                "inputs": [_words(leaf) for leaf in leaves([*ran.inputs.args, *ran.inputs.kwargs.values()])],
                "seconds": time.perf_counter() - begun,
                **_place(case),
            }
            outcome = _native.precheck_compare(
                case.full_name,
                as_leaves(ran.bench) or [],
                as_leaves(ran.device) or [],
                as_leaves(ran.bench_gradients),
                as_leaves(ran.device_gradients),
                ran.backward_message,
                strict=self._is_strict,
                notes=notes,
            )
        except Exception as error:
            _tell(case.full_name, case.name, error)
            return _native.precheck_skip(case.full_name, str(error), notes=_place(case))
        if self._error_data is not None and outcome.wants_data_saved:
            save_error_data(self._error_data, case.full_name, ran, keywords_apart=self._is_strict)
        return outcome

    def _run(self, case: _native.PrecheckCase) -> Ran:
        assert case.forward is not None
        forward = case.forward
        if repeatable.draws_random_numbers(case.kind, case.name):
            raise ValueError(
                f"{case.name} gives random numbers, which are not the same on two devices. SKIP."
            )
        return self._executor.run(
            Case(
                case.full_name,
                case.kind,
                case.name,
                case.seed,
                forward,
                case.backward,
                case.backward_message,
            )
        )


def _tell(full_name: str, name: str, error: Exception) -> None:
    if _HINT in str(error):
        logger.warning(
            f"API {name} wants int64 where the dump has int32: {error}. It is skipped; int32 is converted "
            "for cross_entropy only."
        )
    else:
        logger.error(f"Run {full_name} UT Error: {error}")


def _place(case: _native.PrecheckCase) -> dict[str, str]:
    """The line that called it: the innermost that is not of an installed package."""
    own = (line for line in case.stack if not any(part in line for part in _INSTALLED))
    place = next(own, case.stack[0] if case.stack else None)
    return {} if place is None else {"place": place}


def _words(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{tuple(leaf.shape)}"
    return repr(leaf)[:80]


def save_error_data(directory: Path, full_name: str, ran: Ran, keywords_apart: bool) -> None:
    """Writes inputs, outputs and gradients as ``.pt``. Every leaf has a number, only tensors have files.

    Numbers of arguments by keyword begin at 0 as the others do, and so they take the place of these, unless
    they are to be kept apart.
    """
    directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    keywords = list(ran.inputs.kwargs.values())
    inputs = list(leaves(ran.inputs.args))
    _save(directory, f"{full_name}.forward.input", inputs)
    _save(directory, f"{full_name}.forward.input", keywords, len(inputs) if keywords_apart else 0)
    _save(directory, f"{full_name}.forward.output.bench", ran.bench)
    _save(directory, f"{full_name}.forward.output.device", ran.device)
    if ran.gradient is not None:
        _save(directory, f"{full_name}.backward.input", [ran.gradient])
        _save(directory, f"{full_name}.backward.output.bench", ran.bench_gradients or [])
        _save(directory, f"{full_name}.backward.output.device", ran.device_gradients or [])


def _save(directory: Path, stem: str, values: list[Any], first: int = 0) -> None:
    for number, leaf in enumerate(leaves(values), start=first):
        for tensor in tensors(leaf):
            path = directory / f"{stem}.{number}.pt"
            save_pt(path, tensor.detach())
            path.chmod(FILE_MODE)
