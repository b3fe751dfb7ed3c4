"""The Python functions of comparison: every parameter, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
import stat
from pathlib import Path
from typing import Any, Callable

import pytest

from msprobe.core.common.exceptions import CodedException
from msprobe.core.common.utils import CompareException
from msprobe.mindspore.compare.distributed_compare import ms_compare_distributed, ms_graph_compare
from msprobe.mindspore.compare.ms_compare import ms_compare
from msprobe.pytorch import compare, compare_distributed
from msprobe.pytorch.compare.pt_compare import pt_compare
from tests.python.compare.golden_cases import STAMP
from tests.python.compare.tables import Table, read_xlsx

FAILED = "Compare failed. Please check the arguments and do it again!"
NO_PATH = "Please check the json path is valid and ensure that neither npu_path nor bench_path is None."
ILLEGAL_PATH = 3

Function = Callable[..., None]


def tensor(value: float, **more: Any) -> dict[str, Any]:
    """A tensor of one dump, all of whose figures are the value."""
    figures = dict.fromkeys(("Max", "Min", "Mean", "Norm"), value)
    return (
        {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "requires_grad": False}
        | figures
        | more
    )


def write_dump(folder: Path, outputs: dict[str, float], task: str = "statistics", **more: Any) -> str:
    """A dump of calls with the same input each and these outputs; returns the path of its dump.json."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        f"{name}.forward": {
            "input_args": [tensor(1.0)],
            "input_kwargs": {},
            "output": [tensor(value, **more)],
        }
        for name, value in outputs.items()
    }
    text = json.dumps(
        {"task": task, "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    )
    (folder / "dump.json").write_text(text)
    return str(folder / "dump.json")


def write_stack(folder: Path, name: str = "stack.json") -> str:
    (folder / name).write_text(json.dumps({"0": [["Torch.a.0.forward"], ["File train.py, line 7, in step"]]}))
    return str(folder / name)


@pytest.fixture
def dumps(tmp_path: Path) -> dict[str, Any]:
    """The first argument of a comparison of two dumps that differ in one output."""
    return {
        "npu_json_path": write_dump(tmp_path / "npu", {"Torch.a.0": 1.0, "Torch.b.0": 2.0}),
        "bench_json_path": write_dump(tmp_path / "bench", {"Torch.a.0": 1.0, "Torch.b.0": 1.0}),
    }


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


def written(output: Path) -> dict[str, Path]:
    return {STAMP.sub("", path.name): path for path in output.iterdir()} if output.exists() else {}


def table(output: Path, name: str = "compare_result.xlsx") -> Table:
    return read_xlsx(written(output)[name])[0]


def verdict(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "verdict.json").read_text())
    return found


def logged(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Lines of the log without time and process; others as they are."""
    text = capfd.readouterr().out
    return [re.sub(r"^\S+ \S+ \(\d+\) ", "", line) for line in text.splitlines()]


def refused(
    call: Callable[[], None], code: int, message: str, capfd: pytest.CaptureFixture[str], failed: bool = True
) -> CompareException:
    """The call raises the code, says why, and logs it."""
    capfd.readouterr()
    with pytest.raises(CompareException) as caught:
        call()
    assert caught.value.code == code
    assert str(caught.value).splitlines()[0] == message
    lines = logged(capfd)
    assert f"[ERROR] {message}" in lines
    assert (f"[ERROR] {FAILED}" in lines) == failed
    return caught.value


# What a comparison leaves


def test_defaults(dumps: dict[str, Any], output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert compare(dumps, str(output)) is None  # type: ignore[func-returns-value]
    assert set(written(output)) == {"compare_result.xlsx", "advisor.txt", "verdict.json"}
    assert stat.S_IMODE(output.stat().st_mode) == 0o750
    assert {stat.S_IMODE(path.stat().st_mode) for path in output.iterdir()} == {0o640}
    lines = logged(capfd)
    box = [line for line in lines if "*" in line]
    assert [len(line) for line in box] == [
        len("[INFO] ") + len("msprobe compare ends successfully.") + 50
    ] * 3
    # The answer is no line of the log.
    assert sum(line.startswith("Diverged") and "Torch.b.0.forward" in line for line in lines) == 1
    assert verdict(output)["culprit"] == "Torch.b.0.forward"
    assert any(line and verdict(output)["text"].startswith(f"{line}.") for line in lines)


def test_nothing_on_the_other_stream(
    dumps: dict[str, Any], output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compare(dumps, str(output))
    assert capfd.readouterr().err == ""


def test_paths_may_be_objects(dumps: dict[str, Any], output: Path) -> None:
    compare({key: Path(path) for key, path in dumps.items()}, output)  # type: ignore[arg-type]
    assert verdict(output)["status"] == "diverged"


def test_the_argument_gets_what_was_found(dumps: dict[str, Any], output: Path, tmp_path: Path) -> None:
    compare(dumps, str(output))
    assert dumps["npu_dump_data_dir"] == str(tmp_path / "npu" / "dump_tensor_data")
    assert dumps["bench_dump_data_dir"] == str(tmp_path / "bench" / "dump_tensor_data")
    assert dumps["stack_json_path"] is None


def test_the_same_argument_twice_gives_the_same_table(
    dumps: dict[str, Any], output: Path, tmp_path: Path
) -> None:
    stack = write_stack(tmp_path / "npu")
    compare(dumps, str(output / "first"))
    assert dumps["stack_json_path"] == stack
    assert json.loads(json.dumps(dumps))["stack_json_path"] == stack
    compare(dumps, str(output / "second"))
    assert table(output / "first").header == table(output / "second").header
    assert "NPU_Stack_Info" in table(output / "second").header


# Keyword arguments


@pytest.mark.parametrize("stack_mode", [True, False])
def test_stack_mode_is_for_a_stack_that_was_named(
    dumps: dict[str, Any], output: Path, tmp_path: Path, stack_mode: bool
) -> None:
    dumps["stack_json_path"] = write_stack(tmp_path / "npu", "other.json")
    compare(dumps, str(output), stack_mode=stack_mode)
    assert ("NPU_Stack_Info" in table(output).header) == stack_mode
    if stack_mode:
        assert any("train.py" in str(cell) for cell in table(output).column("NPU_Stack_Info"))


def test_stack_mode_does_not_ask_for_a_stack_that_was_not_named(dumps: dict[str, Any], output: Path) -> None:
    compare(dumps, str(output), stack_mode=True)
    assert "NPU_Stack_Info" not in table(output).header


def test_no_path_of_a_stack(dumps: dict[str, Any], output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dumps["stack_json_path"] = None
    call = lambda: compare(dumps, str(output), stack_mode=True)  # noqa: E731
    refused(call, ILLEGAL_PATH, "The file path None does not exist.", capfd)


def test_auto_analyze(dumps: dict[str, Any], output: Path) -> None:
    compare(dumps, str(output), auto_analyze=False)
    assert set(written(output)) == {"compare_result.xlsx", "verdict.json"}


def test_suffix(dumps: dict[str, Any], output: Path) -> None:
    compare(dumps, str(output), suffix="_mine")
    assert set(written(output)) == {"compare_result_mine.xlsx", "advisor_mine.txt", "verdict.json"}


@pytest.mark.parametrize("suffix", ["/x", 3])
def test_suffix_is_a_part_of_a_name(
    dumps: dict[str, Any], output: Path, suffix: object, capfd: pytest.CaptureFixture[str]
) -> None:
    message = f"Invalid input parameter, suffix {suffix!r} should be a part of a file name."
    refused(lambda: compare(dumps, str(output), suffix=suffix), 11, message, capfd)


def test_fuzzy_match(tmp_path: Path, output: Path) -> None:
    npu = write_dump(tmp_path / "npu", {"Torch.a.0": 1.0})
    bench = write_dump(tmp_path / "bench", {"Torch.a.1": 1.0})
    paths = {"npu_json_path": npu, "bench_json_path": bench}
    compare(dict(paths), str(output / "exact"))
    compare(dict(paths), str(output / "fuzzy"), fuzzy_match=True)
    assert set(table(output / "exact").column("Bench Name")) == {"N/A"}
    assert table(output / "fuzzy").column("Bench Name") == [
        "Torch.a.1.forward.input.0",
        "Torch.a.1.forward.output.0",
    ]


MAPPING = {"Torch.a.0.forward.output.0": "Torch.b.0.forward.output.0"}


@pytest.mark.parametrize("kind", ["dict", "file", "path"])
def test_data_mapping(dumps: dict[str, Any], output: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "data_mapping.yaml"
    file.write_text("".join(f"{name}: {partner}\n" for name, partner in MAPPING.items()))
    value = {"dict": MAPPING, "file": str(file), "path": file}[kind]
    compare(dumps, str(output), data_mapping=value)
    pairs = dict(zip(table(output).column("NPU Name"), table(output).column("Bench Name")))
    assert pairs["Torch.a.0.forward.output.0"] == "Torch.b.0.forward.output.0"
    assert pairs["Torch.a.0.forward.input.0"] == "Torch.a.0.forward.input.0"


@pytest.mark.parametrize("value", [None, {}, ""])
def test_no_data_mapping(dumps: dict[str, Any], output: Path, value: object) -> None:
    compare(dumps, str(output), data_mapping=value)
    assert table(output).column("NPU Name") == table(output).column("Bench Name")


@pytest.mark.parametrize("value", [1, ["a"], True, {"a": 1}, {1: "a"}])
@pytest.mark.parametrize("function", [compare, ms_compare])
def test_data_mapping_of_another_type(
    dumps: dict[str, Any], output: Path, value: object, function: Function
) -> None:
    with pytest.raises(
        TypeError, match="data_mapping should be the path of a yaml file, a dict of names or None"
    ):
        function(dumps, str(output), data_mapping=value)
    assert not written(output)


def test_data_mapping_without_its_file(dumps: dict[str, Any], output: Path) -> None:
    with pytest.raises(CompareException):
        compare(dumps, str(output), data_mapping="none.yaml")


@pytest.mark.parametrize("value", [("csv", "json", "html"), ["csv", "json", "html"], "csv, json,html"])
def test_formats(dumps: dict[str, Any], output: Path, value: object) -> None:
    compare(dumps, str(output), auto_analyze=False, formats=value)
    found = written(output)
    assert {Path(name).suffix for name in found} == {".csv", ".json", ".html"}
    assert set(found) >= {"compare_result.csv", "compare_result.json", "compare_result.html", "verdict.json"}


@pytest.mark.parametrize("value", ["pdf", ["xlsx", "pdf"], [], 7, [7]])
def test_formats_that_are_none(
    dumps: dict[str, Any], output: Path, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    message = f"Invalid input parameter, formats {value!r} should be some of xlsx, csv, json, html."
    refused(lambda: compare(dumps, str(output), formats=value), 11, message, capfd)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (None, "diverged"),
        (2, "within_tolerance"),
        (2.5, "within_tolerance"),
        ("2", "within_tolerance"),
        ("float32=2", "within_tolerance"),
        ({"float32": 2.0, "bfloat16": 0.02}, "within_tolerance"),
        ({"bfloat16": 2.0}, "diverged"),
    ],
)
def test_tolerance(dumps: dict[str, Any], output: Path, value: object, status: str) -> None:
    compare(dumps, str(output), tolerance=value)
    assert verdict(output)["status"] == status


@pytest.mark.parametrize("value", [True, [1], {"float32": "1"}])
def test_tolerance_of_another_type(
    dumps: dict[str, Any], output: Path, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    message = f"Invalid input parameter, tolerance {value!r} should be a number, a dict or a text."
    refused(lambda: compare(dumps, str(output), tolerance=value), 11, message, capfd)


@pytest.mark.parametrize(("value", "part"), [({"float33": 1.0}, "float33=1.0"), (-1, "-1"), ("x", "x")])
def test_tolerance_that_is_none(
    dumps: dict[str, Any], output: Path, value: object, part: str, capfd: pytest.CaptureFixture[str]
) -> None:
    error = refused(
        lambda: compare(dumps, str(output), tolerance=value), 11, f'"{part}" is not a tolerance', capfd
    )
    assert "hint: write float32=1e-3" in str(error)


def test_unknown_keywords_are_ignored(dumps: dict[str, Any], output: Path) -> None:
    compare(dumps, str(output), highlight=True, api_mapping=3, is_print_compare_log="any")
    assert "compare_result.xlsx" in written(output)


@pytest.mark.parametrize("name", ["auto_analyze", "fuzzy_match", "stack_mode", "is_print_compare_log"])
@pytest.mark.parametrize("value", ["yes", 1, None])
@pytest.mark.parametrize("function", [compare, ms_compare])
def test_bools(
    dumps: dict[str, Any],
    output: Path,
    name: str,
    value: object,
    function: Function,
    capfd: pytest.CaptureFixture[str],
) -> None:
    kwargs: dict[str, Any] = {}
    if name == "is_print_compare_log":
        dumps[name] = value
    else:
        dumps["stack_json_path"] = "unused.json"
        kwargs[name] = value
    message = f"Invalid input parameter, {name} which should be only bool type."
    refused(lambda: function(dumps, str(output), **kwargs), 11, message, capfd)
    assert not written(output)


# Refusals


@pytest.mark.parametrize("function", [compare, ms_compare, pt_compare, ms_graph_compare])
def test_first_argument_is_a_dict(
    function: Function, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    message = "input_param should be dict, please check!"
    refused(lambda: function("compare.json", str(output)), 22, message, capfd, failed=False)


@pytest.mark.parametrize("value", [None, "", 3, "a\0dump.json"])
@pytest.mark.parametrize("key", ["npu_json_path", "bench_json_path"])
def test_dumps_are_paths(
    dumps: dict[str, Any], output: Path, key: str, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    refused(lambda: compare(dumps | {key: value}, str(output)), 1, NO_PATH, capfd)


def test_dump_that_is_missing(dumps: dict[str, Any], output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dumps["npu_json_path"] = "nowhere/dump.json"
    message = "The file path nowhere/dump.json does not exist."
    refused(lambda: compare(dumps, str(output)), ILLEGAL_PATH, message, capfd)


@pytest.mark.parametrize("value", [None, 3, ""])
def test_output_is_a_path(dumps: dict[str, Any], value: Any, capfd: pytest.CaptureFixture[str]) -> None:
    message = "output_path should be the path of a file or directory, please check!"
    refused(lambda: compare(dumps, value), 1, message, capfd)


def test_broken_json(dumps: dict[str, Any], output: Path) -> None:
    Path(dumps["bench_json_path"]).write_text('{"task": ')
    with pytest.raises(RuntimeError, match=re.escape(f"Load json file {dumps['bench_json_path']} failed.")):
        compare(dumps, str(output))
    assert not written(output)


def test_exception() -> None:
    assert CompareException.INVALID_PATH_ERROR == 1
    assert CompareException.INVALID_PARAM_ERROR == 11
    assert CompareException.INVALID_TASK_ERROR == 20
    assert CompareException.MERGE_COMPARE_RESULT_ERROR == 33
    assert CompareException.INVALID_API_NAME_ERROR == 36
    error = CompareException(6, "it is broken", "mend it")
    assert (error.code, error.error_info, error.hint) == (6, "it is broken", "mend it")
    assert str(error) == "it is broken\nhint: mend it"
    assert isinstance(error, CodedException)
    again = pickle.loads(pickle.dumps(error))
    assert (again.code, str(again)) == (6, str(error))
    assert (CompareException(6).code, str(CompareException(6))) == (6, "")


# Ranks


@pytest.fixture
def ranks(tmp_path: Path) -> tuple[str, str]:
    for rank in range(2):
        write_dump(tmp_path / "npu" / f"rank{rank}", {"Torch.a.0": 1.0 + rank})
        write_dump(tmp_path / "bench" / f"rank{rank}", {"Torch.a.0": 1.0})
    return str(tmp_path / "npu"), str(tmp_path / "bench")


@pytest.mark.parametrize("function", [compare_distributed, ms_compare_distributed])
def test_ranks(ranks: tuple[str, str], output: Path, function: Function, tmp_path: Path) -> None:
    write_stack(tmp_path / "npu" / "rank1")
    function(*ranks, str(output), stack_mode=True, auto_analyze=False)
    assert set(written(output)) == {"compare_result_rank0.xlsx", "compare_result_rank1.xlsx", "verdict.json"}
    assert "NPU_Stack_Info" not in table(output, "compare_result_rank0.xlsx").header
    assert "NPU_Stack_Info" in table(output, "compare_result_rank1.xlsx").header
    assert (verdict(output)["culprit"], verdict(output)["rank"]) == ("Torch.a.0.forward", 1)


@pytest.mark.parametrize("function", [compare_distributed, ms_compare_distributed])
def test_ranks_have_no_suffix(
    ranks: tuple[str, str], output: Path, function: Function, capfd: pytest.CaptureFixture[str]
) -> None:
    message = "Argument 'suffix' is not supported for compare_distributed."
    refused(lambda: function(*ranks, str(output), suffix="_x"), 11, message, capfd, failed=False)
    function(*ranks, str(output), suffix="")


@pytest.mark.parametrize("name", ["auto_analyze", "fuzzy_match", "is_print_compare_log"])
def test_bools_of_ranks(
    ranks: tuple[str, str], output: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    message = f"Invalid input parameter, {name} which should be only bool type."
    refused(lambda: compare_distributed(*ranks, str(output), **{name: "yes"}), 11, message, capfd)


def test_a_rank_that_cannot_be_compared_costs_itself(
    ranks: tuple[str, str], output: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_dump(tmp_path / "npu" / "rank0", {"Torch.a.0": 1.0}, task="")
    compare_distributed(*ranks, str(output))
    assert "compare_result_rank0.xlsx" not in written(output)
    assert "compare_result_rank1.xlsx" in written(output)
    assert "[ERROR] Invalid or missing 'task' in dump.json. Skipping rank0 comparison." in logged(capfd)
    assert verdict(output)["failures"] == ["rank0: Task for npu is empty, please check."]


def test_ranks_of_one_side(ranks: tuple[str, str], output: Path, tmp_path: Path) -> None:
    write_dump(tmp_path / "npu" / "rank2", {"Torch.a.0": 1.0})
    with pytest.raises(CompareException, match="The number of ranks in the two runs are different") as caught:
        compare_distributed(*ranks, str(output))
    assert caught.value.code == 1
