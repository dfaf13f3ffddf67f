"""A program that starts a run, or goes on with it, on cores of its own: launch.py FOLDERS CORES PARENT train ENV ...

It is run by its path and must know nothing of bisac, only the standard library: the affinity must be set before JAX is
imported. It then becomes the run's process, which stops and saves itself when its parent dies.
"""

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds for another process that still trains in the folder to save itself and end."""


def main() -> None:
    """Become `bisac train ...`, or `bisac resume FOLDER ...` where that was begun before."""
    listed, cores, parent, *train = sys.argv[1:]
    folders = json.loads(listed)
    # A shell's background jobs ignore SIGINT, and Ray's workers block it; a run must hear it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    die_with(int(parent))
    for folder in folders:
        wait_until_free(Path(folder))
    take_cores(int(cores))
    begun = any(Path(folder, name).exists() for folder in folders for name in ("config.json", "checkpoints"))
    os.execv(sys.executable, [sys.executable, "-m", "bisac", *(["resume", *folders] if begun else train)])


def die_with(parent: int) -> None:
    """Have the system send SIGTERM when the parent dies, even of kill -9, so that no run goes on unnoticed."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
        if os.getppid() != parent:  # it died before it was asked for
            sys.exit(128 + signal.SIGTERM)


def wait_until_free(folder: Path) -> None:
    """Wait for a run whose sweep was killed, and which saves itself now; one that stays is told by `bisac` itself."""
    import fcntl  # of Unix alone, and wanted only here

    deadline = time.monotonic() + PATIENCE
    with (folder / ".lock").open("a") as lock:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.2)


def take_cores(count: int) -> None:
    """Pin this process to those of its cores on which the fewest runs are pinned, whatever sweep they are of.

    A lock on a file marks a core as taken; it stays open in the run's process, and ends with it however it ends.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    marks = Path(tempfile.gettempdir(), f"bisac-cores-{os.getuid()}")
    marks.mkdir(exist_ok=True)
    taken: list[int] = []
    for level in range(1000):  # the second run on a core takes its second mark
        for core in cores:
            if len(taken) == min(count, len(cores)):
                os.sched_setaffinity(0, taken)
                return
            if core not in taken and _mark(marks / f"{core}.{level}"):
                taken.append(core)


def _mark(path: Path) -> bool:
    """Take a mark for as long as this process lives, if it is free."""
    import fcntl

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    os.set_inheritable(descriptor, True)
    return True


if __name__ == "__main__":
    main()
