"""The reference and our program on the same random dumps; prints every row on which they disagree.

    python tests/python/compare/differential.py --reference-python P --ours CMD [--seed S] [--cases N]

P is a Python that has the reference installed (requirements/reference.txt); CMD is our program, for example
target/release/msprobe. It needs PyTorch and openpyxl where it runs itself. Not part of the tests, because the
reference is not installed there. Runs in which the reference itself ends with an exception are counted apart.
Differences that are decided (deviations.py: null statistics, colour of NaN) are expected of ours, unless
--unmended is given, with which the reference can be held against itself.

To look at one case: `--seed S --cases 1 --keep FOLDER` leaves inputs, `reference` and `ours` there.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.python.compare.golden_cases import STAMP
from tests.python.compare.random_dumps import Generator, Pair
from tests.python.compare.tables import (
    DIFFERENCE_OF,
    NAN_REASON,
    STATISTIC_CELLS,
    STATISTIC_OF,
    Table,
    compare_sheets,
    read_xlsx,
)

MODES = ["statistics", "md5", "tensor"]
TOO_LARGE = "maximum absolute error exceeds 1e+10"
RED = {
    NAN_REASON,
    TOO_LARGE,
    "maximum relative error exceeds 0.5",
    "The input/parameter's one thousandth err ratio exceeds 0.9, while the output's is below 0.6",
}

# Runs in the reference's Python: one comparison per line of input, one line of output for each.
WORKER = """
import json, os, sys
replies = os.fdopen(os.dup(1), "w", buffering=1)
quiet = os.open(os.devnull, os.O_WRONLY)
os.dup2(quiet, 1)
os.dup2(quiet, 2)
from msprobe.pytorch import compare
for line in sys.stdin:
    job = json.loads(line)
    os.chdir(job["folder"])
    try:
        compare(job["inputs"], "reference", **job["options"])
        error = None
    except BaseException as raised:
        error = f"{type(raised).__name__} {getattr(raised, 'code', '')} {raised}".strip()
    replies.write(json.dumps(error) + "\\n")
"""


class Reference:
    """A process that imports the reference once; importing takes longer than most comparisons."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.process: subprocess.Popen[str] | None = None

    def compare(self, pair: Pair, folder: Path) -> str | None:
        """What it ended with, if not well."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [self.python, "-c", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, "OMP_NUM_THREADS": "1"},
            )
        options: dict[str, Any] = {"fuzzy_match": pair.fuzzy}
        if pair.mapping:
            options["data_mapping"] = "mapping.yaml"
        inputs = {
            "npu_json_path": f"npu/{pair.file}",
            "bench_json_path": f"bench/{pair.file}",
            "is_print_compare_log": False,
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        job = {"folder": str(folder), "inputs": inputs, "options": options}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline()
        return json.loads(reply) if reply else "the process ended"

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def compare_ours(command: list[str], pair: Pair, folder: Path) -> subprocess.CompletedProcess[str]:
    inputs = {
        "npu_path": f"npu/{pair.file}",
        "bench_path": f"bench/{pair.file}",
        "is_print_compare_log": False,
    }
    (folder / "compare.json").write_text(json.dumps(inputs))
    line = [*command, "-f", "pytorch", "compare", "-i", "compare.json", "-o", "ours"]
    line += ["-f"] if pair.fuzzy else []
    line += ["-dm", "mapping.yaml"] if pair.mapping else []
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


# What is expected of ours where the reference is wrong


def mend(table: Table, *, colours: bool) -> None:
    """Null statistics are `None`, and a NaN among maximum and minimum colours its row."""
    position = {name: index for index, name in enumerate(table.header)}
    if "NPU max" not in position:
        return
    for index, row in enumerate(table.rows):
        nulls = {column for column in STATISTIC_CELLS if row[position[column]] == "nan\t"}
        for column in nulls:
            row[position[column]] = "None"
        if "Max diff" in position:
            for column, statistic in [*DIFFERENCE_OF.items(), *STATISTIC_OF.items()]:
                if {f"NPU {statistic}", f"Bench {statistic}"} & nulls and row[position[column]] == "Nan":
                    row[position[column]] = "N/A"
        if not colours:
            continue
        extremes = [str(row[position[f"NPU {statistic}"]]).strip().lower() for statistic in ("max", "min")]
        lines = str(row[position["Err_message"]] or "").split("\n")
        lines = [line for line in lines if line]
        if any(text in ("nan", "inf", "-inf") for text in extremes):
            if NAN_REASON not in lines:
                kept = [line for line in lines if line in RED or not _is_reason(line)]
                lines = [*(line for line in kept if line != TOO_LARGE), NAN_REASON]
            table.fills[index] = "red"
        elif NAN_REASON in lines:
            lines.remove(NAN_REASON)
            table.fills[index] = "red" if RED & set(lines) else ""
        row[position["Err_message"]] = "\n".join(lines) or None


def _is_reason(line: str) -> bool:
    return line.startswith(("maximum ", "The output's ", "The input/parameter's "))


# One case


def files(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    found = {STAMP.sub("", path.name): path for path in sorted(folder.iterdir())}
    return {name: path for name, path in found.items() if name.endswith((".xlsx", ".txt"))}


def differences(pair: Pair, folder: Path, *, mended: bool) -> list[str]:
    reference, ours = files(folder / "reference"), files(folder / "ours")
    if set(reference) != set(ours):
        return [f"files: the reference wrote {sorted(reference)}, ours {sorted(ours)}"]
    lines: list[str] = []
    for name, path in reference.items():
        if name.endswith(".xlsx"):
            expected = read_xlsx(path)
            for table in expected:
                table.noisy = True
                if mended:
                    mend(table, colours=pair.file == "dump.json")
            lines += [f"{name}: {line}" for line in compare_sheets(expected, read_xlsx(ours[name]))]
        elif path.read_text() != ours[name].read_text():
            lines.append(f"{name}: reference\n{path.read_text()}ours\n{ours[name].read_text()}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reference-python", required=True)
    parser.add_argument("--ours", required=True, type=shlex.split)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument(
        "--duplicates", action="store_true", help="also dumps in which two rows have one name"
    )
    parser.add_argument("--unmended", action="store_true", help="expect what the reference does, defects too")
    parser.add_argument("--keep", type=Path, help="a folder to leave all cases in")
    parser.add_argument("--rows", type=int, default=15, help="differences shown per case")
    options = parser.parse_args()

    # A program given by a relative path has to be found from the folders of the cases too.
    if Path(options.ours[0]).exists():
        options.ours[0] = str(Path(options.ours[0]).resolve())
    counts: Counter[str] = Counter()
    crashes: Counter[str] = Counter()
    reference = Reference(options.reference_python)
    with tempfile.TemporaryDirectory() as scratch:
        root = (options.keep or Path(scratch)).resolve()
        for seed in range(options.seed, options.seed + options.cases):
            pair = Generator(seed, options.modes, duplicates=options.duplicates).pair()
            folder = root / f"seed{seed}"
            pair.write(folder)
            crashed = reference.compare(pair, folder)
            done = compare_ours(options.ours, pair, folder)
            title = f"seed {seed} ({pair.mode}{', fuzzy' if pair.fuzzy else ''}, {pair.file}"
            title += f"{', mapping' if pair.mapping else ''})"
            if crashed is not None:
                crashes[crashed.splitlines()[0][:100]] += 1
                counts[f"reference failed, ours exited with {done.returncode}"] += 1
                if done.returncode not in (0, 2):
                    print(f"{title}: the reference failed ({crashed}) and ours: {done.stderr[-500:]}")
                continue
            # 2 also says that a tensor could not be read; its table is there all the same.
            wrote = any((folder / "ours").glob("*compare_result*.xlsx"))
            if done.returncode not in (0, 2) or (done.returncode == 2 and not wrote):
                counts["ours failed"] += 1
                print(f"{title}: ours exited with {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
                continue
            found = differences(pair, folder, mended=not options.unmended)
            counts["different" if found else "same"] += 1
            if found:
                print(f"{title}: {len(found)} differences")
                for line in found[: options.rows]:
                    print(f"  {line}")
    reference.close()
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    for error, count in crashes.most_common():
        print(f"       {count} x reference: {error}")
    return 1 if counts["different"] or counts["ours failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
