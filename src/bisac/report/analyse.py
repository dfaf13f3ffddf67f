"""From a sweep's runs to all the numbers of its report; it must not know how they are shown."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from bisac.errors import BisacError
from bisac.plotting import statistics
from bisac.report.analysis import Aggregate, Analysis, Scale, TaskCurve, TaskResult
from bisac.report.data import SweepData, SweptRun
from bisac.report.scores import final_score, steps_to_reach
from bisac.sweeps.record import command_line

REFERENCE = "sac"
"""The contestant that the others are compared with unless told otherwise."""
PROFILE_POINTS = 101
"""The number of thresholds of a performance profile."""


def analyse(data: SweepData, reference: str | None) -> Analysis:
    """Return all the numbers of a report; without a reference, that is sac or else the first contestant."""
    names = [contestant.name for contestant in data.contestants]
    reference = reference or (REFERENCE if REFERENCE in names else names[0])
    if reference not in names:
        raise BisacError(f"the sweep has no contestant '{reference}' to compare with; it has {', '.join(names)}.")
    pairs = [(env, name) for env in data.envs for name in names if data.of(env, name)]
    curves = [curve for env, name in pairs if (curve := _curve(data.of(env, name)))]
    results = [_result(data, env, name, reference) for env, name in pairs]
    scales = [scale for env in data.envs if (scale := _scale(data, env, reference))]
    usable = [scale for scale in scales if scale.usable]
    matrices = {name: matrix for name in names if len(matrix := _score_matrix(data, usable, name))} if usable else {}
    taus = _taus(list(matrices.values()))
    aggregates = [_aggregate(name, matrices, reference, taus) for name in matrices]
    return Analysis(data, reference, curves, results, scales, aggregates, taus)


def _curve(runs: Sequence[SweptRun]) -> TaskCurve | None:
    """Return the curve of runs over the steps that all of them were evaluated between; None where there are none."""
    steps = [run.evaluations.steps for run in runs]
    grid, returns = statistics.on_common_steps(steps, [run.evaluations.returns for run in runs])
    if not len(grid):
        return None
    _, seconds = statistics.on_common_steps(steps, [run.evaluations.seconds for run in runs])
    band = statistics.bootstrap(statistics.interquartile_mean, returns[:, None])
    return TaskCurve(runs[0].env, runs[0].contestant, grid, np.median(seconds, axis=0), band)


def _result(data: SweepData, env: str, name: str, reference: str) -> TaskResult:
    runs, others = data.of(env, name), data.of(env, reference)
    scores = np.array([[final_score(run)] for run in runs])
    target = np.array([[final_score(run)] for run in others])
    compared = name != reference and len(others) > 0
    return TaskResult(
        env,
        name,
        len(runs),
        sum(run.is_of(env, name) for run in data.runs),
        statistics.iqm(scores),
        scores[:, 0].tolist(),
        statistics.iqm_difference(scores, target) if compared else None,
        statistics.probability_of_improvement(scores, target) if compared else None,
        [
            steps_to_reach(run.evaluations.steps, run.evaluations.returns, run.budget, float(target.mean()))
            for run in (runs if others else [])
        ],
        [float(run.evaluations.seconds[-1]) for run in runs],
        [rate for run in runs if (rate := run.evaluations.success_rate) is not None],
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
    """Return the normalised scores of the seeds that are complete on every task."""
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
