"""What is called a run's score: how well it does at a step, less noisy than one evaluation."""

import numpy as np
from jaxtyping import Float

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
