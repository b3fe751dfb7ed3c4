"""Random hierarchies through the reference 8.1.2 and through ours: equal but for listed differences.

    python -m tests.python.graph.differential REFERENCE_PYTHON MSPROBE [COUNT] [SEED]
    python -m tests.python.graph.differential REFERENCE_PYTHON --record

REFERENCE_PYTHON is the interpreter of an environment with mindstudio-probe 8.1.2, MSPROBE our binary.
``--record`` writes digests of what the reference gives to ``tests/golden/graph_differential.json``, which
``test_differential.py`` compares ours with where the reference is not installed.
Differences that are meant are in ``docs/differences.md``: collections of real data, names that hold
``.output.`` or ``.input.`` themselves, values a fuzzy match leaves without a partner, and calls below
nothing.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.python.graph.random_hierarchies import write_pair

RECORDED = Path(__file__).parents[2] / "golden" / "graph_differential.json"
RECORDED_SEEDS = 60
# With -lm it breaks off where a tensor without dimensions meets one with some.
FAILED = "the reference fails"
FLAGS = [[], ["-f"], ["-oc"], ["-cs"], ["-lm"]]


def first_difference(ours: Any, theirs: Any, at: str = "") -> str | None:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            only_ours = [key for key in ours if key not in theirs][:3]
            only_theirs = [key for key in theirs if key not in ours][:3]
            return f"{at}: keys {only_ours} / {only_theirs}, or their order"
        for key in theirs:
            if difference := first_difference(ours[key], theirs[key], f"{at}/{key}"):
                return difference
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{at}: {ours} / {theirs}"
        for index, (one, two) in enumerate(zip(ours, theirs)):
            if difference := first_difference(one, two, f"{at}/{index}"):
                return difference
        return None
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)) and not isinstance(ours, bool):
        return None if abs(ours - theirs) <= 1e-12 else f"{at}: {ours} / {theirs}"
    return None if ours == theirs else f"{at}: {ours!r} / {theirs!r}"


def without_surplus(document: Any) -> Any:
    """Without what the reference shows of a value that has no partner: statistics in the error columns; and
    without the index of collections of real data, which it makes before there is any."""
    for node in document.get("NPU", {}).get("node", {}).values():
        if document.get("task") == "all" and node["node_type"] == 9:
            node["data"].pop("precision_index", None)
        for values in (node["input_data"], node["output_data"]):
            for value in values.values():
                if value.get("Max diff") == " ":
                    for key in ("MeanRelativeErr", "NormRelativeErr"):
                        value.pop(key, None)
    return document


def read_result(out: Path) -> dict[str, Any] | None:
    """Files by their name without the time."""
    files = sorted(out.glob("*.vis"))
    documents = {file.name.rsplit("_", 1)[0]: without_surplus(json.loads(file.read_text())) for file in files}
    return documents or None


def rounded(value: Any) -> Any:
    """Numbers as both tools agree on them."""
    if isinstance(value, dict):
        return {key: rounded(member) for key, member in value.items()}
    if isinstance(value, list):
        return [rounded(member) for member in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    # A whole number and a float of the same value are equal in Python, and read differently.
    return round(float(value), 9)


def digest(documents: Any) -> str:
    """Paths differ from run to run; nothing else does."""
    return hashlib.sha256(json.dumps(rounded(documents)).encode()).hexdigest()[:16]


def write_job(root: Path, seed: int) -> dict[str, Any]:
    """Dumps and the call on them."""
    target, golden, mode = write_pair(root, seed)
    flags = FLAGS[(seed // 4) % len(FLAGS)]
    config: dict[str, Any] = {"npu_path": str(target), "is_print_compare_log": False}
    if seed % 5:
        config["bench_path"] = str(golden)
    (root / "compare.json").write_text(json.dumps(config))
    return {"seed": seed, "mode": mode, "flags": flags, "root": str(root)}


def run_reference(reference: str, jobs: list[dict[str, Any]]) -> list[str]:
    """Does all jobs, and gives what was said of each."""
    their_jobs = [
        {"input": f"{job['root']}/compare.json", "output": f"{job['root']}/theirs", "flags": job["flags"]}
        for job in jobs
    ]
    worker = Path(__file__).parent / "reference_worker.py"
    done = subprocess.run(
        [reference, str(worker)], input=json.dumps(their_jobs), capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def run_ours(command: list[str], job: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Does one job."""
    root = Path(job["root"])
    arguments = ["-f", "pytorch", "graph", "-i", f"{root}/compare.json", "-o", f"{root}/ours"]
    return subprocess.run([*command, *arguments, *job["flags"]], capture_output=True, text=True, check=False)


def record(reference: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        jobs = [write_job(Path(name) / str(seed), seed) for seed in range(RECORDED_SEEDS)]
        run_reference(reference, jobs)
        results = {str(job["seed"]): read_result(Path(job["root"]) / "theirs") for job in jobs}
    digests = {seed: digest(result) if result else FAILED for seed, result in results.items()}
    RECORDED.write_text(json.dumps(digests, indent=1) + "\n")
    return 0


def main() -> int:
    reference, msprobe = sys.argv[1], sys.argv[2]
    if msprobe == "--record":
        return record(reference)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else RECORDED_SEEDS
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with tempfile.TemporaryDirectory() as name:
        jobs = [write_job(Path(name) / str(seed), seed) for seed in range(first, first + count)]
        failures = 0
        for job, said in zip(jobs, run_reference(reference, jobs)):
            root = Path(job["root"])
            ours_run = run_ours([msprobe], job)
            ours, theirs = read_result(root / "ours"), read_result(root / "theirs")
            difference = first_difference(ours, theirs)
            if theirs is None and ours is not None and "too many indices" in said:
                difference = None
            elif ours is None or theirs is None:
                difference = f"ours {ours_run.stderr[-300:]!r}, theirs {said}"
            if difference:
                failures += 1
                print(f"{job['seed']} {job['mode']} {' '.join(job['flags'])}: {difference}", flush=True)
        print(f"{failures} of {len(jobs)} differ")
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
