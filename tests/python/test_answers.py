"""Every command ends with one kind of answer: its JSON, its exit code and its first line agree."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy
import pytest

from .compare.faults.score import ROOT, binary

SCHEMA = json.loads((ROOT / "docs" / "answer.schema.json").read_text(encoding="utf-8"))
WORDS = {
    "identical": "Identical",
    "clean": "Clean",
    "within_tolerance": "Within tolerance",
    "warning": "Warning",
    "incomplete": "Incomplete",
    "diverged": "Diverged",
    "differs_at_input": "Already different at the input",
    "anomaly": "Anomaly",
    "failed": "Nothing could be compared",
}
EXIT_CODES = dict.fromkeys(WORDS, 1) | {
    "identical": 0,
    "clean": 0,
    "within_tolerance": 0,
    "warning": 0,
    "failed": 2,
}


@dataclass(frozen=True)
class Ran:
    """What a command left: its JSON, the older status in it, and how it ended with text and with JSON."""

    codes: tuple[int, ...]
    first_line: str
    report: dict[str, Any]
    older: str


def msprobe(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def strict(text: str) -> Any:
    """JSON as other languages read it: without NaN and Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def first_line(text: str) -> str:
    return text.split("\n", 1)[0]


def tensor(size: float, dtype: str = "torch.float32") -> dict[str, Any]:
    numbers = {"Max": size, "Min": 0.0, "Mean": size, "Norm": size}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": [2], **numbers, "requires_grad": False}


def write_dump(directory: Path, calls: dict[str, tuple[float, float]]) -> Path:
    data = {
        name: {"input_args": [tensor(given)], "input_kwargs": {}, "output": [tensor(made)]}
        for name, (given, made) in calls.items()
    }
    directory.mkdir(parents=True)
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (directory / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    return directory


CALLS = {"Torch.exp.0.forward": (1.0, 2.0), "Torch.mul.0.forward": (2.0, 3.0)}


def compare(tmp: Path, calls: dict[str, tuple[float, float]], *flags: str) -> Ran:
    target, golden = write_dump(tmp / "target" / "step4", calls), write_dump(tmp / "golden" / "step4", CALLS)
    done = msprobe("compare", target, golden, "-o", tmp / "out", *flags)
    report = strict((tmp / "out" / "verdict.json").read_text(encoding="utf-8"))
    return Ran((done.returncode,), first_line(done.stdout), report, report["status"])


def diff(tmp: Path, a: Path, b: Path) -> Ran:
    text, done = msprobe("diff", a, b), msprobe("diff", a, b, "--format", "json")
    report = strict(done.stdout)
    return Ran((text.returncode, done.returncode), first_line(text.stdout), report, report["status"])


def arrays(tmp: Path, first: list[float], second: list[float]) -> Ran:
    for name, values in (("a", first), ("b", second)):
        numpy.save(tmp / f"{name}.npy", numpy.array(values, dtype=numpy.float32))
    return diff(tmp, tmp / "a.npy", tmp / "b.npy")


def opaque(tmp: Path) -> Ran:
    path = ROOT / "tests" / "fixtures" / "pt" / "opaque.pt"
    return diff(tmp, path, path)


def rl_compare(tmp: Path, second: dict[str, list[float]], step: int = 0) -> Ran:
    first = {"responses": [1.0, 2.0, 3.0], "loss": [0.5]}
    for run, keys, at in (("a", first, 0), ("b", second, step)):
        for key, values in keys.items():
            directory = tmp / run / "data" / key / f"step{at}" / "rank0" / "micro_step0"
            directory.mkdir(parents=True)
            numpy.save(directory / f"{key}.npy", numpy.array(values, dtype=numpy.float32))
    done = msprobe("rl", "compare", tmp / "a", tmp / "b", "-o", tmp / "out")
    report = strict((tmp / "out" / "summary.json").read_text(encoding="utf-8"))
    return Ran((done.returncode,), first_line(done.stdout), report, report["verdict"]["status"])


def grad_compare(tmp: Path, change: Callable[[Path], object], elements: int = 100) -> Ran:
    for run in ("a", "b"):
        rank = tmp / run / "rank0"
        for step in (0, 1):
            (rank / f"step{step}").mkdir(parents=True)
            for name in ("w", "v"):
                numpy.save(rank / f"step{step}" / f"{name}.npy", numpy.ones(elements, dtype=bool))
            rows = "".join(f'{name},1.0,1.0,1.0,"[{elements}]"\r\n' for name in ("w", "v"))
            text = f"param_name,max,min,norm,shape\r\n{rows}"
            (rank / f"grad_summary_{step}.csv").write_text(text, encoding="utf-8-sig", newline="")
    change(tmp / "b" / "rank0" / "step1" / "v.npy")
    done = msprobe("grad", "compare", tmp / "a", tmp / "b", "-o", tmp / "out", "--pictures", "none")
    report = strict((tmp / "out" / "verdict.json").read_text(encoding="utf-8"))
    return Ran((done.returncode,), first_line(done.stdout), report, report["status"])


def flip(path: Path, share: float) -> None:
    values = numpy.load(path)
    values[: int(values.size * share)] = False
    numpy.save(path, values)


def overflow(tmp: Path, step: Path, *flags: str) -> Ran:
    asked: list[str | Path] = ["overflow_check", "-i", step, "-o", tmp / "out", *flags]
    text, done = msprobe(*asked), msprobe(*asked, "--format", "json")
    report = strict(done.stdout)
    return Ran((text.returncode, done.returncode), first_line(text.stdout), report, report["status"])


def recorded(case: str) -> Path:
    return ROOT / "tests" / "golden" / "nan_analyze" / case / "input"


def one_rank(tmp: Path, size: float) -> Path:
    write_dump(tmp / "step0" / "rank0", {"Torch.mul.0.forward": (1.0, size)})
    return tmp / "step0"


CASES: dict[str, tuple[str, Callable[[Path], Ran]]] = {
    "compare identical": ("identical", lambda tmp: compare(tmp, CALLS)),
    "compare within tolerance": (
        "within_tolerance",
        lambda tmp: compare(tmp, CALLS | {"Torch.mul.0.forward": (2.0, 3.3)}, "--tolerance", "0.2"),
    ),
    "compare incomplete": (
        "incomplete",
        lambda tmp: compare(tmp, CALLS | {"Torch.sin.0.forward": (3.0, 1.0)}),
    ),
    "compare diverged": (
        "diverged",
        lambda tmp: compare(tmp, CALLS | {"Torch.mul.0.forward": (2.0, float("inf"))}),
    ),
    "compare at the input": (
        "differs_at_input",
        lambda tmp: compare(tmp, CALLS | {"Torch.exp.0.forward": (9.0, 20.0)}),
    ),
    "compare failed": ("failed", lambda tmp: compare(tmp, {"Torch.sin.0.forward": (7.0, 8.0)})),
    "diff identical": ("identical", lambda tmp: arrays(tmp, [1.0, 2.0], [1.0, 2.0])),
    "diff diverged": ("diverged", lambda tmp: arrays(tmp, [1.0, float("nan")], [1.0, 2.0])),
    "diff incomplete": ("incomplete", opaque),
    "rl identical": ("identical", lambda tmp: rl_compare(tmp, {"responses": [1, 2, 3], "loss": [0.5]})),
    "rl diverged": ("diverged", lambda tmp: rl_compare(tmp, {"responses": [1, 2, 4], "loss": [0.75]})),
    "rl incomplete": ("incomplete", lambda tmp: rl_compare(tmp, {"responses": [1, 2, 3]})),
    "rl failed": ("failed", lambda tmp: rl_compare(tmp, {"responses": [1, 2, 3]}, step=1)),
    "grad identical": ("identical", lambda tmp: grad_compare(tmp, lambda _: None)),
    "grad within tolerance": ("within_tolerance", lambda tmp: grad_compare(tmp, lambda v: flip(v, 0.01))),
    "grad incomplete": ("incomplete", lambda tmp: grad_compare(tmp, Path.unlink)),
    "grad diverged": ("diverged", lambda tmp: grad_compare(tmp, lambda v: flip(v, 0.3))),
    "grad failed": ("failed", lambda tmp: grad_compare(tmp, lambda _: None, elements=0)),
    "overflow clean": ("clean", lambda tmp: overflow(tmp, recorded("no_anomaly"))),
    "overflow anomaly": ("anomaly", lambda tmp: overflow(tmp, recorded("p2p_pipeline"))),
    "overflow warning": (
        "warning",
        lambda tmp: overflow(tmp, one_rank(tmp, 70000.0), "--as-dtype", "fp16"),
    ),
    "overflow incomplete": ("incomplete", lambda tmp: overflow(tmp, without_a_rank(tmp))),
}


def without_a_rank(tmp: Path) -> Path:
    shutil.copytree(recorded("no_anomaly"), tmp / "step0")
    shutil.rmtree(tmp / "step0" / "rank0")
    return tmp / "step0"


def members(value: Any) -> Iterator[Any]:
    """Everything in a JSON document."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from members(one)


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_the_same_everywhere(case: str, tmp_path: Path) -> None:
    status, run = CASES[case]
    ran = run(tmp_path)
    answer = ran.report["answer"]
    jsonschema.Draft202012Validator(SCHEMA).validate(answer)
    assert (answer["status"], ran.older) == (status, status), answer["headline"]
    assert set(ran.codes) == {EXIT_CODES[status]}
    assert ran.first_line == answer["headline"]
    assert answer["headline"].startswith(WORDS[status])
    assert case.split()[0] == answer["command"].split("_")[0].split()[0]
    found = status in ("diverged", "differs_at_input", "anomaly")
    assert (answer["culprit"] is not None) == found
    assert not found or answer["evidence"]
    assert (status != "incomplete") or answer["not_compared"]
    assert all(Path(file).is_file() for file in answer["files"])


@pytest.mark.parametrize("case", ["compare diverged", "diff diverged", "overflow anomaly"])
def test_what_is_not_finite_has_one_spelling(case: str, tmp_path: Path) -> None:
    report = CASES[case][1](tmp_path).report
    for birth in report.get("births", ()):
        # These are names of kinds of values.
        del birth["values"]
    report.pop("culprit", None)
    texts = {text for text in members(report) if isinstance(text, str)}
    assert not texts & {"inf", "-inf", "nan", "Inf", "-Inf"}
    assert case == "diff diverged" or texts & {"NaN", "Infinity"}


def test_evidence_is_typed(tmp_path: Path) -> None:
    answer = compare(tmp_path, CALLS | {"Torch.mul.0.forward": (2.0, 3.3)}).report["answer"]
    evidence = {one["measure"]: one for one in answer["evidence"]}
    assert evidence["max"]["record"] == answer["culprit"]["name"] == "Torch.mul.0.forward"
    assert (evidence["max"]["value"], evidence["max"]["target"], evidence["max"]["golden"]) == (
        "output.0",
        3.3,
        3,
    )
    error = evidence["relative_error"]
    assert error["measured"] > error["tolerated"] == 3e-5
    assert (evidence["shape"]["target"], evidence["dtype"]["golden"]) == ([2], "torch.float32")
    assert answer["scope"] == {"step": 4, "rank": None, "against": {"step": 4, "rank": None}}
    assert answer["next_step"]


def test_every_report_of_a_comparison_has_it(tmp_path: Path) -> None:
    compare(tmp_path, CALLS | {"Torch.mul.0.forward": (2.0, 3.3)}, "--format", "json")
    (path,) = (tmp_path / "out").glob("compare_result_*.json")
    report = strict(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(report["answer"])
    assert report["answer"]["status"] == report["verdict"]["status"] == "diverged"


def test_habits_of_the_reference(tmp_path: Path) -> None:
    """Two commands whose scripts take any number but 0 for a crash."""
    target = write_dump(tmp_path / "target", CALLS | {"Torch.mul.0.forward": (2.0, 3.3)})
    golden = write_dump(tmp_path / "golden", CALLS)
    config = {"npu_path": str(target / "dump.json"), "bench_path": str(golden / "dump.json")}
    (tmp_path / "compare.json").write_text(json.dumps(config))
    older = ("-f", "pytorch", "compare", "-i", tmp_path / "compare.json", "-o", tmp_path / "out")
    assert [msprobe(*older).returncode, msprobe(*older, "--fail-on-difference").returncode] == [0, 1]
    found = ("nan_analyze", "-i", recorded("p2p_pipeline"), "-o", tmp_path / "found")
    assert [msprobe(*found).returncode, msprobe(*found, "--fail-on-anomaly").returncode] == [0, 1]


def test_the_manual_has_the_table_of_statuses() -> None:
    manual = (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in manual.splitlines() if line.startswith("| `")]
    table = {row[1].strip(" `"): (row[2].strip(), row[4].strip()) for row in rows if len(row) == 7}
    assert table.pop("status") == ("first line begins with", "exit code")
    assert table == {status: (words, str(EXIT_CODES[status])) for status, words in WORDS.items()}
    assert list(table) == SCHEMA["properties"]["status"]["enum"]
