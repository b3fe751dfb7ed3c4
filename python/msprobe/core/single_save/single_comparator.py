"""``SingleComparator``: the key data of two runs next to each other, one table per key."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Union

from msprobe import _native
from msprobe.core.common.file_check import check_input_directory, make_directory
from msprobe.core.common.log import logger
from msprobe.core.compare.acc_compare import into
from msprobe.core.tensor import describe

StrPath = Union[str, "os.PathLike[str]"]
# step, rank, micro_step, id, path
ArrayPath = tuple[int, int, int, int, str]

DATA_DIRECTORY = "data"
MAX_PROCESSES = 128


@dataclass
class CompareResult:
    """How far two arrays are apart."""

    max_abs_error: float
    max_relative_error: float
    same_percentage: float
    first_mismatch_index: int | None
    percentage_within_thousandth: float
    percentage_within_hundredth: float


class SingleComparator:
    """Compares what ``SingleSave`` saved in two runs."""

    result_header: ClassVar[list[str]] = list(_native.KEY_DATA_HEADERS)

    @classmethod
    def compare(
        cls,
        dir1: StrPath,
        dir2: StrPath,
        output_path: StrPath = "./msprobe_compare_output",
        num_processes: int = 8,
        *,
        tolerance: float | str | None = None,
        noise: StrPath | Sequence[StrPath] = (),
    ) -> None:
        """Compares the ``dump_path`` of two runs and writes a table per key, a summary and a verdict.

        ``num_processes`` is the number of threads, 1 to 128. The directories are only read. ``tolerance`` and
        ``noise``, dump paths of further runs of the second side, are those of ``msprobe rl compare``.
        """
        further = [noise] if isinstance(noise, (str, os.PathLike)) else noise
        data = [str(Path(run) / DATA_DIRECTORY) for run in (dir1, dir2, *further)]
        for directory in data:
            check_input_directory(directory, "give the dump_path, the directory that holds data/")
        _check_process_num(num_processes)
        if not Path(output_path).exists():
            make_directory(os.fspath(output_path))
        cls.compare_data(data[0], data[1], output_path, num_processes, tolerance=tolerance, noise=data[2:])

    @classmethod
    def compare_data(
        cls,
        dir1: StrPath,
        dir2: StrPath,
        output_dir: StrPath,
        num_processes: int = 8,
        *,
        tolerance: float | str | None = None,
        noise: Sequence[StrPath] = (),
    ) -> None:
        """The same for the ``data`` directories of the runs."""
        _check_process_num(num_processes)
        tolerated = None if tolerance is None else str(tolerance)
        print(
            _native.compare_key_data(
                dir1, dir2, output_dir, num_processes, tolerated, list(noise), into(logger)
            )
        )

    @classmethod
    def compare_arrays(cls, array1: Any, array2: Any) -> CompareResult:
        """Measures the leading block two arrays have in common.

        Arrays with another number of dimensions are flattened first. numpy arrays and PyTorch tensors in host
        memory will do.
        """
        return CompareResult(*_native.compare_key_arrays(describe(array1), describe(array2)))

    @classmethod
    def get_steps(cls, tag_path: StrPath) -> Iterator[tuple[int, str]]:
        """Number and path of each ``step*`` of a key."""
        yield from _native.key_data_level("step", tag_path)

    @classmethod
    def get_ranks(cls, step_path: StrPath) -> Iterator[tuple[int, str]]:
        """Number and path of each ``rank*`` of a step."""
        yield from _native.key_data_level("rank", step_path)

    @classmethod
    def get_micro_steps(cls, rank_path: StrPath) -> Iterator[tuple[int, str]]:
        """Number and path of each ``micro_step*`` of a rank; the rank itself is 0 if it has other files."""
        yield from _native.key_data_level("micro_step", rank_path)

    @classmethod
    def get_arrays(cls, micro_step_path: StrPath) -> Iterator[tuple[int, str]]:
        """Id and path of each array of a micro step."""
        yield from _native.key_data_level("array", micro_step_path)

    @classmethod
    def get_array_paths(cls, dir_path: StrPath) -> dict[str, list[ArrayPath]]:
        """The arrays of each key of a ``data`` directory, in order; none if there is no directory."""
        if not Path(dir_path).exists():
            return {}
        return _native.find_key_data(dir_path, into(logger))

    @classmethod
    def compare_single_tag(
        cls,
        tag: str,
        array_paths1: Mapping[str, Sequence[ArrayPath]],
        array_paths2: Mapping[str, Sequence[ArrayPath]],
        output_dir: StrPath,
    ) -> None:
        """Compares one key and writes its table. What cannot be compared or written is logged."""
        first, second = array_paths1.get(tag, []), array_paths2.get(tag, [])
        _native.compare_key(tag, first, second, Path(output_dir) / f"{tag}.xlsx", into(logger))


def _check_process_num(process_num: Any) -> None:
    if not isinstance(process_num, int) or isinstance(process_num, bool) or process_num <= 0:
        raise ValueError(f"process_num({process_num}) is not a positive integer")
    if process_num > MAX_PROCESSES:
        raise ValueError(
            f"The maximum supported process_num is {MAX_PROCESSES}, current value: {process_num}."
        )
