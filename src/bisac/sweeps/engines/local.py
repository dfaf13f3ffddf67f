"""The local engine: runs as processes of this machine."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bisac.sweeps.engines import launch
from bisac.sweeps.engines.base import EndedProcess
from bisac.sweeps.folders import LOG
from bisac.sweeps.plan import PlannedRun


def start_process(folders: Sequence[Path], arguments: Sequence[str], cores: int) -> subprocess.Popen[bytes]:
    """Start a process for the runs of these folders, pinned to as many cores; what it says goes to the first's log."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    # In isolation the launcher cannot take a file that lies beside it for a module of the standard library.
    command = [
        sys.executable,
        "-I",
        launch.__file__,
        json.dumps([str(folder) for folder in folders]),
        str(cores),
        str(os.getpid()),
        *arguments,
    ]
    with (folders[0] / LOG).open("ab") as log:
        log.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} on {platform.node()}\n".encode())
        log.flush()
        # A session of its own: a Ctrl-C at the terminal reaches the sweep alone, which passes it on once.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


class LocalEngine:
    """Runs as many runs at a time as there are slots, each on cores of its own."""

    def __init__(self, slots: int, cores: int):
        self.slots, self._cores = slots, cores
        self._running: list[tuple[PlannedRun, subprocess.Popen[bytes]]] = []

    def room(self) -> bool:
        """Whether a slot is free."""
        return len(self._running) < self.slots

    def start(self, run: PlannedRun) -> None:
        """Begin a run or go on with it."""
        self._running.append((run, start_process([each.folder for each in run.all], run.arguments, self._cores)))

    def ended(self) -> list[EndedProcess]:
        """Return the processes that have ended since the last call."""
        ended = [EndedProcess(run, code) for run, process in self._running if (code := process.poll()) is not None]
        self._running = [(run, process) for run, process in self._running if process.returncode is None]
        return ended

    def stop(self, number: int, run: PlannedRun | None = None) -> None:
        """Pass a signal on to every process, or to that of one run."""
        for each, process in self._running:
            if run is None or run == each:
                process.send_signal(number)

    def close(self) -> None:
        """End whatever still runs, at once."""
        for _, process in self._running:
            process.kill()
            process.wait()
