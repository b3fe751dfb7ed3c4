"""Scripts for processes of their own, whose ends and failures are what is tested."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

from msprobe.core import SingleSave

LARGE = 1 << 20


def ends(folder: Path, how: str) -> None:
    """Saves, and ends without a word to the saver."""
    SingleSave(str(folder / "dump"))
    for n in range(4):
        SingleSave.save({"k": torch.full((LARGE,), float(n))})
    if how == "exception":
        raise ValueError("of the script")
    if how == "exit":
        sys.exit(3)


def full_disk(folder: Path) -> None:
    """Files can no longer grow in the middle of a run, as on a full disk; training goes on."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    SingleSave(str(folder / "dump"))
    SingleSave.save({"before": torch.ones(10)})
    SingleSave.step()
    # Enough for what the script prints, which may go to a file.
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))
    for _ in range(5):
        SingleSave.save({"k": torch.ones(LARGE), "after": torch.ones(10)})
        SingleSave.step()
    print(f"TRAINED {SingleSave._instance.step_count}")


def vanished(folder: Path) -> None:
    """The dump becomes a file while the run goes on."""
    SingleSave(str(folder / "dump"))
    SingleSave.save({"k": torch.ones(10)})
    SingleSave.flush()
    shutil.rmtree(folder / "dump")
    (folder / "dump").write_text("in the way")
    for _ in range(3):
        SingleSave.save({"k": torch.ones(10)})
        SingleSave.step()
    print(f"TRAINED {SingleSave._instance.step_count}")


def child(rank: int, dump: str, inherited: bool) -> None:
    assert (SingleSave._instance is not None) == inherited
    SingleSave(dump)
    for n in range(3):
        SingleSave.save({f"rank{rank}": torch.full((1000,), float(n))})


def children(folder: Path, method: str) -> None:
    """Processes of torch.multiprocessing that save, and end without a step."""
    dump = str(folder / "dump")
    if method == "fork":
        SingleSave(dump)
        SingleSave.save({"parent": torch.ones(LARGE)})
    context: Any = mp.get_context(method)
    started = [context.Process(target=child, args=(rank, dump, method == "fork")) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
    assert [process.exitcode for process in started] == [0, 0]
    if method == "fork":
        SingleSave.save({"parent": torch.ones(3)})


def forked_under_lock(folder: Path) -> None:
    """A fork while another thread is saving: the child must not wait for that thread."""
    SingleSave(str(folder / "dump"))
    # Before the thread starts: PyTorch does things at a first call, under locks a child cannot renew.
    busy, small = torch.ones(LARGE), torch.ones(5)
    SingleSave.save_ex({"busy": busy}, micro_batch=0)
    stop = threading.Event()

    def save() -> None:
        while not stop.is_set():
            SingleSave.save_ex({"busy": busy}, micro_batch=0)

    thread = threading.Thread(target=save)
    thread.start()
    ends = []
    for n in range(5):
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            SingleSave.save_ex({f"child{n}": small})
            SingleSave.step()
            os._exit(0)
        ends.append(os.waitpid(pid, 0)[1])
    stop.set()
    thread.join()
    assert ends == [0] * 5, ends


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
