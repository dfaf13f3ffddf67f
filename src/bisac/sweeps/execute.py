"""A sweep in time: what is not complete is begun or gone on with by an engine, and everything is told as events.

It knows nothing of terminals, and of a run only what its folder tells.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from bisac.runs.folder import RunFolder
from bisac.runs.signals import stop_requests
from bisac.sweeps.engines.base import EndedProcess, Engine
from bisac.sweeps.events import RunEnded, RunLost, RunStarted, SweepEvent, SweepFinished, SweepProgressed
from bisac.sweeps.folders import LOG
from bisac.sweeps.groups import side_by_side
from bisac.sweeps.plan import PlannedRun
from bisac.sweeps.progress import progress_of, remaining_seconds

Event = TypeVar("Event")

GRACE = 60.0
"""Seconds that runs have to save themselves when the sweep itself fails or is left."""
INTERVAL = 0.5
"""Seconds between two looks at the runs."""


@contextmanager
def execute(runs: Sequence[PlannedRun], engine: Engine) -> Iterator[Iterator[SweepEvent]]:
    """Give the events of a sweep, which runs all that is not complete while they are iterated.

    A signal asks the running ones to save, and ends the sweep; a second one ends everything at once. Whoever leaves the
    block before the last event, or fails in it, has the running ones save themselves too. The engine is closed.
    """
    sweep = _Sweep(runs, engine)
    with supervised(sweep.events, sweep.running, engine) as events:
        yield events


@contextmanager
def supervised(
    events: Callable[[Sequence[int]], Iterator[Event]], running: dict[Path, PlannedRun], engine: Engine
) -> Iterator[Iterator[Event]]:
    """Give events, which are told of the signals that come; what is running when they are left saves itself.

    `running` are the runs of the engine by their folders. The engine is closed.
    """
    with stop_requests() as requests:
        try:
            yield events(requests)
            _save(running, engine)
        except Exception:  # of the work itself or of who watches it: what its runs have learned is not to be lost
            _save(running, engine)
            raise
        finally:
            engine.close()


def _save(running: dict[Path, PlannedRun], engine: Engine) -> None:
    """Ask the runs that still run to save themselves, and wait for them a while."""
    if not running:
        return
    engine.stop(signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while running and time.monotonic() < deadline:
        for ended in engine.ended():
            running.pop(ended.run.folder, None)
        time.sleep(0.1)


class _Sweep:
    """The state of a sweep under way: which of its runs wait, run and have failed."""

    def __init__(self, runs: Sequence[PlannedRun], engine: Engine):
        self._runs, self._engine = runs, engine
        self._told = {run.folder: progress_of(run) for run in runs}
        self._waiting = deque(side_by_side(run for run in runs if not self._told[run.folder].complete))
        self.running: dict[Path, PlannedRun] = {}
        self._log_sizes: dict[Path, int] = {}
        """Bytes that a run's log had before the run was started."""
        self._begun: set[Path] = set()
        self._failed: dict[Path, str] = {}

    def events(self, requests: Sequence[int]) -> Iterator[SweepEvent]:
        """Run the sweep until it is over or one of the requests comes, which are signals' numbers."""
        passed_on = False
        while self.running or (self._waiting and not requests):
            refused = self._start_waiting(requests)
            yield from self._tell_begun()
            yield from self._tell_ended([*refused, *self._engine.ended()], requests)
            if requests and not passed_on:
                self._engine.stop(requests[0])
                passed_on = True
            running = [each for run in self.running.values() for each in run.all]
            self._told |= {run.folder: progress_of(run) for run in running}
            remaining = remaining_seconds(self._runs, self._told, self._engine.slots)
            begun = {run.folder for run in running if run.folder in self._begun}
            yield SweepProgressed(self._runs, dict(self._told), begun, dict(self._failed), remaining)
            time.sleep(INTERVAL)
        complete = [run for run in self._runs if self._told[run.folder].complete]
        yield SweepFinished(complete, dict(self._failed), requests[0] if requests else None)

    def _start_waiting(self, requests: Sequence[int]) -> list[EndedProcess]:
        """Start as many runs as the engine has room for; returns those that could not be started."""
        refused = []
        while self._waiting and not requests and self._engine.room():
            run = self._waiting.popleft()
            self._log_sizes[run.folder] = _size(run.folder / LOG)
            self._begun -= {each.folder for each in run.all}
            try:
                self._engine.start(run)
                self.running[run.folder] = run
            except OSError as error:  # a full disk, say: the others may do better
                where = error.filename or run.folder
                refused.append(EndedProcess(run, None, f"{error.strerror or error}: {where}"))
        return refused

    def _tell_begun(self) -> Iterator[RunStarted]:
        # An engine may let a run wait for room; its log grows when its process is there.
        for run in [run for folder, run in self.running.items() if folder not in self._begun]:
            if _size(run.folder / LOG) > self._log_sizes[run.folder]:
                self._begun |= {each.folder for each in run.all}
                yield from map(RunStarted, run.all)

    def _tell_ended(self, ended: Sequence[EndedProcess], requests: Sequence[int]) -> Iterator[RunEnded | RunLost]:
        lost = [process for process in ended if process.lost and not requests]
        for process in ended:  # before anything is told: whoever hears it may fail
            self.running.pop(process.run.folder, None)
        for process in lost:
            self._waiting.appendleft(process.run)
        yield from map(RunLost, (process for whole in lost for process in whole.each()))
        for whole in (whole for whole in ended if whole not in lost):
            for process in whole.each():
                folder = process.run.folder
                self._told[folder] = progress_of(process.run)
                if not self._told[folder].complete and not requests:
                    self._go_on_alone_or_fail(process, whole)
                if folder in self._begun or not requests:  # else it was called off before it began
                    yield RunEnded(process, self._told[folder])

    def _go_on_alone_or_fail(self, process: EndedProcess, whole: EndedProcess) -> None:
        """Let a run wait whose process had others to train, one of which may have failed them all."""
        folder = process.run.folder
        if whole.run.beside and not whole.stopped and RunFolder(folder).holds_a_run:
            self._waiting.append(replace(process.run, beside=()))
        else:
            self._failed[folder] = process.reason


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
