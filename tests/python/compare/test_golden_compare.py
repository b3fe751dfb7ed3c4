"""Every recorded comparison, run again: tables, colours, advice, log and exit code, but for deviations.py.

One case alone: `pytest tests/python/compare -k statistics_edge`.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Callable

import pytest

from tests.python.compare import deviations
from tests.python.compare.golden_cases import (
    Case,
    Outcome,
    errors,
    missing_lines,
    run,
    tables_and_advice,
)
from tests.python.compare.tables import (
    ZERO_D,
    Table,
    compare_documents,
    compare_sheets,
    compare_tables,
    read_csv,
    read_xlsx,
)

CASES = {case.name: case for case in tables_and_advice()}
# Of the scenarios in `errors`, those that end with files.
WITH_FILES = {case.name: case for case in errors() if (case.folder / "expected").is_dir()}
ALL = {**CASES, **WITH_FILES}

UNORDERED = {"ms_graph_npy", "ms_graph_statistic"}
MEASURED = {"ms_graph_npy", "ms_common_dir"}

Run = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a case when it is first asked for."""
    done: dict[str, Outcome] = {}

    def once(name: str) -> Outcome:
        if name not in done:
            root = tmp_path_factory.mktemp(name.replace("/", "_")).resolve()
            done[name] = run(ALL[name], root / "run")
        return done[name]

    return once


def expected_exit(case: Case) -> int:
    for row in deviations.EXITS:
        if row.case == case.name:
            assert row.recorded == case.exit_code != row.ours
            return row.ours
    return case.exit_code


def expected_log(case: Case) -> list[str]:
    log = list(case.log)
    for row in deviations.LOGS:
        if row.case == case.name:
            log = row.apply(log)
    return log


def expected_sheets(case: Case, file: str) -> list[Table]:
    tables = read_xlsx(case.expected()[file])
    for row in deviations.CELLS:
        if (row.case, row.file) == (case.name, file):
            tables[0] = row.apply(tables[0])
    for table in tables:
        table.unordered, table.measured = case.name in UNORDERED, case.name in MEASURED
    return tables


def expected_csv(case: Case, file: str) -> Table:
    table = read_csv(case.expected()[file])
    for row in deviations.FILES:
        if (row.case, row.file) == (case.name, file):
            table = row.apply(table)
    table.measured = case.name in MEASURED
    return table


def expected_text(case: Case, file: str) -> str:
    text = case.expected()[file].read_text(encoding="utf-8")
    for row in deviations.TEXTS:
        if (row.case, row.file) == (case.name, file):
            text = row.apply(text)
    return text


def without_folder(table: Table, folder: Path, columns: tuple[str, ...]) -> Table:
    """The records name files relative to where they were made; the program names them absolutely."""
    for column in columns:
        position = table.header.index(column)
        for row in table.rows:
            name = row[position]
            if isinstance(name, str):
                assert f"{folder}/" in name, f"{column} is no absolute path: {name}"
                row[position] = name.replace(f"{folder}/", "")
    return table


def read_mapping(text: str) -> list[tuple[str, str]]:
    """The pairs of a flat yaml mapping, in order."""
    pairs = []
    for line in text.splitlines():
        key, separator, value = line.partition(": ")
        assert separator, f"not a line of a flat mapping: {line!r}"
        pairs.append((key.strip("'\""), value.strip("'\"")))
    return pairs


def compare_file(case: Case, file: str, ours: Path, folder: Path) -> list[str]:
    if file.endswith(".xlsx"):
        sheets = read_xlsx(ours)
        if case.name in UNORDERED:
            sheets[0] = without_folder(sheets[0], folder, ("NPU Name", "Bench Name"))
        return compare_sheets(expected_sheets(case, file), sheets)
    if file.endswith(".csv"):
        table = read_csv(ours)
        if case.name == "ms_common_dir" and table.header:
            position = table.header.index("Data_name")
            for row in table.rows:
                row[position] = str(row[position]).replace(f"{folder}/", "")
        return compare_tables(expected_csv(case, file), table)
    if file.endswith(".json"):
        return compare_documents(json.loads(case.expected()[file].read_text()), json.loads(ours.read_text()))
    recorded, found = expected_text(case, file), ours.read_text(encoding="utf-8")
    if file.endswith(".yaml"):
        return (
            [] if read_mapping(recorded) == read_mapping(found) else [f"recorded\n{recorded}found\n{found}"]
        )
    return [] if recorded == found else [f"recorded\n{recorded}found\n{found}"]


@pytest.mark.parametrize("name", ALL)
def test_exit_code(name: str, ran: Run) -> None:
    outcome = ran(name)
    assert outcome.exception is None, outcome.text
    assert outcome.exit_code == expected_exit(ALL[name]), outcome.text


@pytest.mark.parametrize("name", ALL)
def test_files(name: str, ran: Run) -> None:
    """All that is recorded is there; of tables, advice and mappings, no more than that."""
    recorded = set(ALL[name].expected())
    found = set(ran(name).outputs())
    assert recorded <= found, ran(name).text
    more = {file for file in found - recorded if file.endswith((".xlsx", ".txt", ".yaml"))}
    assert not more


@pytest.mark.parametrize(
    ("name", "file"), [(name, file) for name, case in ALL.items() for file in case.expected()]
)
def test_contents(name: str, file: str, ran: Run) -> None:
    outcome = ran(name)
    assert file in outcome.outputs(), outcome.text
    differences = compare_file(ALL[name], file, outcome.outputs()[file], outcome.folder)
    assert not differences, "\n".join([f"{len(differences)} differences", *differences[:40]])


@pytest.mark.parametrize("name", ALL)
def test_log(name: str, ran: Run) -> None:
    outcome = ran(name)
    missing = missing_lines(expected_log(ALL[name]), outcome.log)
    assert not missing, "\n".join(["missing:", *missing, "found:", outcome.text])


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("newest_")])
def test_modes(name: str, ran: Run) -> None:
    """Files are for the user and the group, and nobody else."""
    outcome = ran(name)
    for file in ALL[name].expected():
        assert file in outcome.outputs(), outcome.text
        path = outcome.outputs()[file]
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, file
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o750, path.parent.name


@pytest.mark.parametrize("name", ["tensor_edge", "ms_common_dir"])
def test_a_message_is_given_once(name: str, ran: Run) -> None:
    """The reference says of an array without dimensions the same sentence sixteen times."""
    seen = 0
    for file, path in ran(name).outputs().items():
        if file not in ALL[name].expected() or not file.endswith((".xlsx", ".csv")):
            continue
        table = read_xlsx(path)[0] if file.endswith(".xlsx") else read_csv(path)
        for message in table.column("Err_message"):
            count = str(message).count(ZERO_D)
            assert count <= 1, message
            seen += count
    assert seen, f"{name} has no such array"


def test_every_deviation_has_its_case() -> None:
    named = [(row.case, row.file) for row in deviations.CELLS]
    named += [(row.case, row.file) for row in deviations.FILES]
    named += [(row.case, row.file) for row in deviations.TEXTS]
    for name, file in named:
        assert file in ALL[name].expected()
    cases = {row.case for row in deviations.LOGS} | {row.case for row in deviations.EXITS}
    assert cases <= set(ALL)
