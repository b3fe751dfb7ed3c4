"""Every public function of ``SingleComparator``, its arguments and its errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe.core.common.exceptions import FileCheckException
from msprobe.core.single_save.single_comparator import CompareResult, SingleComparator

from .key_tables import GOLDEN, differences, read_csv, read_workbook

HEADER = [
    "step",
    "rank",
    "micro_step",
    "id",
    "shape1",
    "shape2",
    "相同元素百分比(%)",
    "首个不匹配元素索引",
    "最大绝对误差",
    "最大相对误差",
    "误差在千分之一内元素占比(%)",
    "误差在百分之一内元素占比(%)",
]


def save(root: Path, place: str, array: Any) -> Path:
    path = root / "data" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(array))
    return path


def two_runs(root: Path) -> tuple[Path, Path]:
    for side, offset in (("a", 0.0), ("b", 0.5)):
        for index in (0, 2, 10):
            values = np.array([1.0, index + offset], np.float32)
            save(root / side, f"k/step0/rank0/micro_step0/k.{index}.npy", values)
    return root / "a", root / "b"


def test_header() -> None:
    assert SingleComparator.result_header == HEADER


def test_arrays() -> None:
    result = SingleComparator.compare_arrays(np.array([1.0, 2.0, 4.0]), np.array([[1.0, 2.0], [5.0, 0.0]]))
    assert result == CompareResult(1.0, 0.2, 2 / 3 * 100, 2, 2 / 3 * 100, 2 / 3 * 100)
    result = SingleComparator.compare_arrays(np.array([np.nan]), np.array([np.nan]))
    assert math.isnan(result.max_abs_error)
    assert (result.same_percentage, result.first_mismatch_index) == (0.0, 0)
    same: Any = np.arange(6, dtype=">i4").reshape(2, 3)[:, ::-1]
    assert SingleComparator.compare_arrays(same, same) == CompareResult(0.0, 0.0, 100.0, None, 100.0, 100.0)


def test_arrays_numpy_cannot_compare() -> None:
    with pytest.raises(TypeError, match="numpy boolean subtract"):
        SingleComparator.compare_arrays(np.array([True]), np.array([True]))
    with pytest.raises(ValueError, match="zero-size array"):
        SingleComparator.compare_arrays(np.zeros((0, 3)), np.zeros(3))
    with pytest.raises(TypeError):
        SingleComparator.compare_arrays([1.0], [1.0])


def test_levels(tmp_path: Path) -> None:
    first, _ = two_runs(tmp_path)
    key = first / "data" / "k"
    save(first, "k/step10/rank3/k.npy", [1.0])
    save(first, "k/step10/rank3/k_4.npy", [1.0])
    assert list(SingleComparator.get_steps(str(key))) == [(0, str(key / "step0")), (10, str(key / "step10"))]
    rank = key / "step10" / "rank3"
    assert list(SingleComparator.get_ranks(key / "step10")) == [(3, str(rank))]
    assert list(SingleComparator.get_micro_steps(rank)) == [(0, str(rank))]
    micro = key / "step0" / "rank0" / "micro_step0"
    assert list(SingleComparator.get_micro_steps(micro.parent)) == [(0, str(micro))]
    assert list(SingleComparator.get_arrays(rank)) == [(0, str(rank / "k.npy")), (4, str(rank / "k_4.npy"))]
    assert [number for number, _ in SingleComparator.get_arrays(micro)] == [0, 2, 10]
    paths = SingleComparator.get_array_paths(str(first / "data"))
    assert paths["k"][0] == (0, 0, 0, 0, str(micro / "k.0.npy"))
    assert [entry[:4] for entry in paths["k"]] == [
        (0, 0, 0, 0),
        (0, 0, 0, 2),
        (0, 0, 0, 10),
        (10, 3, 0, 0),
        (10, 3, 0, 4),
    ]
    assert SingleComparator.get_array_paths(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("k/stepX/rank0/k.npy", "parse step number error"),
        ("k/step0/rankX/k.npy", "parse rank number error"),
        ("k/step0/rank0/micro_stepX/k.npy", "parse nicro_step number error"),
    ],
)
def test_names_without_a_number(tmp_path: Path, place: str, message: str) -> None:
    first, second = two_runs(tmp_path)
    save(second, place, [1.0])
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        SingleComparator.compare(first, second, tmp_path / "out")
    with pytest.raises(RuntimeError, match=f"^{message}$"):
        SingleComparator.get_array_paths(second / "data")


def test_one_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = GOLDEN / "native_dtypes"
    paths = [SingleComparator.get_array_paths(case / side / "data") for side in ("dump_a", "dump_b")]
    for key in ("u8", "c128", "bool"):
        SingleComparator.compare_single_tag(key, paths[0], paths[1], str(tmp_path))
        recorded = read_csv(case / "compare" / f"{key}.csv")
        assert not differences(read_workbook(tmp_path / f"{key}.xlsx")[1], recorded)
    assert "bool.npy: numpy boolean subtract" in capsys.readouterr().out
    SingleComparator.compare_single_tag("nobody", paths[0], paths[1], tmp_path)
    assert read_workbook(tmp_path / "nobody.xlsx") == (["Sheet1"], [HEADER])
    SingleComparator.compare_single_tag("u8", paths[0], paths[1], tmp_path / "missing")
    assert "[ERROR] Error processing tag u8: " in capsys.readouterr().out


def test_data_directories(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    output = tmp_path / "out"
    output.mkdir()
    (output / "other.txt").write_text("stays")
    for _ in range(2):
        SingleComparator.compare_data(first / "data", second / "data", output)
    rows = read_workbook(output / "k.xlsx")[1]
    assert [row[:4] for row in rows[1:]] == [[0, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 10]]
    assert rows[1][4:] == ["[2]", "[2]", 50, 1, 0.5, 1, 50, 50]
    assert (output / "other.txt").read_text() == "stays"
    assert (output / "k.xlsx").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "8", None])
def test_numbers_of_processes_that_are_none(tmp_path: Path, number: Any) -> None:
    first, second = two_runs(tmp_path)
    with pytest.raises(ValueError, match=r"^process_num\(.*\) is not a positive integer$"):
        SingleComparator.compare(first, second, tmp_path / "out", number)
    assert not (tmp_path / "out").exists()


def test_too_many_processes(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    message = "^The maximum supported process_num is 128, current value: 129.$"
    with pytest.raises(ValueError, match=message):
        SingleComparator.compare(first, second, tmp_path / "out", num_processes=129)
    SingleComparator.compare(first, second, tmp_path / "out", num_processes=128)


def test_directories_that_cannot_be_compared(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)

    def code_of(run: Path) -> int:
        with pytest.raises(FileCheckException) as caught:
            SingleComparator.compare(first, run, tmp_path / "out")
        assert "dump_path" in str(caught.value)
        return int(caught.value.code)

    assert code_of(tmp_path / "none") == FileCheckException.ILLEGAL_PATH_ERROR
    link = tmp_path / "link"
    link.mkdir()
    (link / "data").symlink_to(second / "data")
    assert code_of(link) == FileCheckException.SOFT_LINK_ERROR
    file = tmp_path / "file"
    file.mkdir()
    (file / "data").write_text("")
    assert code_of(file) == FileCheckException.INVALID_FILE_ERROR
    odd = tmp_path / "odd name"
    second.rename(odd)
    assert code_of(odd) == FileCheckException.ILLEGAL_PATH_ERROR


def test_runs_that_may_only_be_read(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    directories = [path for run in (first, second) for path in (run, *run.rglob("*")) if path.is_dir()]
    for directory in directories:
        directory.chmod(0o555)
    try:
        SingleComparator.compare(first, second, tmp_path / "new" / "out")
    finally:
        for directory in directories:
            directory.chmod(0o755)
    assert len(read_workbook(tmp_path / "new" / "out" / "k.xlsx")[1]) == 4
