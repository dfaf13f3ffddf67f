"""What a report calls a run's score, at each step and at its end, and when a score was reached."""

import numpy as np
from jaxtyping import Float

from bisac.report.data import SweptRun

WINDOW = 0.1
"""A run's score at a step is the mean of its evaluations in this fraction of its training before that step."""


def running_score(
    steps: Float[np.ndarray, "time"], returns: Float[np.ndarray, "time"], budget: int
) -> Float[np.ndarray, "time"]:
    """Return the score at each evaluation: the mean of those in the tenth of the training that ends there."""
    first = np.searchsorted(steps, steps - WINDOW * budget, side="right")
    total = np.concatenate([[0.0], returns.cumsum()])
    last = np.arange(1, len(steps) + 1)
    return (total[last] - total[first]) / (last - first)


def steps_to_reach(
    steps: Float[np.ndarray, "time"], returns: Float[np.ndarray, "time"], budget: int, target: float
) -> float:
    """Return the first step at which the score is at least the target; infinity if it never is."""
    # Not before a whole window has passed: one lucky evaluation at the start is no score.
    reached = steps[(running_score(steps, returns, budget) >= target) & (steps >= WINDOW * budget)]
    return float(reached[0]) if len(reached) else np.inf


def final_score(run: SweptRun) -> float:
    """Return the score of a complete run at its end: the mean of the evaluations in the last tenth of its training."""
    return float(running_score(run.evaluations.steps, run.evaluations.returns, run.budget)[-1])
