"""What a solved task looks like: the return from which on it counts as learned, and what that means."""

import gymnasium

SOLVED: dict[str, tuple[float, str]] = {
    # benchmarks/pendulum_optimum.py: -139 on average over starts, give or take 24 for ten of them. A single start
    # from which the pendulum is not swung up costs a mean of ten a hundred and more.
    "Pendulum-v1": (-200.0, "it swings up and stands; a perfect controller averages -139 over all starts"),
}
"""Marks of ours, for tasks that have none in Gymnasium: the return, and what it means."""


def judged(env_id: str, average: float) -> str | None:
    """Return whether an average return solves a task, in words; nothing where nobody has said what solves it."""
    spec = gymnasium.registry.get(env_id)
    if env_id in SOLVED:
        mark, meaning = SOLVED[env_id]
    elif spec is not None and spec.reward_threshold is not None:
        mark, meaning = float(spec.reward_threshold), "Gymnasium's mark"
    else:
        return None
    return f"{'yes' if average >= mark else 'not yet'}: from {mark:,.10g} on ({meaning})"
