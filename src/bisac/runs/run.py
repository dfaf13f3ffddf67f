"""A run on disk: its folder, and what is written there while it goes. It knows no environments."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bisac.algos import Algorithm, algorithm_name
from bisac.collect.collector import Evaluation, Snapshot
from bisac.plotting.learning_curve import draw_learning_curve
from bisac.policies.policy import Policy
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.runs.events import Outcome, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import SUCCESS, Log, Row, mean_or_none, read_progress
from bisac.runs.record import Record
from bisac.runs.settings import Settings
from bisac.storage import write_atomic


@dataclass
class Run:
    """One training in time and on disk."""

    algo: Algorithm[Any]
    settings: Settings
    folder: RunFolder
    config: dict[str, Any]
    """The content of config.json that every checkpoint repeats."""
    record: Record
    checkpoints: Checkpoints
    log: Log

    @property
    def evaluated_at(self) -> float | None:
        """The step of the last evaluation; None before the first."""
        rows = read_progress(self.record.progress)
        return rows[-1]["step"] if rows else None

    def add_row(self, step: int, evaluation: Evaluation, metrics: dict[str, float], policy: Policy) -> Row:
        """Record an evaluation and the metrics since the last one, and keep the policy if it is the best so far."""
        record, mean = self.record, float(evaluation.returns.mean())
        row: Row = {
            "step": step,
            "wall_time": round(record.seconds, 3),
            "eval_return": mean,
            "eval_return_std": float(evaluation.returns.std()),
            "episode_return": mean_or_none(record.returns),
            "episode_length": mean_or_none(record.lengths),
            "inexact_resumes": record.inexact_resumes,
        } | metrics
        row |= self._successes(evaluation) | {name: mean_or_none(values) for name, values in record.logged.items()}
        record.returns, record.lengths, record.logged, record.owes_evaluation = [], [], {}, False
        if record.best_return is None or mean > record.best_return:
            record.best_return, record.best_policy = mean, policy.to_bytes()
        self.log.add(row)
        return row

    def _successes(self, evaluation: Evaluation) -> Row:
        """Return what a row tells of success, where the environment has ever told; who is silent then has failed."""
        record, row, (judged, trained) = self.record, {}, SUCCESS
        if evaluation.successes is not None:
            row[judged] = evaluation.success_rate
        elif judged in self.log.columns:
            row[judged] = 0.0
        if record.successes is not None:
            row[trained] = record.successes / len(record.returns) if record.returns else None
            record.successes = 0
        return row

    def flush(self, step: int) -> list[Warned]:
        """Bring the files of the log up to the record."""
        warnings: list[Warned] = []
        with self._going_on("the log and the best policy", step, False, warnings):
            self.log.flush()
        return warnings

    def save(self, snapshot: Snapshot, policy: Policy, together: int | None, last: bool) -> list[Warned]:
        """Write a checkpoint, and keep that of the step `together` if there is one, at which other runs go on too."""
        warnings: list[Warned] = []
        with self._going_on("the checkpoint", snapshot.step, last, warnings):
            self.checkpoints.save(snapshot, self.record, self.config, policy, together)
        return warnings

    @contextmanager
    def _going_on(self, what: str, step: int, last: bool, warnings: list[Warned]) -> Iterator[None]:
        """Let a run survive a disk that fails: what was saved before is whole, and the next time may go well."""
        try:
            yield
        except OSError as error:
            kept = self.checkpoints.kept
            saved = f"that of step {kept[-1].step:,}" if kept else "none yet"
            next_time = "" if last else " Training goes on, and it is tried again at the next interval."
            text = f"{what} of step {step:,} could not be written: {error.strerror}.{next_time}"
            warnings.append(Warned(f"{text} The last whole checkpoint is {saved}."))

    def leave(self, policy: Policy, stopped_by: int | None) -> Outcome:
        """Save the final policy, draw the learning curve, and return what is left of the run."""
        rows = read_progress(self.record.progress)
        policy.save(self.folder.policy)
        title = f"{algorithm_name(self.algo)} on {policy.spec.env_id}, seed {self.settings.seed}"
        write_atomic(self.folder.curve, draw_learning_curve(rows, title))
        return Outcome(policy, self.folder, rows, stopped_by, bool(self.checkpoints.kept))
