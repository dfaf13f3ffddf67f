"""Everything that a report says of a sweep, in numbers; the page, the figures and the tables only show it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bisac.errors import BisacError
from bisac.report import statistics
from bisac.report.data import Curve, SweepData
from bisac.report.statistics import Band, Estimate
from bisac.sweeps.record import command_line

REFERENCE = "sac"
PROFILE_POINTS = 101


@dataclass(frozen=True)
class TaskCurve:
    """A contestant's learning curve on a task: the interquartile mean over seeds of the return at each step."""

    env: str
    contestant: str
    steps: Float[np.ndarray, "point"]
    seconds: Float[np.ndarray, "point"]
    """Median over seeds of the time it took to get there."""
    band: Band


@dataclass(frozen=True)
class Scale:
    """What normalises a task's scores: 0 is a random policy's return, 1 the reference's mean score."""

    env: str
    zero: float
    one: float
    usable: bool
    """Whether the reference learned enough that dividing by what it gained makes sense."""

    def normalised(self, score: float) -> float:
        """A score in the task's own units, on this scale."""
        return (score - self.zero) / (self.one - self.zero)


@dataclass(frozen=True)
class TaskResult:
    """A contestant's numbers on a task."""

    env: str
    contestant: str
    seeds: int
    planned: int
    score: Estimate
    """Interquartile mean of the final scores, in the task's own units."""
    scores: list[float]
    """Each complete seed's."""
    difference: Estimate | None
    """Of the interquartile means, from the reference's."""
    improvement: Estimate | None
    """Probability of improvement over the reference."""
    reached: list[float]
    """Steps at which each complete seed reached the reference's final score; infinity if it did not."""
    seconds: list[float]
    """Wall-clock time of each complete seed."""

    @property
    def median_reached(self) -> float:
        """Infinity if half or more never reached it."""
        return float(np.median(self.reached)) if self.reached else np.inf

    @property
    def median_seconds(self) -> float:
        """The usual wall-clock time of a run."""
        return float(np.median(self.seconds))


@dataclass(frozen=True)
class Aggregate:
    """A contestant's numbers over all tasks that can be normalised."""

    contestant: str
    seeds: int
    """Those complete on every such task; only they count."""
    iqm: Estimate
    mean: Estimate
    median: Estimate
    difference: Estimate | None
    improvement: Estimate | None
    profile: Band


@dataclass(frozen=True)
class Analysis:
    """All of it."""

    data: SweepData
    reference: str
    curves: list[TaskCurve]
    results: list[TaskResult]
    scales: list[Scale]
    aggregates: list[Aggregate]
    taus: Float[np.ndarray, "point"]

    @property
    def names(self) -> list[str]:
        """The contestants."""
        return [contestant.name for contestant in self.data.contestants]

    @property
    def aggregated(self) -> list[str]:
        """The tasks that the aggregates are over."""
        return [scale.env for scale in self.scales if scale.usable]

    def result(self, env: str, contestant: str) -> TaskResult | None:
        """A contestant's numbers on a task, if it has complete runs there."""
        return next((r for r in self.results if (r.env, r.contestant) == (env, contestant)), None)


def analyse(data: SweepData, reference: str | None) -> Analysis:
    """All the numbers of a report."""
    names = [contestant.name for contestant in data.contestants]
    reference = reference or (REFERENCE if REFERENCE in names else names[0])
    if reference not in names:
        raise BisacError(f"the sweep has no contestant '{reference}' to compare with; it has {', '.join(names)}.")
    pairs = [(env, name) for env in data.envs for name in names if data.of(env, name)]
    curves = [_curve(data.of(env, name)) for env, name in pairs]
    results = [_result(data, env, name, reference) for env, name in pairs]
    scales = [scale for env in data.envs if (scale := _scale(data, env, reference))]
    usable = [scale for scale in scales if scale.usable]
    matrices = {name: matrix for name in names if len(matrix := _score_matrix(data, usable, name))} if usable else {}
    taus = _taus(list(matrices.values()))
    aggregates = [_aggregate(name, matrices, reference, taus) for name in matrices]
    return Analysis(data, reference, curves, results, scales, aggregates, taus)


def final_score(curve: Curve) -> float:
    """Of a complete run: the mean of the evaluations in the last tenth of its training."""
    return float(statistics.running_score(curve.steps, curve.returns, curve.budget)[-1])


def _curve(runs: Sequence[Curve]) -> TaskCurve:
    # The fewest points that any run has, evenly: all the same where all were evaluated at the same steps.
    shortest = min(runs, key=lambda run: len(run.steps))
    grid = shortest.steps
    returns = np.stack([statistics.at_steps(grid, run.steps, run.returns) for run in runs])
    seconds = np.stack([statistics.at_steps(grid, run.steps, run.seconds) for run in runs])
    band = statistics.estimate_band(statistics.interquartile_mean, returns[:, None])
    return TaskCurve(runs[0].env, runs[0].contestant, grid, np.median(seconds, 0), band)


def _result(data: SweepData, env: str, name: str, reference: str) -> TaskResult:
    runs, others = data.of(env, name), data.of(env, reference)
    scores = np.array([[final_score(run)] for run in runs])
    target = np.array([[final_score(run)] for run in others])
    compared = name != reference and len(others) > 0
    return TaskResult(
        env,
        name,
        len(runs),
        sum(curve.is_of(env, name) for curve in data.curves),
        statistics.iqm(scores),
        scores[:, 0].tolist(),
        statistics.iqm_difference(scores, target) if compared else None,
        statistics.probability_of_improvement(scores, target) if compared else None,
        [
            statistics.steps_to_reach(run.steps, run.returns, run.budget, float(target.mean()))
            for run in (runs if others else [])
        ],
        [float(run.seconds[-1]) for run in runs],
    )


def _scale(data: SweepData, env: str, reference: str) -> Scale | None:
    scores = np.array([final_score(run) for run in data.of(env, reference)])
    if not len(scores):
        return None
    if (zero := data.record.random_returns.get(env)) is None:
        raise BisacError(
            f"the sweep does not say what a random policy gets on {env}: it was made by an older bisac. Run its "
            f"command again, which measures that and repeats nothing: {command_line(data.record.commands[0])}"
        )
    one = float(scores.mean())
    error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
    return Scale(env, zero, one, bool(one - zero > 2 * error))  # else any score would be divided by noise


def _score_matrix(data: SweepData, scales: Sequence[Scale], name: str) -> Float[np.ndarray, "seed task"]:
    """Normalised scores of the seeds that are complete on every task."""
    columns = [{run.seed: final_score(run) for run in data.of(scale.env, name)} for scale in scales]
    seeds = sorted(set.intersection(*(set(column) for column in columns)))
    rows = [[scale.normalised(column[seed]) for scale, column in zip(scales, columns, strict=True)] for seed in seeds]
    return np.array(rows).reshape(len(seeds), len(scales))


def _taus(matrices: Sequence[Float[np.ndarray, "_ task"]]) -> Float[np.ndarray, "point"]:
    scores = np.concatenate([matrix.ravel() for matrix in matrices]) if matrices else np.zeros(1)
    return np.linspace(min(0.0, float(scores.min())), max(1.0, float(scores.max())) * 1.02, PROFILE_POINTS)


def _aggregate(
    name: str, matrices: dict[str, Float[np.ndarray, "_ task"]], reference: str, taus: Float[np.ndarray, "point"]
) -> Aggregate:
    scores, others = matrices[name], matrices.get(reference) if name != reference else None
    return Aggregate(
        name,
        len(scores),
        statistics.iqm(scores),
        statistics.mean(scores),
        statistics.median(scores),
        None if others is None else statistics.iqm_difference(scores, others),
        None if others is None else statistics.probability_of_improvement(scores, others),
        statistics.performance_profile(scores, taus),
    )
