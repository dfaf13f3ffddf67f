"""One process's part in a run, or in several side by side: it advances, evaluates, logs and saves, and tells of it.

It knows a collector, and not where environments live.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

from bisac.algos import Algorithm
from bisac.collect.collector import Collector, Episode, State
from bisac.collect.learning import (
    DivergedError,
    check_sound,
    current_policy,
    mean_metrics,
)
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
        return current_policy(
            self._algo, self.collector.spec, self.collector.learning(self.state, run, remembered=False)
        )

    def _train(self, requests: list[int]) -> Iterator[Event]:
        steps, pause = self.settings.steps, 0
        self._mark = time.monotonic()
        yield from self._evaluate()  # where the last one failed
        while (before := self.state.step) < steps:
            self._mark = time.monotonic()  # what the events' consumer did since is not training
            if before >= pause:
                pause = self._next_pause(before)
            self.state, ended = self.collector.advance(self.state, pause)
            happened = self._note(ended)
            if self.state.step >= pause or requests:
                happened += self._pause(before, requests)
            self._count_time()
            yield from happened
            yield Advanced(self.state.step)
            if requests:  # it may have come since, and then this step is not saved yet
                yield from self._save(last=True)
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
                happened.append(EpisodeEnded(index, self.state.step, *episode))
        return happened

    def _pause(self, before: int, requests: list[int]) -> list[Event]:
        """Do what is due since the step before, or asked for: evaluate, save."""
        settings, happened = self.settings, []
        over = self.state.step >= settings.steps
        if over or self._passed(settings.evaluation_interval, before):
            self._count_time()
            for run in self.runs:
                run.record.owes_evaluation = True
            happened += self._evaluate()
        every = settings.checkpoint_every
        if over or requests or (every and self._passed(every, before)):
            happened += self._save(last=over or bool(requests))
        return happened

    def _passed(self, interval: int, before: int) -> bool:
        """Return whether a multiple of the interval was reached since the step before."""
        return self.state.step // interval > before // interval

    def _count_time(self) -> None:
        now = time.monotonic()
        for run in self.runs:
            run.record.seconds += now - self._mark
        self._mark = now

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
        check_sound(request.algo, learning, self.state.step, self.state.updates, request.num_envs)

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
