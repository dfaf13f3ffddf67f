"""Learning rates: a number, or a line between two numbers over so many updates.

A schedule counts updates, not the share of a run: extending a run does not change its past.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

LearningRate = float | str
"""A number; linear:FROM:TO:UPDATES; or auto, where a field says what that stands for."""

KIND = "positive and below 1e9, or linear:FROM:TO:UPDATES such as linear:1e-3:1e-4:200000"
"""What a learning rate must be, in a user's words."""


HIGHEST = 1e9
"""What no learning rate reaches: optimisers overflow at what is far beyond it."""


class Linear(NamedTuple):
    """A rate that goes along a line from one number to another, and stays there."""

    first: float
    last: float
    updates: int

    def at(self, update: Int[Array, ""]) -> Float[Array, ""]:
        """Return the rate after so many updates."""
        share = jnp.minimum(update.astype(jnp.float32) / self.updates, 1.0)
        return self.first + (self.last - self.first) * share


def parse_schedule(text: str) -> Linear | None:
    """Return the schedule that a text stands for; None where it stands for none."""
    kind, *numbers = text.split(":")
    try:
        first, last, updates = float(numbers[0]), float(numbers[1]), int(numbers[2])
    except (IndexError, ValueError):
        return None
    sound = (
        kind == "linear"
        and len(numbers) == 3
        and 0.0 < first < HIGHEST
        and 0.0 <= last < HIGHEST
        and 1 <= updates < 2**31
    )
    return Linear(first, last, updates) if sound else None


def is_rate(value: LearningRate) -> bool:
    """Return whether a value is a positive number or a schedule."""
    return parse_schedule(value) is not None if isinstance(value, str) else 0.0 < value < HIGHEST


def is_rate_or_auto(value: LearningRate) -> bool:
    """Return whether a value is a positive number, a schedule or auto."""
    return value == "auto" or is_rate(value)


def adam(rate: LearningRate, b1: float = 0.9, every: int = 1) -> optax.GradientTransformation:
    """Return Adam with a learning rate that may follow a schedule; it takes a step at one in `every` updates.

    Its state is the same with a schedule and without: steps are counted in it anyway.
    """
    assert rate != "auto", "an algorithm must be settled before it is used: algo.settled()"
    if not isinstance(rate, str):
        return optax.adam(rate, b1=b1)
    schedule, direction = parse_schedule(rate), optax.scale_by_adam(b1=b1)
    assert schedule is not None, "checked with the hyperparameters"

    def init(params: optax.Params) -> optax.OptState:
        return direction.init(params), optax.EmptyState()

    def update(updates: optax.Updates, state: Any, params: optax.Params | None = None) -> tuple[optax.Updates, Any]:
        inner, empty = state
        steps, moved = direction.update(updates, inner, params)
        size = -schedule.at(inner.count * every)
        return jax.tree.map(lambda step: size * step, steps), (moved, empty)

    return optax.GradientTransformation(init, update)
