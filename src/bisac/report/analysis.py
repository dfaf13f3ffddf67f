"""All numbers that a report says of a sweep, as plain data: analyse makes them, page, figures and tables show them."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from bisac.plotting.looks import Look
from bisac.plotting.statistics import Band, Estimate
from bisac.report.data import SweepData


@dataclass(frozen=True)
class TaskCurve:
    """A contestant's learning curve on a task: the interquartile mean over seeds of the return at each step."""

    env: str
    """The task's id."""
    contestant: str
    """The contestant's name."""
    steps: Float[np.ndarray, "point"]
    """Environment steps at each point of the curve."""
    seconds: Float[np.ndarray, "point"]
    """The median over seeds of the time it took to get there."""
    band: Band
    """The interquartile mean at each point, with its interval."""


@dataclass(frozen=True)
class Scale:
    """What normalises a task's scores: 0 is a random policy's return, 1 the reference's mean score."""

    env: str
    """The task's id."""
    zero: float
    """The return of a random policy."""
    one: float
    """The mean final score of the reference."""
    usable: bool
    """Whether the reference learned enough that dividing by what it gained makes sense."""

    def normalised(self, score: float) -> float:
        """Return a score in the task's own units on this scale."""
        return (score - self.zero) / (self.one - self.zero)


@dataclass(frozen=True)
class TaskResult:
    """A contestant's numbers on a task."""

    env: str
    """The task's id."""
    contestant: str
    """The contestant's name."""
    seeds: int
    """The number of complete runs."""
    planned: int
    """The number of runs that were planned."""
    score: Estimate
    """The interquartile mean of the final scores, in the task's own units."""
    scores: list[float]
    """The final score of each complete run."""
    difference: Estimate | None
    """The interquartile mean less that of the reference; None of the reference itself or where it has no run."""
    improvement: Estimate | None
    """The probability of improvement over the reference; None where there is no difference."""
    reached: list[float]
    """The step at which each complete run reached the reference's final score; infinity if it did not."""
    seconds: list[float]
    """The wall-clock time of each complete run."""
    successes: list[float] = field(default_factory=list)
    """The final success rate of each complete run whose task tells it."""

    @property
    def success_rate(self) -> float | None:
        """The mean final success rate; None where the task does not tell."""
        return float(np.mean(self.successes)) if self.successes else None

    @property
    def median_reached(self) -> float:
        """The median step at which the reference's score was reached; infinity if half or more never reached it."""
        return float(np.median(self.reached)) if self.reached else np.inf

    @property
    def median_seconds(self) -> float:
        """The median wall-clock time of a run."""
        return float(np.median(self.seconds))


@dataclass(frozen=True)
class Aggregate:
    """A contestant's numbers over all tasks that can be normalised."""

    contestant: str
    """The contestant's name."""
    seeds: int
    """The number of seeds that are complete on every such task; only they count."""
    iqm: Estimate
    """The interquartile mean of the normalised scores."""
    mean: Estimate
    """The mean of the normalised scores."""
    median: Estimate
    """The median over tasks of the mean normalised scores."""
    difference: Estimate | None
    """The interquartile mean less that of the reference; None of the reference itself or where it has no seed."""
    improvement: Estimate | None
    """The probability of improvement over the reference; None where there is no difference."""
    profile: Band
    """The fraction of runs that score above each threshold of the analysis."""


@dataclass(frozen=True)
class Analysis:
    """All that a report says."""

    data: SweepData
    """The sweep that it is said of."""
    reference: str
    """The name of the contestant that the others are compared with."""
    curves: list[TaskCurve]
    """The learning curves, task by task."""
    results: list[TaskResult]
    """The numbers of each contestant on each task on which it has complete runs."""
    scales: list[Scale]
    """The scale of each task on which the reference has complete runs."""
    aggregates: list[Aggregate]
    """The numbers of each contestant over all tasks; none where no task can be normalised."""
    taus: Float[np.ndarray, "point"]
    """The thresholds of the performance profiles."""

    @property
    def names(self) -> list[str]:
        """The contestants' names."""
        return [contestant.name for contestant in self.data.contestants]

    @property
    def looks(self) -> dict[str, Look]:
        """The label, colour and line of each contestant, by its name."""
        return self.data.looks

    @property
    def reference_label(self) -> str:
        """The reference as readers know it."""
        return self.looks[self.reference].label

    @property
    def aggregated(self) -> list[str]:
        """The tasks that the aggregates are over."""
        return [scale.env for scale in self.scales if scale.usable]

    def result(self, env: str, contestant: str) -> TaskResult | None:
        """Return a contestant's numbers on a task, if it has complete runs there."""
        return next((r for r in self.results if (r.env, r.contestant) == (env, contestant)), None)
