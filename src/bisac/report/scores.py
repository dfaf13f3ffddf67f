"""What a report calls a run's score, at each step and at its end, and when a score was reached."""

import numpy as np
from jaxtyping import Float

from bisac.report.data import SweptRun
from bisac.sweeps.scores import WINDOW, running_score


def steps_to_reach(
    steps: Float[np.ndarray, "time"], returns: Float[np.ndarray, "time"], budget: int, target: float
) -> float:
    """Return the first step at which the score is at least the target; infinity if it never is."""
    # Not before a whole window has passed: one lucky evaluation at the start is no score.
    reached = steps[(running_score(steps, returns, budget) >= target) & (steps >= WINDOW * budget)]
    return float(reached[0]) if len(reached) else np.inf


def final_score(run: SweptRun) -> float:
    """Return the score of a complete run at its end: the mean of the evaluations in the last tenth of its training.

    The end is the first evaluation with all planned steps taken: what comes after it in a longer run does not count.
    """
    end = min(int(np.searchsorted(run.evaluations.steps, run.budget)), len(run.evaluations.steps) - 1)
    return float(running_score(run.evaluations.steps, run.evaluations.returns, run.budget)[end])
