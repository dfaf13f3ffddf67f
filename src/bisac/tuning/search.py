"""A search in time: trials are begun or gone on with by an engine, watched, ended early or judged, and all is told.

The engine trains each trial as a plain run. It knows nothing of terminals, and of a trial only what its folder tells.
"""

import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bisac.errors import BisacError
from bisac.sweeps import execute
from bisac.sweeps.engines.base import EndedProcess, Engine
from bisac.sweeps.folders import Evaluations, read_evaluations
from bisac.sweeps.plan import PlannedRun
from bisac.sweeps.progress import RunProgress, progress_of
from bisac.sweeps.record import check_begun
from bisac.sweeps.scores import running_score
from bisac.tuning.best import write_best
from bisac.tuning.record import Tuning
from bisac.tuning.study import Study, Trial, best


@dataclass(frozen=True)
class TrialStarted:
    """A trial's process was started, or waits for room on a cluster."""

    trial: Trial
    """The trial."""


@dataclass(frozen=True)
class TrialEnded:
    """A trial is over, or its process could not go on."""

    trial: Trial
    """The trial, with its score or what was wrong; one that still is 'running' goes on when the search does."""
    progress: RunProgress
    """How far its run had come by then."""
    best: Trial | None
    """The best trial by now."""


@dataclass(frozen=True)
class TrialLost:
    """What a trial's process ran on was lost, a node of a cluster, say; it waits for room to go on elsewhere."""

    trial: Trial
    """The trial."""
    reason: str
    """What was lost, in words."""


@dataclass(frozen=True)
class SearchProgressed:
    """How far the trials under way have come; told about twice a second."""

    running: Mapping[int, RunProgress]
    """How far each trial has come, by its number."""
    steps: int
    """Steps of a whole trial."""
    done: int
    """Trials that are complete or were ended early."""
    wanted: int
    """How many of those there are to be."""
    best: Trial | None
    """The best trial by now."""


@dataclass(frozen=True)
class SearchFinished:
    """The search has ended: no trial is left, or a signal stopped it. It is the last event."""

    trials: Sequence[Trial]
    """All trials."""
    best: Trial | None
    """The best of them."""
    problems: int
    """Trials of this time that failed or could not be started."""
    stopped_by: int | None
    """The signal that stopped the search, if one did."""


SearchEvent = TrialStarted | TrialEnded | TrialLost | SearchProgressed | SearchFinished
"""Whatever a search may tell."""


def search(
    tuning: Tuning, study: Study, out: Path, trials: int, engine: Engine
) -> AbstractContextManager[Iterator[SearchEvent]]:
    """Give the events of a search, which goes on until there are as many trials while they are iterated.

    Signals, and leaving the block early, do what they do to a sweep: see `execute`.
    """
    under_way = _Search(tuning, study, out, trials, engine)
    return execute.supervised(under_way.events, under_way.running, engine)


class _Search:
    """The state of a search under way."""

    def __init__(self, tuning: Tuning, study: Study, out: Path, trials: int, engine: Engine):
        self._tuning, self._study, self._out, self._engine = tuning, study, out, engine
        self._wanted, self._problems = trials, 0
        for trial in study.trials():  # all before any: trials of other defaults would not compare
            if trial.state != "failed":
                check_begun(tuning.run(out, trial.number, trial.values))
        study.begin_with(vars(tuning.run(out, 0, {}).algorithm))
        self._waiting = deque(study.unfinished())
        """Trials that were begun before, and are to go on."""
        done = sum(trial.state in ("complete", "pruned") for trial in study.trials())
        self._left = max(0, trials - done - len(self._waiting))
        """Trials that are still to be begun; one that fails is not made up for before the next time."""
        self.running: dict[Path, PlannedRun] = {}
        self._trials: dict[Path, Trial] = {}
        self._pruned: set[Path] = set()

    def events(self, requests: Sequence[int]) -> Iterator[SearchEvent]:
        """Search until there are enough trials or one of the requests comes, which are signals' numbers."""
        passed_on = False
        while self.running or (self._more and not requests):
            while self._more and not requests and len(self.running) < self._engine.slots and self._engine.room():
                yield self._begin()
            for process in self._engine.ended():
                again = process.lost and not requests and process.run.folder not in self._pruned
                yield self._take_back(process) if again else self._judge(process)
            if requests and not passed_on:
                self._engine.stop(requests[0])
                passed_on = True
            for folder in [folder for folder in self.running if folder not in self._pruned]:
                self._watch(folder)
            yield self._progress()
            time.sleep(execute.INTERVAL)
        told = self._study.trials()
        write_best(self._tuning, self._out, told)  # a kill may have come between a trial's end and this
        yield SearchFinished(told, best(told), self._problems, requests[0] if requests else None)

    @property
    def _more(self) -> bool:
        return bool(self._waiting) or self._left > 0

    def _begin(self) -> SearchEvent:
        """Begin the next trial or go on with it; one that only lacked its end gets that."""
        if self._waiting:
            trial = self._waiting.popleft()
        else:
            self._left -= 1
            trial = self._study.ask()
        try:
            run = self._tuning.run(self._out, trial.number, trial.values)
        except BisacError as error:  # values that do not go together
            self._study.fail(trial.number, str(error))
            return self._told(trial.number, RunProgress(0, 0.0, None, None, False))
        check_begun(run)
        self._trials[run.folder] = trial
        if progress_of(run).complete:
            return self._judge(EndedProcess(run, 0))
        try:
            self._engine.start(run)
        except OSError as error:  # a full disk, say: the trial is tried again when the search goes on
            return self._judge(EndedProcess(run, None, f"{error.strerror or error}: {error.filename or run.folder}"))
        self.running[run.folder] = run
        return TrialStarted(trial)

    def _take_back(self, process: EndedProcess) -> TrialLost:
        """Let a trial wait again that lost what it ran on."""
        folder = process.run.folder
        del self.running[folder]
        self._waiting.append(self._trials[folder])
        return TrialLost(self._trials[folder], process.reason)

    def _watch(self, folder: Path) -> None:
        """Tell the study how a trial does, and end it early if most did better by then."""
        number, told = self._trials[folder].number, read_evaluations(folder)
        if self._study.report(number, told.returns.tolist()):
            self._study.prune(number, f"worse than most at {told.taken:,} steps")
            self._pruned.add(folder)
            self._engine.stop(signal.SIGTERM, self.running[folder])

    def _judge(self, process: EndedProcess) -> TrialEnded:
        """Say how a trial ended whose process has."""
        run, number = process.run, self._trials[process.run.folder].number
        self.running.pop(run.folder, None)
        progress = progress_of(run)
        if run.folder not in self._pruned:
            self._settle(process, progress, number, read_evaluations(run.folder))
        return self._told(number, progress)

    def _settle(self, process: EndedProcess, progress: RunProgress, number: int, told: Evaluations) -> None:
        """Tell the study how a trial ended, if it has."""
        if progress.complete:
            self._study.report(number, told.returns.tolist(), judge=False)
            if len(told) and told.taken >= progress.step:
                score = running_score(told.steps, told.returns, self._tuning.settings.steps)[-1]
                self._study.complete(number, float(score))
            else:
                self._study.prune(number, f"no number was left after {told.taken:,} steps")
        elif process.code is not None and not process.stopped:
            self._study.fail(number, f"{process.reason}; sweep.log in its folder says more")
        elif process.code is None:
            self._problems += 1

    def _told(self, number: int, progress: RunProgress) -> TrialEnded:
        trials = self._study.trials()
        self._problems += trials[number].state == "failed"
        write_best(self._tuning, self._out, trials)
        return TrialEnded(trials[number], progress, best(trials))

    def _progress(self) -> SearchProgressed:
        trials = self._study.trials()
        told = {self._trials[folder].number: progress_of(run) for folder, run in self.running.items()}
        done = sum(trial.state in ("complete", "pruned") for trial in trials)
        return SearchProgressed(told, self._tuning.settings.steps, done, self._wanted, best(trials))
