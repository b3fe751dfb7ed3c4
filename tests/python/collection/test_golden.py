"""Every recorded case, trained again: same files, records, numbers and log, except for deviations.py."""

from __future__ import annotations

import copy
import functools
import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from tests.python.collection import runs
from tests.python.collection.deviations import DEVIATIONS, LOG_ADDITIONS, TENSOR_DEVIATIONS, Deviation
from tests.python.collection.golden import GOLDEN, Dump, compare, compare_documents, load, without_artefacts

CASES = sorted(path.name for path in GOLDEN.iterdir() if (path / "train.py").exists())
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
# The writer of a growing file may leave room at the end of a line.
PADDING = re.compile(r" +(?=,?$)", re.MULTILINE)
TWO_PROCESSES = {"ddp_gloo_l1_statistics"}


def train(case: str, folder: Path) -> runs.Result:
    shutil.copytree(GOLDEN / case, folder, ignore=shutil.ignore_patterns("dump", "README.md", "log.txt"))
    arguments = [str(runs.free_port())] if case in TWO_PROCESSES else []
    return runs.run(folder, "train.py", *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, runs.Result]:
    root = tmp_path_factory.mktemp("golden")
    return runs.run_all({case: functools.partial(train, case, root / case) for case in CASES})


def expected_of(case: str) -> Dump:
    """The recorded case with its deviations."""
    expected = copy.deepcopy(without_artefacts(load(GOLDEN / case / "dump")))
    for row in DEVIATIONS:
        if row.case == case:
            expected.documents[row.file] = row.apply(expected.documents[row.file])
    for tensor in TENSOR_DEVIATIONS:
        if tensor.case != case:
            continue
        if tensor.file not in expected.listing:
            expected.listing = sorted([*expected.listing, tensor.file])
        if tensor.same_as is not None:
            expected.tensors[tensor.file] = expected.tensors[tensor.same_as]
    return expected


@pytest.mark.parametrize("case", CASES)
def test_dump(case: str, trained: dict[str, runs.Result]) -> None:
    result = trained[case].ok()
    differences = compare(expected_of(case), load(result.folder / "dump"))
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("case", CASES)
def test_log(case: str, trained: dict[str, runs.Result]) -> None:
    recorded = (GOLDEN / case / "log.txt").read_text().removesuffix("\n").split("\n")
    recorded = [line + LOG_ADDITIONS.get(line.removeprefix("[WARNING] "), "") for line in recorded]
    lines = trained[case].log
    if case in TWO_PROCESSES:
        lines.sort()
    assert lines == recorded


@pytest.mark.parametrize("case", CASES)
def test_text(case: str, trained: dict[str, runs.Result]) -> None:
    """Laid out as Python's json does with indent 1, digits apart: readers that go by lines keep working."""
    for path in sorted((trained[case].ok().folder / "dump").rglob("*.json")):
        text = PADDING.sub("", path.read_text())
        assert NUMBER.sub("0", text) == NUMBER.sub("0", json.dumps(json.loads(text), indent=1)), path


def test_tensors_not_recorded(trained: dict[str, runs.Result]) -> None:
    """Tensor files the recorded case lacks hold what their records say."""
    result = trained["mlp_l0_tensor"].ok()
    data = result.data()
    for tensor in TENSOR_DEVIATIONS:
        value = torch.load(result.folder / "dump" / tensor.file)
        name = Path(tensor.file).name
        record, side, index = name.removesuffix(".pt").rsplit(".", 2)
        encoded = data[record]["input_args" if "forward" in record else side][int(index)]
        assert encoded["data_name"] == name
        assert [encoded["Max"], encoded["Min"]] == [value.max().item(), value.min().item()]


@pytest.mark.parametrize(
    "row", DEVIATIONS, ids=lambda row: f"{row.case}-{row.file.split('/')[0]}-{row.record}-{row.what}"
)
def test_deviation_is_of_its_record(row: Deviation) -> None:
    """A row changes the record it names and no other."""
    before = without_artefacts(load(GOLDEN / row.case / "dump"))
    for other in DEVIATIONS:
        if other.case != row.case:
            continue
        document = before.documents[other.file]
        changed = other.apply(document)
        if other is row:
            differences = compare_documents(other.file, document, changed)
            assert differences
            assert all(f"{other.record}:" in difference for difference in differences), differences
            return
        before.documents[other.file] = changed


def test_tensor_deviations_are_material() -> None:
    for tensor in TENSOR_DEVIATIONS:
        dump = load(GOLDEN / tensor.case / "dump")
        if tensor.file in dump.listing:
            assert tensor.same_as is not None
            assert not torch.equal(dump.tensors[tensor.file], dump.tensors[tensor.same_as])
