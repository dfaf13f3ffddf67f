"""One process's part in a run: it consumes the loop, and evaluates, logs and saves as it goes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bisac.algos import algorithm_name
from bisac.policies.policy import Policy
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.collect.evaluate import Evaluator
from bisac.runs.log import Log, Row, draw_curve, read_progress
from bisac.collect.loop import steps_of
from bisac.runs.run import Run, check_sound, current_policy, take_metrics
from bisac.runs.folder import RunDir
from bisac.runs.settings import TrainSettings


@runtime_checkable
class Watcher(Protocol):
    """Whoever shows a run to its user."""

    def begin(self, run_dir: RunDir, step: int, total: int) -> None:
        """The run is about to start at this step, or to go on from it."""

    def tick(self, step: int, episode_return: float | None) -> None:
        """A step was taken; an episode may have ended in it."""

    def row(self, row: Row) -> None:
        """A row was logged."""

    def warn(self, text: str) -> None:
        """Something went wrong that does not end the run."""


@dataclass
class Session:
    """One process's part in a run: the run, and all that it is written to and shown on."""

    run: Run
    run_dir: RunDir
    config: dict[str, Any]
    settings: TrainSettings
    evaluator: Evaluator
    checkpoints: Checkpoints
    log: Log
    watcher: Watcher

    def consume(self, requests: list[int]) -> None:
        """Consume the loop: evaluate, log and save at each interval, and at the end."""
        run, record, settings = self.run, self.run.record, self.settings
        resumed_at = time.monotonic() - record.seconds
        for finished in steps_of(run, settings.steps):
            record.returns += [episode.total_reward for episode in finished]
            record.lengths += [episode.length for episode in finished]
            record.seconds = time.monotonic() - resumed_at
            self.watcher.tick(run.step, record.returns[-1] if finished else None)
            over = run.step >= settings.steps
            if over or self._passed(settings.evaluation_interval):
                self.evaluate()
            if over or requests or (settings.checkpoint_every and self._passed(settings.checkpoint_every)):
                self.save(last=over or bool(requests))
            if requests:
                return

    def _passed(self, interval: int) -> bool:
        """Whether a multiple of the interval was reached since the last pause."""
        return self.run.step % interval < self.run.stride

    def evaluate(self) -> None:
        """Add a row to the log, and keep the policy if it is the best so far."""
        run, record = self.run, self.run.record
        check_sound(run)
        policy = current_policy(run)
        evaluation = self.evaluator(policy)
        row: Row = {
            "step": run.step,
            "wall_time": round(record.seconds, 3),
            "eval_return": float(evaluation.returns.mean()),
            "eval_return_std": float(evaluation.returns.std()),
            "episode_return": float(np.mean(record.returns)) if record.returns else None,
            "episode_length": float(np.mean(record.lengths)) if record.lengths else None,
            "inexact_resumes": record.inexact_resumes,
        } | take_metrics(run)
        record.returns, record.lengths = [], []
        if record.best_return is None or evaluation.returns.mean() > record.best_return:
            record.best_return = float(evaluation.returns.mean())
            record.best_policy = policy.to_bytes()
        self.log.add(row)
        self.watcher.row(row)
        with self._going_on("the log and the best policy"):
            self.log.flush()

    def save(self, last: bool) -> None:
        """Write a checkpoint, unless the run's numbers are no longer worth it."""
        check_sound(self.run)
        if self.settings.checkpoint_every:
            with self._going_on("the checkpoint", last):
                self.checkpoints.save(self.run, self.config)

    @contextmanager
    def _going_on(self, what: str, last: bool = False) -> Iterator[None]:
        """A disk that fails does not end the run: what was saved before is whole, and the next time may go well."""
        try:
            yield
        except OSError as error:
            saved = f"that of step {self.checkpoints.kept[-1].step:,}" if self.checkpoints.kept else "none yet"
            next_time = "" if last else " Training goes on, and it is tried again at the next interval."
            self.watcher.warn(
                f"{what} of step {self.run.step:,} could not be written: {error.strerror}.{next_time} The last whole "
                f"checkpoint is {saved}."
            )

    def leave(self) -> tuple[Policy, list[Row]]:
        """Save the final policy and draw the learning curve."""
        policy, rows = current_policy(self.run), read_progress(self.run.record.progress)
        policy.save(self.run_dir.policy)
        title = f"{algorithm_name(self.run.algo)} on {self.run.envs.spec.env_id}, seed {self.settings.seed}"
        draw_curve(rows, self.run_dir.curve, title)
        return policy, rows
