"""A sweep: many runs over one folder, begun, gone on with, or left alone as they need; each by an engine's process.

Runs share nothing but the disk. What a run has come to is read from its own folder, so that a sweep can be stopped in
any way and started again, on this machine or another.
"""

import signal
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.runs.signals import stop_requests
from bisac.sweeps.plan import PlannedRun

LOG = "sweep.log"
"""What a run's process says, in the run's folder."""
GRACE = 60.0
"""Seconds that runs have to save themselves when the sweep itself fails."""


@dataclass(frozen=True)
class Ended:
    """A run that runs no more."""

    run: PlannedRun
    code: int | None
    """Its process's exit code; None if it had none, or that is lost."""
    problem: str = ""
    """Why there is no exit code."""

    @property
    def stopped(self) -> bool:
        """Whether a signal ended it, which it heard (and saved itself) or did not live to hear."""
        signals = (signal.SIGINT, signal.SIGTERM)
        return self.code in (*(128 + number for number in signals), *(-number for number in signals))

    @property
    def reason(self) -> str:
        """How it ended, in words."""
        return self.problem or f"exit code {self.code}"


@runtime_checkable
class Engine(Protocol):
    """Where runs run."""

    @property
    def slots(self) -> int:
        """Runs that it has room for at a time; none while a cluster has no node that is large enough."""
        ...

    def room(self) -> bool:
        """Whether it takes another run now."""
        ...

    def start(self, run: PlannedRun) -> None:
        """Begin a run or go on with it, in a process of its own; an OSError tells why there is none."""

    def ended(self) -> list[Ended]:
        """The runs whose process has ended since the last call."""
        ...

    def stop(self, number: int) -> None:
        """Pass a signal on to every process: save and end."""

    def close(self) -> None:
        """End whatever still runs, at once."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come, as its folder tells."""

    step: int
    seconds: float
    eval_return: float | None
    rate: float | None
    """Steps a second lately."""
    complete: bool


def progress_of(run: PlannedRun) -> Progress:
    """Read a run's folder, which another process may be writing."""
    rows = read_log(RunFolder(run.folder))
    if not rows:
        return Progress(0, 0.0, None, None, False)
    step, seconds = int(rows[-1]["step"] or 0), rows[-1]["wall_time"] or 0.0
    earlier = rows[-6] if len(rows) > 5 else {"step": 0.0, "wall_time": 0.0}
    steps, elapsed = step - (earlier["step"] or 0.0), seconds - (earlier["wall_time"] or 0.0)
    complete = step >= run.settings.steps and (RunFolder(run.folder).policy.exists() or _only_record_kept(run.folder))
    return Progress(step, seconds, rows[-1]["eval_return"], steps / elapsed if elapsed > 0 else None, complete)


def _only_record_kept(folder: Path) -> bool:
    """Whether a run's folder is a copy of its numbers alone: what it has come to, and nothing to go on with."""
    return not ((folder / LOG).exists() or RunFolder(folder).checkpoints.exists())


def remaining_seconds(runs: Iterable[PlannedRun], told: dict[Path, Progress], slots: int) -> float | None:
    """Until all are complete, from what steps have cost so far; None while nothing has been measured."""
    runs = list(runs)
    measured = [run for run in runs if told[run.folder].step]
    if not measured:
        return None

    def cost(run: PlannedRun) -> float:
        like = [other for other in measured if (other.env, other.contestant) == (run.env, run.contestant)]
        like = like or [other for other in measured if other.env == run.env] or measured
        return sum(told[o.folder].seconds for o in like) / sum(told[o.folder].step for o in like)

    left = [cost(run) * (run.settings.steps - told[run.folder].step) for run in runs if not told[run.folder].complete]
    return max(sum(left) / max(1, slots), *left) if left else 0.0


@dataclass(frozen=True)
class Watched:
    """What there is to show of a sweep at a moment."""

    runs: Sequence[PlannedRun]
    told: dict[Path, Progress]
    running: set[Path]
    failed: dict[Path, str]
    """How the runs ended that ended before they were complete."""
    remaining: float | None


@runtime_checkable
class SweepWatcher(Protocol):
    """Whoever shows a sweep to its user."""

    def started(self, run: PlannedRun) -> None:
        """A run's process was started."""

    def ended(self, ended: Ended, progress: Progress) -> None:
        """A run's process has ended, or could not be started."""

    def show(self, watched: Watched) -> None:
        """Called about once a second."""


@dataclass(frozen=True)
class SweepOutcome:
    """What is left of a sweep when it stops."""

    complete: list[PlannedRun]
    failed: dict[Path, str]
    stopped_by: int | None


def execute(runs: Sequence[PlannedRun], engine: Engine, watcher: SweepWatcher) -> SweepOutcome:
    """Run all that is not complete; a signal asks the running ones to save, and ends the sweep."""
    told = {run.folder: progress_of(run) for run in runs}
    waiting = deque(run for run in runs if not told[run.folder].complete)
    running: dict[Path, PlannedRun] = {}
    said: dict[Path, int] = {}
    begun: set[Path] = set()
    failed: dict[Path, str] = {}
    passed_on = False
    with stop_requests() as requests:
        try:
            while running or (waiting and not requests):
                over: list[Ended] = []
                while waiting and not requests and engine.room():
                    run = waiting.popleft()
                    said[run.folder] = _size(run.folder / LOG)
                    try:
                        engine.start(run)
                        running[run.folder] = run
                    except OSError as error:  # a full disk, say: the others may do better
                        over.append(Ended(run, None, f"{error.strerror or error}: {error.filename or run.folder}"))
                # An engine may let a run wait for room; its log grows when its process is there.
                for run in [run for folder, run in running.items() if folder not in begun]:
                    if _size(run.folder / LOG) > said[run.folder]:
                        begun.add(run.folder)
                        watcher.started(run)
                for ended in (*over, *engine.ended()):
                    folder = ended.run.folder
                    running.pop(folder, None)
                    told[folder] = progress_of(ended.run)
                    if not told[folder].complete and not requests:
                        failed[folder] = ended.reason
                    if folder in begun or not requests:  # else it was called off before it began
                        watcher.ended(ended, told[folder])
                if requests and not passed_on:
                    engine.stop(requests[0])
                    passed_on = True
                told |= {folder: progress_of(run) for folder, run in running.items()}
                remaining = remaining_seconds(runs, told, engine.slots)
                watcher.show(Watched(runs, told, begun & running.keys(), failed, remaining))
                time.sleep(0.5)
        except Exception:  # of the sweep itself: what its runs have learned is not to be lost
            engine.stop(signal.SIGTERM)
            deadline = time.monotonic() + GRACE
            while running and time.monotonic() < deadline:
                for ended in engine.ended():
                    del running[ended.run.folder]
                time.sleep(0.1)
            raise
        finally:
            engine.close()
    complete = [run for run in runs if told[run.folder].complete]
    return SweepOutcome(complete, failed, requests[0] if requests else None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
