"""One operator of a MindSpore dump from its record to its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msprobe import _native
from msprobe.core.common.exceptions import ApiAccuracyCheckerException
from msprobe.core.common.log import logger
from msprobe.core.tensor import save_npy
from msprobe.mindspore.precheck.errors import missing
from msprobe.mindspore.precheck.sides import MindSporeSide, TorchSide, flat
from msprobe.mindspore.precheck.values import Array, make_value

Pair = tuple[list[Any], list[Any]]


class _Call(NamedTuple):
    kind: str
    name: str
    args: Any
    kwargs: Mapping[str, Any]


class Checker:
    """Checks operators of one dump. MindSpore runs only where the dump has no outputs to look at."""

    def __init__(self, plan: _native.PrecheckPlan, error_data: Path | None = None) -> None:
        self._plan = plan
        self._data_dir = plan.data_dir
        self._error_data = error_data
        self._torch = TorchSide()
        self._mindspore = MindSporeSide() if plan.data_dir is None else None

    def check(self, position: int) -> _native.PrecheckOutcome:
        """Runs the operator in that place. Only what ends the process gets out of here."""
        case = self._plan.case(position)
        forward: Pair | None = None
        backward: Pair | None = None
        forward_failure: str | None = None
        backward_failure: str | None = None
        if case.forward is not None:
            try:
                forward = self._forward(case) if case.skip is None else None
                forward_failure = case.skip
            except Exception as error:
                forward_failure = self._tell(case.full_name, "forward", error)
        if case.backward is not None:
            try:
                backward = self._backward(case) if case.skip is None else None
                backward_failure = case.skip if case.forward is None else None
            except Exception as error:
                backward_failure = self._tell(case.full_name, "backward", error)
        outcome = _native.precheck_compare_mindspore(
            case.full_name,
            self._leaves(forward),
            self._leaves(backward),
            forward_failure,
            backward_failure,
        )
        if self._error_data is not None and outcome.wants_data_saved:
            self._save(case, forward, backward)
        return outcome

    def _call(self, case: _native.PrecheckCase) -> _Call:
        if case.forward is None:
            raise missing("input is not a dict")
        if "." in case.name or not case.name:
            raise ApiAccuracyCheckerException(ApiAccuracyCheckerException.WrongValue)
        described = case.forward.get("input_args")
        if not isinstance(described, list):
            raise missing("input_args field in api_info.json is missing")
        args = make_value(described, self._data_dir)
        kwargs = {
            key: make_value(info, self._data_dir)
            for key, info in (case.forward.get("input_kwargs") or {}).items()
        }
        return _Call(case.kind, case.name, args, kwargs)

    def _forward(self, case: _native.PrecheckCase) -> Pair:
        assert case.forward is not None
        call = self._call(case)
        if self._mindspore is None:
            tested = self._recorded(case.forward)
        else:
            function = self._mindspore.function(call.kind, call.name)
            tested = [
                self._mindspore.array(leaf)
                for leaf in self._mindspore.forward(function, call.args, call.kwargs)
            ]
        bench = self._torch.forward(self._torch.function(call.kind, call.name), call.args, call.kwargs)
        return _without_none(bench), _without_none(tested)

    def _backward(self, case: _native.PrecheckCase) -> Pair:
        assert case.backward is not None
        call = self._call(case)
        gradients = make_value(case.backward.get("input") or [], self._data_dir)
        if self._mindspore is None:
            tested = self._recorded(case.backward)
        else:
            function = self._mindspore.function(call.kind, call.name)
            tested = [
                self._mindspore.array(leaf)
                for leaf in self._mindspore.backward(function, call.args, call.kwargs, gradients)
            ]
        bench = self._torch.backward(
            self._torch.function(call.kind, call.name), call.args, call.kwargs, gradients
        )
        return [leaf for leaf in bench if self._torch.is_float(leaf)], [
            leaf for leaf in tested if isinstance(leaf, Array) and "Float" in leaf.dtype
        ]

    def _recorded(self, entry: Mapping[str, Any]) -> list[Any]:
        """Outputs the dump has."""
        return flat(make_value(entry.get("output") or [], self._data_dir))

    def _leaves(self, pair: Pair | None) -> Pair | None:
        if pair is None:
            return None
        bench, tested = pair
        if len(bench) != len(tested):
            logger.warning(
                f"{len(bench)} outputs of PyTorch and {len(tested)} to be tested are paired by position"
            )
        return [self._torch.leaf(leaf) for leaf in bench], [self._torch.leaf(leaf) for leaf in tested]

    @staticmethod
    def _tell(full_name: str, direction: str, error: Exception) -> str:
        logger.error(f"{full_name} {direction}: {error}")
        return str(error)

    def _save(self, case: _native.PrecheckCase, forward: Pair | None, backward: Pair | None) -> None:
        assert self._error_data is not None
        self._error_data.mkdir(mode=0o750, parents=True, exist_ok=True)
        stem = case.full_name
        try:
            call = self._call(case)
        except Exception as error:
            logger.warning(f"inputs of {stem} are not saved: {error}")
            return
        self._write(f"{stem}.forward.input", flat(call.args))
        if forward is not None:
            self._write(f"{stem}.forward.output", forward[1])
        if backward is not None:
            self._write(f"{stem}.backward.output", backward[1])

    def _write(self, stem: str, leaves: Sequence[Any]) -> None:
        assert self._error_data is not None
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, Array):
                path = self._error_data / f"{stem}.{number}.npy"
                save_npy(path, leaf.elements)
                path.chmod(0o640)


def _without_none(leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if leaf is not None]
