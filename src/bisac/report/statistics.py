"""The statistics of a report, each a pure function of arrays; intervals by rliable's stratified bootstrap.

A score matrix has a row for each seed and a column for each task.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bisac.errors import BisacError

REPS = 2000
"""Bootstrap samples of each interval."""
ENOUGH_SEEDS = 4
"""With three seeds a side, two samples of the same kind lie wholly apart once in ten times (2 of 20 orders), with four
once in 35. A bootstrap of so few does not know that: its interval would be narrow all the same."""
WINDOW = 0.1
"""A run's score at a step is the mean of its evaluations in the tenth of the training before it."""


@dataclass(frozen=True)
class Estimate:
    """A number, with the 95% interval that its seeds allow; none with fewer than two."""

    value: float
    interval: tuple[float, float] | None
    seeds: int
    """The fewest that any part of it rests on."""

    def establishes(self, null: float) -> bool:
        """Whether there are enough seeds, and their interval leaves no room for the null hypothesis."""
        if self.interval is None or self.seeds < ENOUGH_SEEDS:
            return False
        low, high = self.interval
        return null < low or high < null


@dataclass(frozen=True)
class Band:
    """A curve of such numbers."""

    values: Float[np.ndarray, "point"]
    interval: tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"]] | None
    seeds: int


Statistic = Callable[..., Float[np.ndarray, "point"]]


def interquartile_mean(scores: Float[np.ndarray, "seed task *point"]) -> Float[np.ndarray, "*point"]:
    """The mean of the middle half of all seeds and tasks together; of fewer than four, the plain mean."""
    # What rliable's metric gives, at every point at once: scipy's checks would take most of the bootstrap's time.
    together = np.sort(scores.reshape(-1, *scores.shape[2:]), axis=0)
    cut = len(together) // 4
    return np.asarray(together[cut : len(together) - cut].mean(0))


def estimate_band(statistic: Statistic, *scores: Float[np.ndarray, "_ task *point"]) -> Band:
    """A statistic of one or more contestants' scores, with pointwise intervals where each has two seeds or more."""
    library = _rliable()
    seeds = min(len(part) for part in scores)
    if seeds < 2:
        return Band(statistic(*scores), None, seeds)
    data: Any = scores[0] if len(scores) == 1 else list(scores)
    with _seeded():
        values, intervals = library.get_interval_estimates({"": data}, statistic, reps=REPS)
    return Band(values[""], (intervals[""][0], intervals[""][1]), seeds)


def estimate(statistic: Callable[..., float], *scores: Float[np.ndarray, "_ task"]) -> Estimate:
    """The same of a single number."""
    band = estimate_band(lambda *parts: np.array([statistic(*parts)]), *scores)
    interval = (float(band.interval[0][0]), float(band.interval[1][0])) if band.interval else None
    return Estimate(float(band.values[0]), interval, band.seeds)


def iqm(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """The interquartile mean of all seeds and tasks."""
    return estimate(lambda part: float(interquartile_mean(part)), scores)


def mean(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """The mean over tasks of the mean over seeds."""
    return estimate(lambda part: float(part.mean()), scores)


def median(scores: Float[np.ndarray, "seed task"]) -> Estimate:
    """The median over tasks of the mean over seeds."""
    return estimate(lambda part: float(np.median(part.mean(0))), scores)


def iqm_difference(scores: Float[np.ndarray, "a task"], reference: Float[np.ndarray, "b task"]) -> Estimate:
    """By how much one interquartile mean exceeds another."""
    return estimate(lambda x, y: float(interquartile_mean(x) - interquartile_mean(y)), scores, reference)


def probability_of_improvement(scores: Float[np.ndarray, "a task"], reference: Float[np.ndarray, "b task"]) -> Estimate:
    """How likely a run of one beats a run of the other on the same task, averaged over tasks; a tie is half a win."""

    def wins(x: Float[np.ndarray, "a task"], y: Float[np.ndarray, "b task"]) -> float:
        # rliable's own metric, by comparing all pairs at once: its Mann-Whitney test takes a hundred times as long.
        return float(((x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])).mean())

    return estimate(wins, scores, reference)


def performance_profile(scores: Float[np.ndarray, "seed task"], taus: Float[np.ndarray, "point"]) -> Band:
    """Which fraction of all runs scores above each threshold."""
    return estimate_band(lambda part: (part[..., None] > taus).mean((0, 1)), scores)


def running_score(
    steps: Float[np.ndarray, "time"], returns: Float[np.ndarray, "time"], budget: int
) -> Float[np.ndarray, "time"]:
    """The score at each evaluation: the mean of those in the tenth of the training that ends there."""
    first = np.searchsorted(steps, steps - WINDOW * budget, side="right")
    total = np.concatenate([[0.0], returns.cumsum()])
    last = np.arange(1, len(steps) + 1)
    return (total[last] - total[first]) / (last - first)


def steps_to_reach(
    steps: Float[np.ndarray, "time"], returns: Float[np.ndarray, "time"], budget: int, target: float
) -> float:
    """The first step at which the score is at least the target; infinity if it never is."""
    # Not before a whole window has passed: one lucky evaluation at the start is no score.
    reached = steps[(running_score(steps, returns, budget) >= target) & (steps >= WINDOW * budget)]
    return float(reached[0]) if len(reached) else np.inf


def at_steps(
    grid: Float[np.ndarray, "point"], steps: Float[np.ndarray, "time"], values: Float[np.ndarray, "time"]
) -> Float[np.ndarray, "point"]:
    """A curve at common steps; algorithms that pause only after rollouts are evaluated a little after them."""
    return np.interp(grid, steps, values)


def _rliable():
    try:
        from rliable import library
    except ImportError as error:
        raise BisacError("a report needs rliable and plotly: pip install 'bisac[report]'.") from error
    return library


@contextmanager
def _seeded() -> Iterator[None]:
    """The same folder gives the same report: rliable draws from NumPy's global generator, whatever it is given."""
    before = np.random.get_state()
    np.random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(before)
