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
    led_to: Float[Array, "env obs"]
    """From where the newest episodes go on. It is kept by itself, for a program that writes to a memory and reads from
    it elsewhere would copy the whole of it."""
    demos: Int[Array, "shown"] | None
    """The numbers of the demonstrations, where there are any."""


def goes_on(
    led_to: Float[Array | np.ndarray, "*batch obs"], obs: Float[Array | np.ndarray, "*batch obs"]
) -> Bool[Array, "*batch"]:
    """Return which steps go on from the one before: those that acted upon the very observation that it led to.

    So a memory need not say where an episode was truncated, or broken off by a resume, or by an evaluation that took
    turns with it: what follows there begins elsewhere. Should it begin with the same observation to the bit, then it is
    as good a continuation as any, for values are of observations.
    """
    return (jnp.asarray(led_to) == jnp.asarray(obs)).all(axis=-1)


@partial(jax.jit, static_argnames="num_envs")
def find_episodes(memory: Replay[Transition], demos: Replay[Transition] | None, num_envs: int) -> Episodes:
    """Return the episodes of a memory that so many environments filled, and of demonstrations, if there are any."""
    newest = (memory.position - num_envs + jnp.arange(num_envs)) % memory.capacity
    led_to = _led_to(jax.tree.map(lambda rows: rows[newest], memory.storage))
    return Episodes(_numbered(memory, num_envs), led_to, None if demos is None else _numbered(demos, 1))


def with_newest(episodes: Episodes, position: Int[Array, ""], newest: Transition) -> Episodes:
    """Return the episodes of a memory to which the newest steps, one of each environment, are added at a position."""
    num_envs = newest.reward.shape[0]
    before = (position - num_envs) % episodes.own.shape[0]
    anew = ~goes_on(episodes.led_to, newest.obs)
    numbers = jax.lax.dynamic_slice_in_dim(episodes.own, before, num_envs) + anew.astype(jnp.int32)
    own = jax.lax.dynamic_update_slice_in_dim(episodes.own, numbers, position, axis=0)
    return Episodes(own, _led_to(newest), episodes.demos)


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


def _numbered(memory: Replay[Transition], block: int) -> Int[Array, "row"]:
    """Return the number of each row's episode, in a memory that was filled a `block` of rows at a time."""
    ends = ~goes_on(_led_to(memory.storage), jnp.roll(memory.storage.obs, -block, axis=0))
    by_age = jnp.roll(ends, -memory.position).reshape(-1, block).astype(jnp.int32)  # rows not yet filled come first
    ended_before = jnp.cumsum(by_age, axis=0) - by_age
    return jnp.roll(ended_before.reshape(-1), memory.position)


def _led_to(steps: Transition) -> Float[Array, "step obs"]:
    """Return from where the episodes of these steps go on; where they terminated, from no observation that there is."""
    over = jnp.asarray(steps.discount)[:, None] == 0.0
    return jnp.where(over, jnp.nan, jnp.asarray(steps.next_obs))
