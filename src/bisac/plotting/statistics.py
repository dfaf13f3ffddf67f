"""The statistics of several seeds, each a pure function of arrays, and the project's one bootstrap.

The aggregates and the stratified bootstrap are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of the
Statistical Precipice" (2021). A score matrix has a row for each seed and a column for each task. This module must not
know where scores come from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

REPS = 2000
"""The number of bootstrap samples behind each interval."""
ENOUGH_SEEDS = 4
"""The number of seeds a side from which a difference may be called established. With three, two samples of the same
kind lie wholly apart once in ten times (2 of 20 orders), with four once in 35; a bootstrap of so few seeds does not
know that, and its interval would be narrow all the same."""
CHUNK = 200_000
"""The number of resampled scores that are held in memory at a time."""


@dataclass(frozen=True)
class Estimate:
    """A number, with the confidence interval that its seeds allow."""

    value: float
    """The statistic of the seeds themselves."""
    interval: tuple[float, float] | None
    """The lower and the upper bound; None with fewer than two seeds."""
    seeds: int
    """The fewest seeds that any part of the number rests on."""

    def establishes(self, null: float) -> bool:
        """Whether there are enough seeds, and their interval leaves no room for the null hypothesis."""
        if self.interval is None or self.seeds < ENOUGH_SEEDS:
            return False
        low, high = self.interval
        return null < low or high < null


@dataclass(frozen=True)
class Band:
    """A curve of numbers, with a confidence interval at each of its points."""

    values: Float[np.ndarray, "point"]
    """The statistic of the seeds themselves, at each point."""
    interval: tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"]] | None
    """The lower and the upper bounds; None with fewer than two seeds."""
    seeds: int
    """The fewest seeds that any part of the curve rests on."""


Statistic = Callable[..., Float[np.ndarray, "rep point"]]
"""A statistic of one contestant's scores or of several contestants', each an array (rep, seed, task, point)."""


def interquartile_mean(scores: Float[np.ndarray, "rep seed task point"]) -> Float[np.ndarray, "rep point"]:
    """Return the mean of the middle half of all seeds and tasks together; of fewer than four, the plain mean."""
    together = np.sort(scores.reshape(len(scores), -1, scores.shape[-1]), axis=1)
    cut = together.shape[1] // 4
    return together[:, cut : together.shape[1] - cut].mean(axis=1)


def plain_mean(scores: Float[np.ndarray, "rep seed task point"]) -> Float[np.ndarray, "rep point"]:
    """Return the mean over tasks of the mean over seeds."""
    return scores.mean(axis=(1, 2))


def bootstrap(statistic: Statistic, *scores: Float[np.ndarray, "_ task point"], confidence: float = 0.95) -> Band:
    """Return a statistic of one or more contestants' scores, with percentile intervals of a stratified bootstrap.

    Seeds are drawn anew within each task and each contestant, the same ones at all points. The draws are from a fixed
    seed: equal scores have equal intervals.
    """
    values = statistic(*(part[None] for part in scores))[0]
    seeds = min(len(part) for part in scores)
    if seeds < 2:
        return Band(values, None, seeds)
    generator, drawn, done = np.random.default_rng(0), [], 0
    while done < REPS:
        count = min(REPS - done, max(1, CHUNK // sum(part.size for part in scores)))
        drawn.append(statistic(*(_resampled(part, count, generator) for part in scores)))
        done += count
    low, high = np.quantile(np.concatenate(drawn), [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    return Band(values, (low, high), seeds)


def _resampled(
    scores: Float[np.ndarray, "seed task point"], count: int, generator: np.random.Generator
) -> Float[np.ndarray, "rep seed task point"]:
    """Draw as many seeds as there are, with repetition, for each task by itself."""
    seeds, tasks, _ = scores.shape
    index = generator.integers(seeds, size=(count, seeds, tasks))
    return scores[index, np.arange(tasks)]


def _estimate(statistic: Statistic, *scores: Float[np.ndarray, "_ task"]) -> Estimate:
    """Bootstrap a single number."""
    band = bootstrap(statistic, *(part[..., None] for part in scores))
    interval = (float(band.interval[0][0]), float(band.interval[1][0])) if band.interval else None
    return Estimate(float(band.values[0]), interval, band.seeds)


def iqm(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """Return the interquartile mean of all seeds and tasks."""
    return _estimate(interquartile_mean, scores)


def mean(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """Return the mean over tasks of the mean over seeds."""
    return _estimate(plain_mean, scores)


def median(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """Return the median over tasks of the mean over seeds."""
    return _estimate(lambda part: np.median(part.mean(axis=1), axis=1), scores)


def iqm_difference(scores: Float[np.ndarray, "a task"], reference: Float[np.ndarray, "b task"]) -> Estimate:
    """Return by how much one interquartile mean exceeds another."""
    return _estimate(lambda x, y: interquartile_mean(x) - interquartile_mean(y), scores, reference)


def probability_of_improvement(scores: Float[np.ndarray, "a task"], reference: Float[np.ndarray, "b task"]) -> Estimate:
    """Return how likely a run of one beats a run of the other on the same task, averaged over tasks.

    A tie is half a win, as in the Mann-Whitney statistic.
    """

    def wins(x: Float[np.ndarray, "rep a task 1"], y: Float[np.ndarray, "rep b task 1"]) -> Float[np.ndarray, "rep 1"]:
        apart = x[:, :, None] - y[:, None]  # (rep, a, b, task, 1)
        return 0.5 + 0.5 * np.sign(apart).mean(axis=(1, 2, 3))

    return _estimate(wins, scores, reference)


def performance_profile(scores: Float[np.ndarray, "seed task"], taus: Float[np.ndarray, "point"]) -> Band:
    """Return which fraction of all runs scores above each threshold."""
    above: Bool[np.ndarray, "seed task point"] = scores[..., None] > taus
    return bootstrap(plain_mean, above.astype(float))


def on_common_steps(
    steps: Sequence[Float[np.ndarray, "_"]], values: Sequence[Float[np.ndarray, "_"]]
) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "seed point"]]:
    """Return steps at which all of several curves are known, and every curve's values there, by interpolation.

    The steps are those of the curve that has the fewest, as far as all curves reach: nothing is interpolated where all
    were evaluated at the same steps. There are none where the curves have no stretch in common.
    """
    fewest = min(steps, key=len)
    grid = fewest[(fewest >= max(each[0] for each in steps)) & (fewest <= min(each[-1] for each in steps))]
    return grid, np.stack([np.interp(grid, *curve) for curve in zip(steps, values, strict=True)])
