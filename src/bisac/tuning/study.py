"""What was tried, and what to try next: Optuna's study, in study.db of the search's folder.

The study says which values a trial has and how it ended; all that a trial learned is in its folder. The values are in
the study before the folder is made. A score is there, in one transaction, after the folder has the whole run; that a
trial is ended early, before its process is told. So after a kill at any moment a trial whose end the study does not
know is one to go on with: its folder says from where.
"""

import logging
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bisac.algos.search import Choice, Dimension
from bisac.errors import BisacError, reason
from bisac.sweeps.contestants import as_typed
from bisac.tuning.space import Space

STUDY = "study.db"
"""The name of the study in the search's folder."""
STARTUP = 5
"""Trials that must be complete before any is ended early."""
WARM_UP = 5
"""One in so many of its evaluations is made before a trial is ended early: until then learning has hardly begun."""
SETTLING = 2**32
"""Above every seed that a run can have."""

State = Literal["running", "complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """One attempt: the values that it has, and what came of it."""

    number: int
    """Counted from 0."""
    values: Mapping[str, Any]
    """The values of what is searched, by name."""
    state: State
    """Whether it runs or is to go on, took all of its steps, was ended early, or failed."""
    score: float | None = None
    """How well it did at its end, if it is complete."""
    problem: str = ""
    """Why it failed or was ended early, in words."""


class Study:
    """The trials of a search."""

    def __init__(self, out: Path, space: Space, seed: int = 0, evaluations: int = 1, prune: bool = True):
        """Open the study of a folder, or begin one.

        `evaluations` is how many a whole trial has. Draws depend on the seed, on the trial's number and on the trials
        before it alone: a search that was killed draws what it would have drawn.
        """
        self._optuna = optuna = _optuna()
        self._space, self._seed = space, seed
        pruner = (
            optuna.pruners.MedianPruner(STARTUP, math.ceil(evaluations / WARM_UP))
            if prune
            else optuna.pruners.NopPruner()
        )
        try:
            storage = optuna.storages.RDBStorage(_address(out / STUDY))
            self._study = optuna.create_study(
                storage=storage, study_name="bisac", load_if_exists=True, direction="maximize", pruner=pruner
            )
            self.trials()
        except Exception as error:  # whatever a damaged database makes SQLite, SQLAlchemy or Optuna do
            raise BisacError(f"{out / STUDY} is damaged or of another Optuna: {reason(error)}.") from error
        self._open: dict[int, Any] = {}
        self._reported: dict[int, int] = {}
        """How many evaluations of each trial the study knows."""

    def begin_with(self, values: Mapping[str, Any]) -> None:
        """Let the first trial have these values, of which those that lie in no range are drawn."""
        if not self._study.get_trials(deepcopy=False):
            known = {
                name: value for name, value in values.items() if name in self._space and value in self._space[name]
            }
            self._study.enqueue_trial({name: _stored(self._space[name], value) for name, value in known.items()})

    def ask(self) -> Trial:
        """Begin another trial."""
        known = self._study.get_trials(deepcopy=False)
        waiting = [trial.number for trial in known if trial.state == self._optuna.trial.TrialState.WAITING]
        self._study.sampler = self._sampler(min(waiting, default=len(known)))
        return self._drawn(self._study.ask())

    def unfinished(self) -> list[Trial]:
        """Return the trials that were begun and whose end is not known; a value that was not drawn yet is."""
        running = self._optuna.trial.TrialState.RUNNING  # and not WAITING: the first trial has its values beforehand
        found = [trial for trial in self._study.get_trials(deepcopy=False) if trial.state == running]
        trials = []
        for frozen in found:
            self._study.sampler = self._sampler(frozen.number)
            trials.append(self._drawn(self._optuna.trial.Trial(self._study, frozen._trial_id)))
        return trials

    def trials(self) -> list[Trial]:
        """Return all trials that were begun, in their order."""
        waiting = self._optuna.trial.TrialState.WAITING
        frozen = [trial for trial in self._study.get_trials(deepcopy=False) if trial.state != waiting]
        return [
            Trial(
                each.number,
                self._values(each.params),
                state := _state(each),
                each.value if state == "complete" else None,  # of others Optuna has the last evaluation's return
                each.user_attrs.get("problem", ""),
            )
            for each in frozen
        ]

    def report(self, number: int, returns: list[float], judge: bool = True) -> bool:
        """Tell the returns of a trial's evaluations so far; returns whether it should be ended early."""
        trial = self._open[number]
        if number not in self._reported:  # what another process had told before it was killed
            self._reported[number] = len(self._study.get_trials(deepcopy=False)[number].intermediate_values)
        for step, value in enumerate(returns[self._reported[number] :], self._reported[number] + 1):
            trial.report(value, step)
            self._reported[number] = step
            if judge and trial.should_prune():
                return True
        return False

    def complete(self, number: int, score: float) -> None:
        """Note that a trial took all of its steps, and how well it did."""
        self._study.tell(number, score)

    def prune(self, number: int, problem: str) -> None:
        """Note that a trial was ended early."""
        self._end(number, self._optuna.trial.TrialState.PRUNED, problem)

    def fail(self, number: int, problem: str) -> None:
        """Note that a trial failed."""
        self._end(number, self._optuna.trial.TrialState.FAIL, problem)

    def _end(self, number: int, state: Any, problem: str) -> None:
        self._open[number].set_user_attr("problem", problem)
        self._study.tell(number, state=state)

    def importances(self) -> dict[str, float]:
        """Return how much each of the values decides whether a trial is among the best, as shares of 1; or nothing.

        It is PED-ANOVA's (Watanabe, Bansal and Hutter, 2023), which needs two complete trials or more.
        """
        if sum(trial.state == "complete" for trial in self.trials()) < 2:
            return {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = self._optuna.importance.PedAnovaImportanceEvaluator()
            return self._optuna.importance.get_param_importances(self._study, evaluator=evaluator)

    def _sampler(self, number: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Optuna calls experimental
            return self._optuna.samplers.TPESampler(seed=(self._seed * 7919 + number) % SETTLING, constant_liar=True)

    def _drawn(self, trial: Any) -> Trial:
        """Return a trial with all of its values, those that the study has and those that are drawn now."""
        self._open[trial.number] = trial
        drawn = {name: _draw(trial, name, dimension) for name, dimension in self._space.items()}
        return Trial(trial.number, self._values(drawn), "running")

    def _values(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _meant(self._space[name], value) for name, value in stored.items() if name in self._space}


def best(trials: list[Trial]) -> Trial | None:
    """Return the complete trial of the highest score, the first of several; None before any is complete."""
    scored = [trial for trial in trials if trial.state == "complete" and trial.score is not None]
    return max(scored, key=lambda trial: trial.score or 0.0, default=None)


def _draw(trial: Any, name: str, dimension: Dimension) -> Any:
    if isinstance(dimension, Choice):
        return trial.suggest_categorical(name, [as_typed(value) for value in dimension.values])
    if dimension.whole:
        return trial.suggest_int(name, int(dimension.low), int(dimension.high), log=dimension.log)
    return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)


def _stored(dimension: Dimension, value: Any) -> Any:
    """Return a value as the study has it: one of a choice by its words, for it may be of any kind."""
    return as_typed(value) if isinstance(dimension, Choice) else value


def _meant(dimension: Dimension, stored: Any) -> Any:
    if isinstance(dimension, Choice):
        return next(value for value in dimension.values if as_typed(value) == stored)
    return stored


def _state(trial: Any) -> State:
    states: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}
    return states.get(trial.state.name, "running")


def _address(path: Path) -> str:
    """Return a file as a database's address; whatever its name, nothing in it is taken for a part of the address."""
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(path.resolve())).render_as_string(hide_password=False)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise BisacError("a search needs Optuna; in bisac's folder: pip install '.[tune]'.") from error
    optuna.logging.set_verbosity(logging.WARNING)
    return optuna
