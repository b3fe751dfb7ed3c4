"""Records and tensor files of runs that come to a bad end: whatever a record names is there, and whole."""

from __future__ import annotations

import functools
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.python.collection import runs
from tests.python.collection.references import References, references
from tests.python.collection.test_crash import told_once

KILLS, SPAN_SECS = 6, 1.5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_killed_at_any_moment(tmp_path: Path, number: signal.Signals) -> None:
    jobs = {
        str(seed): functools.partial(
            runs.run_worker,
            tmp_path / str(seed),
            "killed_tensors",
            str(int(number)),
            str(seed),
            str(KILLS),
            str(SPAN_SECS),
        )
        for seed in range(2)
    }
    total = References()
    for result in runs.run_all(jobs).values():
        for index in range(KILLS):
            found = references(result.ok().folder / f"run{index}/dump")
            assert not found.dangling, f"{len(found.dangling)} beside {found.whole}: {found.dangling[:5]}"
            assert not found.unwritten
            total.records += found.records
            total.whole += found.whole
    assert total.whole > 500, total


TRAINING = """\
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(16, 400), nn.ReLU(), nn.Linear(400, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.linspace(-1, 1, 300 * 16).reshape(300, 16)

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()
"""


@functools.cache
def loss_after(steps: int) -> Any:
    """What the training ends with when nothing is collected."""
    source = runs.PRELUDE + TRAINING + f"result(train({steps}))\n"
    done = subprocess.run(
        [sys.executable, "-c", source], env=runs.environment(), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1].removeprefix("RESULT "))


def test_out_of_file_descriptors(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path,
        TRAINING
        + """\
import os, resource
debugger.start(model=model)
train(1)
debugger.stop()
debugger.start(model=model)
in_use = 1 + max(int(name) for name in os.listdir("/proc/self/fd"))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (in_use, hard))
spare = []
try:
    while True:
        spare.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
loss = train(2)
debugger.stop()
debugger.step()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
result(loss)
""",
        runs.config("mix", "tensor"),
    ).ok()
    assert result.printed() == loss_after(3)
    told_once(result, "dump_tensor_data")
    found = references(result.folder / "dump")
    assert not found.dangling
    assert found.whole > 20
    assert len(found.unwritten) > 40
    assert any("Too many open files" in reason for reason in found.unwritten)


def test_files_that_are_too_large(tmp_path: Path) -> None:
    """A limit on the size of files in place of a full disk: needs no rights."""
    result = runs.run_script(
        tmp_path,
        """\
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        debugger.start()
        for size in (8, 10, 100_000, 16, 20):
            torch.neg(torch.ones(size))
        debugger.stop()
        debugger.step()
        result("trained")
        """,
        runs.config("L1", "tensor"),
    ).ok()
    assert result.printed() == "trained"
    found = references(result.folder / "dump")
    assert not found.dangling
    assert (found.whole, len(found.unwritten)) == (4, 6)
    assert list(result.data()) == [f"Torch.neg.{call}.forward" for call in range(5)]
    large = result.data()["Torch.neg.2.forward"]["input_args"][0]
    assert large["data_name"] is None
    assert "File too large" in large["unwritten"]
    assert large["Max"] == 1.0


def test_overflows_name_only_what_is_there(tmp_path: Path) -> None:
    """Here tensors are saved after it is known that the record is wanted."""
    result = runs.run_script(
        tmp_path,
        """\
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        weight = nn.Parameter(torch.full((4,), 1e38))
        debugger.start()
        ((weight * 1e30).sum() * 1e30).backward()
        for size in (8, 100_000, 16):
            torch.neg(torch.full((size,), torch.inf))
        debugger.stop()
        debugger.step()
        """,
        runs.config("L1", "overflow_check", {"overflow_nums": -1}),
    ).ok()
    found = references(result.folder / "dump")
    assert not found.dangling
    data = result.data()
    assert [name for name in data if "neg" in name] == [f"Torch.neg.{call}.forward" for call in range(3)]
    assert any(name.endswith("backward") for name in data)
    small, large = (data[f"Torch.neg.{call}.forward"]["output"][0] for call in range(2))
    assert small["data_name"] == "Torch.neg.0.forward.output.0.pt"
    assert large["data_name"] is None
    assert found.whole > 4
    assert len(found.unwritten) == 6


def run_on_small_disk(folder: Path, size_mib: int, source: str) -> runs.Result:
    """The script with its dump on a disk of that size, which is gone afterwards: `dump` is a copy of it."""
    unshare = shutil.which("unshare")
    probe = "mkdir -p disk && mount -t tmpfs -o size=1m none disk"
    if (
        unshare is None
        or subprocess.run([unshare, "-rm", "sh", "-c", probe], cwd=folder, check=False).returncode
    ):
        pytest.skip("no small disk can be mounted here: needs unshare -rm and tmpfs")
    (folder / "config.json").write_text(json.dumps(runs.config("mix", "tensor", dump_path="./disk/dump")))
    head = runs.PRELUDE + 'debugger = PrecisionDebugger(config_path="./config.json")\n'
    (folder / "train.py").write_text(head + source)
    mount = f"mount -t tmpfs -o size={size_mib}m none disk"
    script = f"{mount} && {sys.executable} train.py; code=$?; cp -r disk/dump dump; exit $code"
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script],
        cwd=folder,
        env=runs.environment(),
        capture_output=True,
        text=True,
        timeout=runs.TIMEOUT_SECS,
        check=False,
    )
    return runs.Result(folder, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("size_mib", [24, 40])
def test_full_disk_keeps_the_index(tmp_path: Path, size_mib: int) -> None:
    result = run_on_small_disk(
        tmp_path,
        size_mib,
        TRAINING
        + """\
debugger.start(model=model)
loss = train(20)
debugger.stop()
debugger.step()
result(loss)
""",
    ).ok()
    assert result.printed() == loss_after(20)
    assert any("No space left on device" in error for error in result.errors())
    found = references(result.folder / "dump")
    assert not found.dangling
    assert found.whole > 20
    assert any("No space left on device" in reason for reason in found.unwritten)
    # The index has every record of the step, those after the last file too.
    data = result.data()
    forward = [name for name in data if name.startswith("Module.0.Linear.forward")]
    assert forward == [f"Module.0.Linear.forward.{call}" for call in range(20)]
    assert set(json.loads((result.path() / "construct.json").read_text())) >= set(forward)


def test_a_tensor_too_large_for_memory(tmp_path: Path) -> None:
    result = runs.run_script(
        tmp_path,
        TRAINING
        + """\
import resource
large, out = torch.ones(40_000_000), torch.empty(40_000_000)
debugger.start(model=model)
loss = train(2)
debugger.stop()
debugger.start(model=model)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), -1))
torch.neg(large, out=out)
loss = train(2)
debugger.stop()
debugger.step()
result([loss, out[-1].item()])
""",
        runs.config("mix", "tensor"),
    ).ok()
    assert result.printed() == [loss_after(4), -1.0]
    assert any("Collection stops" in error and "out of memory" in error for error in result.errors())
    found = references(result.folder / "dump")
    assert not found.dangling
    assert found.whole > 20
    assert any("out of memory" in reason for reason in found.unwritten)
    # Figures are there without the file.
    assert result.data()["Torch.neg.0.forward"]["input_args"][0]["Max"] == 1.0


def test_no_memory_for_what_is_recorded(tmp_path: Path) -> None:
    """The flight recorder fills all the memory there is."""
    result = runs.run_script(
        tmp_path,
        TRAINING
        + """\
import resource
for step in range(2):
    debugger.start(model=model)
    train(1)
    debugger.stop()
    debugger.step()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), -1))
parts = [torch.ones(3)] * 200
debugger.start(model=model)
for _ in range(1_000):
    torch.cat(parts)
debugger.stop()
debugger.step()
loss = train(2)
result(loss)
""",
        runs.config("mix", section={"flight_recorder": {"steps": 2, "max_memory_mb": 4000}}),
    ).ok()
    assert result.printed() == loss_after(4)
    assert any("Collection stops" in error and "out of memory" in error for error in result.errors())


def test_no_memory_for_one_large_record(tmp_path: Path) -> None:
    """Its text takes more memory than there is."""
    result = runs.run_script(
        tmp_path,
        TRAINING
        + """\
import resource
class Takes(torch.nn.Module):
    def forward(self, x, numbers):
        return x

takes, numbers = torch.nn.ModuleList([Takes()]), list(range(2_000_000))
debugger.start(model=[model, takes])
train(2)
debugger.stop()
debugger.start(model=[model, takes])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), -1))
takes[0](torch.ones(3), numbers)
loss = train(2)
debugger.stop()
debugger.step()
result(loss)
""",
        runs.config("mix"),
    ).ok()
    assert result.printed() == loss_after(4)
    assert any("Collection stops" in error and "out of memory" in error for error in result.errors())
