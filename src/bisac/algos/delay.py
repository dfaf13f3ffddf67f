"""Policies that learn at every few updates only: what to keep between their steps, and when the next one is due."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from bisac.types import Metrics

Improved = TypeVar("Improved")


class Delay(eqx.Module):
    """What a policy that does not learn at every update leaves for the next one."""

    updates: Int[Array, ""]
    """Updates so far."""
    told: Metrics
    """Metrics of the policy's last step, for not every update takes one."""


def delayed(
    every: int, past: Delay | None, improve: Callable[[], tuple[Improved, Metrics]], kept: Improved
) -> tuple[Improved, Metrics, Delay | None]:
    """Return what `improve` gives at the first of `every` updates; at the others what was kept, with the last metrics.

    The third of what is returned is the `past` of the next update, None where every update improves. Without a past
    where only some do, it improves: so the shapes of what it tells are found before the first update.
    """
    if every == 1 or past is None:
        improved, metrics = improve()
        return improved, metrics, None if every == 1 else Delay(jnp.ones((), jnp.int32), metrics)
    improved, told = jax.lax.cond(past.updates % every == 0, improve, lambda: (kept, past.told))
    return improved, told, Delay(past.updates + 1, told)
