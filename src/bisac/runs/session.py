"""One process's part in a run, or in several side by side: it advances, evaluates, logs and saves, and tells of it.

It knows a collector, and not where environments live.
"""

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, SupportsFloat

from bisac.algos import Algorithm
from bisac.collect.collector import Collector, Episode, State
from bisac.collect.learning import (
    DivergedError,
    check_sound,
    current_policy,
    mean_metrics,
)
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.runs.checkpoint.checkpoints import common_step
from bisac.runs.events import (
    Advanced,
    EpisodeEnded,
    Evaluated,
    Event,
    Finished,
    Logged,
    Outcome,
    Saved,
    Warned,
)
from bisac.runs.run import Run
from bisac.runs.settings import Settings
from bisac.runs.signals import stop_requests


class Session:
    """The runs that a collector carries, from where they are to their end."""

    def __init__(self, collector: Collector, state: State, runs: list[Run], settings: Settings):
        self.collector = collector
        self.state = state
        self.runs = runs
        self.settings = settings
        """What the runs have in common: all but their seeds and folders."""
        self._algo: Algorithm[Any] = collector.request.algo
        self._mark = time.monotonic()

    def events(self) -> Iterator[Event]:
        """Train to the end or to a signal, and yield what happens.

        Whoever stops asking leaves the runs saved, as a signal does. A failure of an environment does too.
        """
        try:
            with stop_requests() as requests:
                try:
                    yield from self._train(requests)
                except DivergedError:  # nothing worth keeping
                    raise
                except (Exception, GeneratorExit):
                    self._stop()
                    raise
                outcomes = self._leave(requests[0] if requests else None)
        finally:
            for run in self.runs:
                run.log.close()
        yield Finished(outcomes)

    def policy(self, run: int = 0) -> Policy:
        """Return a run's present policy. It shares memory with the state: use it before going on."""
        learning = self.collector.learning(self.state, run, remembered=False)
        return current_policy(self._algo, self.collector.spec, learning, self.state.step)

    def log(self, values: Mapping[str, SupportsFloat], run: int = 0) -> None:
        """Let the next row of a run's log tell the mean of what is logged under each name until then."""
        log, logged = self.runs[run].log, self.runs[run].record.logged
        for name, value in values.items():
            log.check_own(name)
            try:
                number = float(value)
            except (OverflowError, TypeError, ValueError) as error:
                raise BisacError(f"'{name}' was logged as {value!r}, which is no number.") from error
            logged.setdefault(name, []).append(number)

    def _train(self, requests: list[int]) -> Iterator[Event]:
        """Advance, and do what is due. What has happened is told before it is saved, for the consumer may log more."""
        pause, to_save = 0, False
        for run in self.runs:  # a longer run that was stopped here, and is now to end here, has not been evaluated yet
            run.record.owes_evaluation |= self.settings.steps <= self.state.step != run.evaluated_at
        yield from self._due_evaluation()  # here too where the last one failed
        while (before := self.state.step) < self.settings.steps or self._owes_evaluation or to_save:
            self._mark = time.monotonic()  # what the events' consumer did since is not training
            if before >= pause:
                pause = self._next_pause(before)
            self.state, ended = self.collector.advance(self.state, pause)
            happened = self._note(ended)
            over = self.state.step >= self.settings.steps
            to_save |= over or self._passed(self.settings.checkpoint_every, before)
            if over or self._passed(self.settings.evaluation_interval, before):
                for run in self.runs:
                    run.record.owes_evaluation = True
            self._count_time()
            yield from happened
            yield from self._due_evaluation()
            yield Advanced(self.state.step)
            if requests or (to_save and self.collector.at_rest(self.state)):
                self._mark = time.monotonic()
                saved = self._save(last=over or bool(requests))
                self._count_time()
                to_save = False
                yield from saved
            if requests:
                return

    def _next_pause(self, step: int) -> int:
        """Return the step at which something is due next: an evaluation, a checkpoint, the end."""
        intervals = [self.settings.evaluation_interval, self.settings.checkpoint_every]
        due = [(step // interval + 1) * interval for interval in intervals if interval]
        return min(self.settings.steps, *due)

    def _note(self, ended: list[list[Episode]]) -> list[Event]:
        """Remember the episodes that ended for the next row of each run's log."""
        happened: list[Event] = []
        for index, episodes in enumerate(ended):
            record = self.runs[index].record
            for episode in episodes:
                record.returns.append(episode.total_reward)
                record.lengths.append(episode.length)
                if episode.success is not None:
                    record.successes = (record.successes or 0) + episode.success
                happened.append(EpisodeEnded(index, self.state.step, *episode))
        return happened

    def _passed(self, interval: int, before: int) -> bool:
        """Return whether a multiple of the interval, if there is one, was reached since the step before."""
        return interval > 0 and self.state.step // interval > before // interval

    @property
    def _owes_evaluation(self) -> bool:
        return any(run.record.owes_evaluation for run in self.runs)

    def _count_time(self) -> None:
        now = time.monotonic()
        for run in self.runs:
            run.record.seconds += now - self._mark
        self._mark = now

    def _due_evaluation(self) -> list[Event]:
        """Evaluate where it is due, and this is a moment for it."""
        if not self._owes_evaluation or not self.collector.at_rest(self.state):
            return []
        self._mark = time.monotonic()
        happened = self._evaluate()
        self.state = self.collector.rejoined(self.state)
        self._count_time()
        return happened

    def _evaluate(self) -> list[Event]:
        """Evaluate the policy of each run that owes it, and add a row to its log."""
        step, happened = self.state.step, []
        for index, run in enumerate(self.runs):
            if not run.record.owes_evaluation:
                continue
            self._check_sound(index)
            policy = self.policy(index)
            evaluation = self.collector.evaluate(policy, index)
            metrics = mean_metrics(self.collector.learning(self.state, index, remembered=False))
            row = run.add_row(step, evaluation, metrics, policy)
            happened += [Evaluated(index, step, *evaluation), Logged(index, row), *run.flush(step)]
        if happened:
            self.state = self.state.with_new_tally()
        return happened

    def _save(self, last: bool) -> list[Event]:
        """Write a checkpoint of each run, unless its numbers are no longer worth it."""
        happened: list[Event] = []
        together = common_step([run.checkpoints for run in self.runs])
        for index, run in enumerate(self.runs):
            self._check_sound(index)
            if self.settings.checkpoint_every and not run.checkpoints.hold(self.state.step):
                snapshot = self.collector.snapshot(self.state, index)
                problems = run.save(snapshot, self.policy(index), together, last)
                happened += problems or [Saved(index, self.state.step, run.checkpoints.kept[-1].path)]
        return happened

    def _check_sound(self, run: int) -> None:
        learning, request = self.collector.learning(self.state, run, remembered=False), self.collector.request
        try:
            check_sound(request.algo, learning, self.state.step, self.state.updates, request.num_envs)
        except DivergedError as error:
            if len(self.runs) == 1:
                raise
            raise DivergedError(
                f"{self.runs[run].folder.path}: {error} 'bisac resume' goes on with those beside it, each by itself."
            ) from error

    def _leave(self, stopped_by: int | None) -> tuple[Outcome, ...]:
        return tuple(run.leave(self.policy(index), stopped_by) for index, run in enumerate(self.runs))

    def _stop(self) -> None:
        """Save all that is there, for the runs stop between two of their intervals; nobody hears events any more.

        What goes wrong here must not hide why they stop.
        """
        try:
            for event in self._save(last=True):
                if isinstance(event, Warned):
                    warnings.warn(event.text, stacklevel=2)
            self._leave(None)
        except Exception as error:
            warnings.warn(f"the run could not be saved as it stopped: {error}", stacklevel=2)
