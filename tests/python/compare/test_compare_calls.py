"""What goes on around a comparison called from Python: imports, logs, other threads, signals and forks; and
the functions that compare something else than two dump.json.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from msprobe import _native
from msprobe.core.common.utils import CompareException
from msprobe.core.compare.merge_result.merge_result import merge_result
from msprobe.mindspore.compare.common_dir_compare import common_dir_compare
from msprobe.mindspore.compare.distributed_compare import ms_graph_compare
from msprobe.mindspore.compare.ms_compare import ms_compare
from msprobe.pytorch import compare, compare_distributed
from msprobe.pytorch.compare.pt_compare import pt_compare
from tests.python.compare.golden_cases import prepare as prepare_golden
from tests.python.compare.golden_cases import run_function
from tests.python.compare.tables import read_csv
from tests.python.compare.test_compare_functions import (
    dumps,
    logged,
    output,
    ranks,
    refused,
    table,
    tensor,
    verdict,
    write_dump,
    written,
)
from tests.python.compare.test_golden_compare import CASES, compare_file

__all__ = ["dumps", "output", "ranks"]

# Imports

FUNCTIONS = (
    "from msprobe.pytorch import compare, compare_distributed",
    "from msprobe.pytorch.compare.pt_compare import compare, pt_compare",
    "from msprobe.pytorch.compare.distributed_compare import compare_distributed",
    "import msprobe.pytorch.compare.distributed_compare, msprobe.pytorch.compare.pt_compare",
    "import msprobe.pytorch.compare",
)


def run_script(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("first", range(len(FUNCTIONS)))
def test_function_and_package_of_one_name(first: int) -> None:
    lines = [*FUNCTIONS[first:], *FUNCTIONS[:first]]
    check = (
        "import msprobe.pytorch as p; from types import FunctionType; assert type(p.compare) is FunctionType"
    )
    run_script("\n".join(line for each in lines for line in (each, check)))


@pytest.mark.parametrize(
    "module",
    [
        "msprobe.core.common.utils",
        "msprobe.core.compare.acc_compare",
        "msprobe.core.compare.merge_result.merge_result",
        "msprobe.mindspore",
        "msprobe.mindspore.compare.ms_compare",
        "msprobe.mindspore.compare.distributed_compare",
        "msprobe.mindspore.compare.common_dir_compare",
    ],
)
def test_no_framework_is_imported(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    assert not {"torch", "numpy", "mindspore", "yaml", "pandas"} & set(run_script(script).split())


# Logs


def test_level_of_the_log(dumps: dict[str, Any], output: Path) -> None:
    """A log that is silenced leaves the answer."""
    script = "import os, sys, json; os.environ['MSPROBE_LOG_LEVEL'] = '4'\n"
    script += "from msprobe.mindspore.compare.ms_compare import ms_compare\n"
    script += "ms_compare(json.loads(sys.argv[1]), sys.argv[2])"
    printed = run_script(script, json.dumps(dumps), str(output))
    headline = printed.splitlines()[0]
    assert verdict(output)["text"].startswith(f"{headline}.")
    assert "[INFO]" not in printed and "[WARNING]" not in printed


@pytest.mark.parametrize(("setting", "shown"), [({}, False), ({"is_print_compare_log": True}, True)])
def test_rows_are_logged_if_asked_for(
    tmp_path: Path, output: Path, setting: dict[str, Any], shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    prepare_golden(CASES["mindspore_tensor_npy"], folder)
    paths = {
        "npu_json_path": str(folder / "npu/dump.json"),
        "bench_json_path": str(folder / "bench/dump.json"),
    }
    ms_compare(paths | setting, str(output))
    assert any("start compare: " in line for line in logged(capfd)) == shown


@pytest.mark.parametrize(("setting", "shown"), [({}, True), ({"is_print_compare_log": False}, False)])
def test_rows_of_ranks_are_logged_unless_refused(
    tmp_path: Path, output: Path, setting: dict[str, Any], shown: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    for side in ("npu", "bench"):
        prepare_golden(CASES["mindspore_tensor_npy"], tmp_path / side)
        (tmp_path / side / "ranks").mkdir()
        (tmp_path / side / side).rename(tmp_path / side / "ranks" / "rank0")
    compare_distributed(str(tmp_path / "npu/ranks"), str(tmp_path / "bench/ranks"), str(output), **setting)
    assert any("start compare: " in line for line in logged(capfd)) == shown


class Unheard(Exception):
    """Raised by a log."""


def options(output: Path) -> Any:
    return {
        "form": "old",
        "output": str(output),
        "formats": ["xlsx"],
        "stack": True,
        "advisor": True,
        "fuzzy": False,
        "api_mapping": False,
        "cell_mapping": False,
        "layer_mapping": False,
        "data_mapping": None,
        "log_rows": False,
        "first_difference": False,
        "tolerance": "",
        "noise": [],
        "allow_incomplete": "",
    }


def test_a_log_that_fails_ends_the_comparison(dumps: dict[str, Any], output: Path) -> None:
    def log(level: str, text: str) -> None:
        raise Unheard(text)

    paths = dumps["npu_json_path"], dumps["bench_json_path"]
    with pytest.raises(Unheard, match=r"stack\.json is not found"):
        _native.compare_files(*paths, "", options(output), log)


def test_the_log_is_called_in_the_thread_of_the_call(dumps: dict[str, Any], output: Path) -> None:
    callers = set()

    def log(level: str, text: str) -> None:
        callers.add(threading.get_ident())

    paths = dumps["npu_json_path"], dumps["bench_json_path"]
    _native.compare_files(*paths, "", options(output), log)
    assert callers == {threading.get_ident()}


# Signals, threads, forks


@pytest.fixture
def endless(tmp_path: Path) -> dict[str, Any]:
    """Two dumps whose comparison takes a minute: many names of one large file without content."""
    elements = 1 << 23
    description = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({elements},), }}"
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + description.encode().ljust(117) + b"\n"
    paths = {}
    for side in ("npu", "bench"):
        data = tmp_path / side / "dump_tensor_data"
        data.mkdir(parents=True)
        with (data / "zeros.npy").open("wb") as file:
            file.write(header)
            file.truncate(len(header) + 4 * elements)
        records = {}
        for name in (f"Torch.a.{number}.forward" for number in range(1000)):
            os.link(data / "zeros.npy", data / f"{name}.output.0.npy")
            one = tensor(0.0, data_name=f"{name}.output.0.npy", shape=[elements])
            records[name] = {"input_args": [], "input_kwargs": {}, "output": [one]}
        dump = {"task": "tensor", "level": "L1", "framework": "pytorch", "data": records}
        (tmp_path / side / "dump.json").write_text(json.dumps(dump))
        paths[f"{side}_json_path"] = str(tmp_path / side / "dump.json")
    return paths


@pytest.mark.parametrize("function", [compare, pt_compare])
def test_control_c(endless: dict[str, Any], output: Path, function: Any) -> None:
    paths = endless
    if function is pt_compare:
        paths = {"npu_path": endless["npu_json_path"], "bench_path": endless["bench_json_path"]}
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    turns = [0]
    over = threading.Event()

    def count() -> None:
        while not over.wait(0.01):
            turns[0] += 1

    other = threading.Thread(target=count)
    other.start()
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            function(paths, str(output))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        other.join()
    assert time.monotonic() - begun < 30
    assert list(output.iterdir()) == []
    # The other thread ran all the while.
    assert turns[0] > 10
    # And nothing of it is left: the next comparison works.
    write_dump(output / "npu", {"Torch.a.0": 1.0})
    compare(
        {"npu_json_path": str(output / "npu/dump.json"), "bench_json_path": str(output / "npu/dump.json")},
        str(output / "after"),
    )
    assert verdict(output / "after")["status"] == "identical"


def test_a_forked_process_compares_too(dumps: dict[str, Any], output: Path) -> None:
    """The threads of the first comparison do not exist in the child."""
    script = """
import json, os, signal, sys
from msprobe.mindspore.compare.ms_compare import ms_compare
ms_compare(json.loads(sys.argv[1]), sys.argv[2] + "/parent")
child = os.fork()
if child == 0:
    signal.alarm(60)
    ms_compare(json.loads(sys.argv[1]), sys.argv[2] + "/child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    run_script(script, json.dumps(dumps), str(output))
    assert verdict(output / "child")["status"] == verdict(output / "parent")["status"] == "diverged"


# Mappings of MindSpore


@pytest.mark.parametrize("name", ["api_mapping", "cell_mapping", "layer_mapping"])
@pytest.mark.parametrize("value", [3, ["a.yaml"], {"a": "b"}])
def test_mapping_of_another_type(dumps: dict[str, Any], output: Path, name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{name} should be the path of a yaml file, or True"):
        ms_compare(dumps, str(output), **{name: value})


@pytest.mark.parametrize("name", ["api_mapping", "cell_mapping", "layer_mapping"])
@pytest.mark.parametrize("value", [None, {}, False, ""])
def test_no_mapping(dumps: dict[str, Any], output: Path, name: str, value: object) -> None:
    ms_compare(dumps, str(output), **{name: value})
    assert table(output).column("NPU Name") == table(output).column("Bench Name")


# The newest form


def test_newest_defaults(dumps: dict[str, Any], output: Path) -> None:
    paths = {"npu_path": dumps["npu_json_path"], "bench_path": dumps["bench_json_path"]}
    pt_compare(paths, str(output), suffix="_mine")
    assert set(written(output)) == {"compare_result_mine.csv", "verdict.json"}
    assert "Requires_grad Consistent" in read_csv(written(output)["compare_result_mine.csv"]).header
    assert paths["npu_dump_data_dir"].endswith("npu/dump_tensor_data")


def test_newest_directories(ranks: tuple[str, str], output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = {"npu_path": ranks[0], "bench_path": ranks[1]}
    pt_compare(paths, str(output), formats=("xlsx",))
    assert set(written(output)) == {"compare_result_rank0.xlsx", "compare_result_rank1.xlsx", "verdict.json"}
    message = "Invalid input parameter, suffix is for two files; each rank of directories has its own."
    refused(lambda: pt_compare(paths, str(output), suffix="_x"), 11, message, capfd)


@pytest.mark.parametrize("name", ["fuzzy_match", "is_print_compare_log", "first_diff_analyze"])
def test_newest_bools(
    dumps: dict[str, Any], output: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = {"npu_path": dumps["npu_json_path"], "bench_path": dumps["bench_json_path"]}
    message = f"Invalid input parameter, {name} which should be only bool type."
    refused(lambda: pt_compare(paths, str(output), **{name: "yes"}), 11, message, capfd)


@pytest.mark.parametrize("key", ["npu_path", "bench_path"])
def test_newest_paths(
    dumps: dict[str, Any], output: Path, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = {"npu_path": dumps["npu_json_path"], "bench_path": dumps["bench_json_path"]}
    message = f"{key} should be the path of a file or directory, please check!"
    refused(lambda: pt_compare(paths | {key: None}, str(output)), 1, message, capfd)


# Static graphs, single arrays, merging


@pytest.mark.parametrize("key", ["rank_id", "step_id"])
@pytest.mark.parametrize("value", [0, "0", ["0"], [True], [1.0]])
def test_ranks_and_steps_of_graphs_are_lists(
    tmp_path: Path, output: Path, key: str, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = {"npu_path": str(tmp_path), "bench_path": str(tmp_path), key: value}
    message = "'rank_id' and 'step_id' should both be lists, please check!"
    refused(lambda: ms_graph_compare(paths, str(output)), 22, message, capfd, failed=False)


@pytest.mark.parametrize("function", [ms_graph_compare, common_dir_compare])
def test_trees_are_paths(function: Any, output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    message = "npu_path should be the path of a file or directory, please check!"
    refused(lambda: function({"bench_path": "b"}, str(output)), 1, message, capfd)


@pytest.mark.parametrize("value", [["x"], {"x": 1}, "x"])
def test_names_of_single_arrays(
    tmp_path: Path, output: Path, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = {"npu_path": str(tmp_path), "bench_path": str(tmp_path), "map_dict": value}
    message = "map_dict should be a dict of names, please check!"
    refused(lambda: common_dir_compare(paths, str(output)), 22, message, capfd, failed=False)


def test_nothing_to_merge(tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tables").mkdir()
    config = tmp_path / "config.yaml"
    config.write_text("api:\n  - Torch.a\n")
    with pytest.raises(CompareException) as caught:
        merge_result(str(tmp_path / "tables"), str(output), str(config))
    assert caught.value.code == CompareException.MERGE_COMPARE_RESULT_ERROR
    assert str(caught.value) in capfd.readouterr().out


def test_merging_takes_paths(tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]) -> None:
    message = "config_path should be the path of a file or directory, please check!"
    refused(lambda: merge_result(tmp_path, output, None), 1, message, capfd)  # type: ignore[arg-type]


def test_merging_what_was_compared(ranks: tuple[str, str], output: Path, tmp_path: Path) -> None:
    compare_distributed(*ranks, str(output), auto_analyze=False)
    (output / "verdict.json").unlink()
    config = tmp_path / "config.yaml"
    config.write_text("api:\n  - Torch.a.0.forward\ncompare_index:\n  - Max diff\n")
    merge_result(output, tmp_path / "merged", config)
    merged = table(tmp_path / "merged", "multi_ranks_compare_merge.xlsx")
    assert merged.header == ["NPU Name", "rank0", "rank1"]
    assert merged.column("rank1") == [0, 1]


# What was recorded of the command, through the functions


def recorded_calls() -> dict[str, tuple[str, list[Any], dict[str, Any]]]:
    """The function call that does what a recorded command line did."""
    paths = {"npu_json_path": "npu/dump.json", "bench_json_path": "bench/dump.json"}
    debug = {"npu_json_path": "npu/debug.json", "bench_json_path": "bench/debug.json"}
    newest = {"npu_path": "npu/dump.json", "bench_path": "bench/dump.json"}
    trees: dict[str, Any] = {"npu_path": "npu", "bench_path": "bench"}
    pytorch, mindspore = "msprobe.pytorch", "msprobe.mindspore.compare"
    ms = f"{mindspore}.ms_compare.ms_compare"
    graph = f"{mindspore}.distributed_compare.ms_graph_compare"
    common = f"{mindspore}.common_dir_compare.common_dir_compare"
    ranks = f"{pytorch}.compare.distributed_compare.compare_distributed"
    merge = "msprobe.core.compare.merge_result.merge_result.merge_result"
    with_stack = paths | {"stack_json_path": "npu/stack.json"}
    return {
        "cross_api_mapping_builtin": (ms, [paths, "output"], {"api_mapping": True}),
        "cross_api_mapping_file": (ms, [paths, "output"], {"api_mapping": "api_mapping.yaml"}),
        "cross_cell_mapping_file": (ms, [paths, "output"], {"cell_mapping": "cell_mapping.yaml"}),
        "cross_layer_mapping": (ms, [paths, "output"], {"layer_mapping": "layer_mapping.yaml"}),
        "data_mapping_statistics": (
            f"{pytorch}.compare",
            [paths, "output"],
            {"data_mapping": "data_mapping.yaml"},
        ),
        "debug_statistics_real": (f"{pytorch}.compare", [debug, "output"], {}),
        "debug_tensor_real": (f"{pytorch}.compare", [debug, "output"], {"auto_analyze": False}),
        "distributed_two_ranks": (ranks, ["npu/step0", "bench/step0", "output"], {}),
        "md5_real_l1": (f"{pytorch}.compare", [paths, "output"], {}),
        "merge_result_statistics": (merge, ["input", "output", "config.yaml"], {}),
        "mindspore_tensor_npy": (ms, [paths, "output"], {}),
        "ms_common_dir": (common, [trees | {"map_dict": {"x": "y"}}, "output"], {}),
        "ms_graph_npy": (graph, [trees | {"rank_id": [], "step_id": []}, "output"], {}),
        "ms_graph_statistic": (graph, [trees | {"rank_id": [0], "step_id": [1]}, "output"], {}),
        "newest_statistics": (f"{pytorch}.compare.pt_compare.pt_compare", [newest, "output"], {}),
        "statistics_real_mix": (f"{pytorch}.compare", [paths, "output"], {}),
        "tensor_real_l1_stack": (f"{pytorch}.compare", [with_stack, "output"], {"stack_mode": True}),
    }


@pytest.mark.parametrize("name", recorded_calls())
def test_functions_write_what_the_command_writes(name: str, tmp_path: Path) -> None:
    case, (function, args, kwargs) = CASES[name], recorded_calls()[name]
    folder = tmp_path.resolve() / "run"
    prepare_golden(case, folder)
    outcome = run_function({"func": function, "args": args, "kwargs": kwargs}, folder)
    assert outcome.exception is None, outcome.text
    for file in case.expected():
        assert file in outcome.outputs(), outcome.text
        assert not compare_file(case, file, outcome.outputs()[file], folder)
