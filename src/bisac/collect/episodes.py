"""Where episodes lie in a replay memory: each row has the number of its episode, and rows of one number follow.

The numbers are found in the rows themselves, so they are in no file: a memory that was read again, or taken over from
another run, has the episodes that it had.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bisac.collect.replay import Replay
from bisac.types import Transition


class Episodes(eqx.Module):
    """The number of the episode that each row is of, counted in each environment by itself."""

    own: Int[Array, "row"]
    demos: Int[Array, "shown"] | None
    """Those of the demonstrations, where there are any."""


def goes_on(
    next_obs: Float[Array | np.ndarray, "*batch obs"], obs: Float[Array | np.ndarray, "*batch obs"]
) -> Bool[Array, "*batch"]:
    """Return which steps go on from the one before: those that acted upon the very observation that it led to.

    So a memory need not say where an episode was truncated, or broken off by a resume, or by an evaluation that took
    turns with it: what follows there begins elsewhere. Should it begin with the same observation to the bit, then it is
    as good a continuation as any, for values are of observations.
    """
    return (jnp.asarray(next_obs) == jnp.asarray(obs)).all(axis=-1)


@partial(jax.jit, static_argnames="block")
def numbered(memory: Replay[Transition], block: int) -> Int[Array, "row"]:
    """Return the number of the episode of each row, in a memory that was filled a `block` of rows at a time."""
    held = memory.storage
    ends = ~goes_on(held.next_obs, jnp.roll(held.obs, -block, axis=0)) | (held.discount == 0.0)
    by_age = jnp.roll(ends, -memory.position).reshape(-1, block).astype(jnp.int32)  # rows not yet filled come first
    ended_before = jnp.cumsum(by_age, axis=0) - by_age
    return jnp.roll(ended_before.reshape(-1), memory.position)


def with_newest(numbers: Int[Array, "row"], memory: Replay[Transition], newest: Transition) -> Int[Array, "row"]:
    """Return the numbers of a memory to which the newest steps, one of each environment, are about to be added."""
    block = newest.reward.shape[0]
    before = (memory.position - block) % memory.capacity
    next_obs, discount, last = (
        jax.lax.dynamic_slice_in_dim(rows, before, block)
        for rows in (memory.storage.next_obs, memory.storage.discount, numbers)
    )
    ended = ~goes_on(next_obs, newest.obs) | (discount == 0.0)
    return jax.lax.dynamic_update_slice_in_dim(numbers, last + ended.astype(jnp.int32), memory.position, axis=0)


def steps_left(
    numbers: Int[Array, "row"], memory: Replay[Transition], index: Int[Array, "count"], block: int
) -> Int[Array, "count"]:
    """Return how many steps of the same episode are held that came after each of these rows.

    They lie `block` rows apart, around the ring. As the numbers only grow, the last one is found by halving.
    """
    first, newest = numbers[index], (memory.position - 1 - index) % memory.capacity // block

    def halve(_: Int[Array, ""], bounds: tuple[Int[Array, "count"], Int[Array, "count"]]):
        least, most = bounds
        middle = (least + most + 1) // 2
        same = numbers[(index + middle * block) % memory.capacity] == first
        return jnp.where(same, middle, least), jnp.where(same, most, middle - 1)

    halvings = (memory.capacity // block - 1).bit_length()
    return jax.lax.fori_loop(0, halvings, halve, (jnp.zeros_like(newest), newest))[0]
