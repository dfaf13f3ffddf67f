"""A sweep: many runs over one folder, begun, gone on with, or left alone as they need; each by an engine's process.

Runs share nothing but the disk. What a run has come to is read from its own folder, so that a sweep can be stopped in
any way and started again, on this machine or another.
"""

import dataclasses
import json
import platform
import shlex
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bisac.errors import BisacError
from bisac.experiments.plan import Contestant, Plan, PlannedRun
from bisac.storage import read_file, write_atomic
from bisac.training.logs import read_log
from bisac.training.run_dir import RunDir, provenance
from bisac.training.settings import check_unchanged, to_config
from bisac.training.signals import stop_requests

RECORD, LOG = "sweep.json", "sweep.log"
"""The sweep's record in its folder, and what a run's process says, in the run's."""


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
    rows = read_log(RunDir(run.folder))
    if not rows:
        return Progress(0, 0.0, None, None, False)
    step, seconds = int(rows[-1]["step"] or 0), rows[-1]["wall_time"] or 0.0
    earlier = rows[-6] if len(rows) > 5 else {"step": 0.0, "wall_time": 0.0}
    steps, elapsed = step - (earlier["step"] or 0.0), seconds - (earlier["wall_time"] or 0.0)
    complete = step >= run.settings.steps and (RunDir(run.folder).policy.exists() or _only_record_kept(run.folder))
    return Progress(step, seconds, rows[-1]["eval_return"], steps / elapsed if elapsed > 0 else None, complete)


def _only_record_kept(folder: Path) -> bool:
    """Whether a run's folder is a copy of its numbers alone: what it has come to, and nothing to go on with."""
    return not ((folder / LOG).exists() or RunDir(folder).checkpoints.exists())


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


@dataclass(frozen=True)
class Record:
    """What sweep.json holds: all runs that were ever planned in the folder, and what they have in common."""

    envs: list[str]
    contestants: list[Contestant]
    runs: list[tuple[str, str, int]]
    """Environment, contestant's name and seed of each."""
    settings: dict[str, Any]
    hyperparameters: dict[str, Any]
    commands: list[list[str]]
    provenance: dict[str, Any]
    random_returns: dict[str, float] = dataclasses.field(default_factory=dict)
    """What a random policy gets on each task, from where its scores are counted."""


def enrol(plan: Plan, out: Path, command: Sequence[str], random_return: Callable[[str], float]) -> Record:
    """Record a plan in its folder; one that was there before may grow by tasks, contestants and seeds, not change.

    `command` is what makes the plan when typed; `random_return` measures a task that the record does not
    know yet.
    """
    runs = list(plan.runs(out))
    settings = {
        name: value
        for name, value in dataclasses.asdict(plan.settings).items()
        if name not in ("seed", "out", "overwrite")
    }
    new = Record(
        list(plan.envs),
        list(plan.contestants),
        [(run.env, run.contestant.name, run.seed) for run in runs],
        settings,
        dict(plan.hyperparameters),
        [list(command)],
        provenance() | {"cpu": _cpu()},
    )
    record = new
    if (out / RECORD).exists():
        old = read_record(out)
        _check_alike(old, new, out)
        record = Record(
            list(dict.fromkeys(old.envs + new.envs)),
            list(dict.fromkeys(old.contestants + new.contestants)),
            list(dict.fromkeys(old.runs + new.runs)),
            old.settings,
            old.hyperparameters,
            old.commands if new.commands[0] in old.commands else old.commands + new.commands,
            old.provenance,
            old.random_returns,
        )
    for run in runs:
        _check_begun(run)
    for env in record.envs:
        if env not in record.random_returns:
            record.random_returns[env] = random_return(env)
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / RECORD, (json.dumps({"format": 1} | dataclasses.asdict(record), indent=2) + "\n").encode())
    return record


def read_record(out: Path) -> Record:
    """What `enrol` recorded."""
    path = out / RECORD
    if not path.exists():
        raise BisacError(f"{out} is not a sweep's folder: it has no {RECORD}.")
    try:
        known = json.loads(read_file(path))
        known.pop("format")
        contestants = [
            Contestant(c["algo"], tuple((name, _hashable(value)) for name, value in c["settings"]))
            for c in known.pop("contestants")
        ]
        return Record(contestants=contestants, runs=[(e, c, int(s)) for e, c, s in known.pop("runs")], **known)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BisacError(f"{path} is damaged or not one of this bisac's: {error!r}.") from error


def command_line(command: Sequence[str]) -> str:
    """A recorded command as one would type it."""
    return shlex.join(["bisac", *command[1:]])


def _check_alike(old: Record, new: Record, out: Path) -> None:
    """Runs that differ in more than task, contestant and seed do not compare."""
    then, now = (json.loads(json.dumps(record.settings | record.hyperparameters)) for record in (old, new))
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            raise BisacError(
                f"the sweep in {out} was begun with {name.replace('_', '-')} {then.get(name, 'by default')}, now it "
                f"is {now.get(name, 'by default')}; a sweep grows by tasks, algorithms and seeds only. Choose another "
                f"--out."
            )


def _check_begun(run: PlannedRun) -> None:
    """Refuse to take for one of the sweep's a run that was begun with other settings."""
    run_dir = RunDir(run.folder)
    if not run_dir.config.exists():
        return
    try:
        check_unchanged(run_dir.read_config(), to_config(run.env, run.algorithm, run.settings))
    except BisacError as error:
        raise BisacError(
            f"{run.folder} holds another run than the sweep's: {error} Or choose another --out."
        ) from error


def _cpu() -> str:
    """The processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
