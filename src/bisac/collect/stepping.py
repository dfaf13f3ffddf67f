"""Environments on the device, stepped inside compiled programs, for one run or for several side by side.

We reset by ourselves: the transition that ends an episode keeps its true last observation, and each episode begins from
a key of its own, made of the run's seed, the environment's index and the episode's number.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bisac.envs.device.task import DeviceTask
from bisac.types import Transition

TRAINING_STREAM = 2**31 + 2
"""Sets the keys of training's episodes apart from those of evaluations, and from those that learning draws with."""


class Place(NamedTuple):
    """Where the environments are, one entry each; with several runs side by side, a leading axis of runs."""

    env: PyTree[Array]
    """The environments' own states."""
    key: Key[Array, "*run"]
    """What the keys of a run's episodes are made of."""
    started: Int[Array, "*run env"]
    """Episodes that each environment has begun."""
    length: Int[Array, "*run env"]
    """Steps of the running episode."""
    total_reward: Float[Array, "*run env"]
    """Its rewards so far."""


class Stepped(NamedTuple):
    """What a step of all environments gave."""

    transition: Transition
    ended: Bool[Array, "*run env"]
    """Where the episode ended, by termination or truncation."""
    length: Int[Array, "*run env"]
    """Steps of the episode so far, or of the one that ended."""
    total_reward: Float[Array, "*run env"]
    """Its rewards."""


def first_place(task: DeviceTask, num_envs: int, seed_key: Key[Array, ""]) -> Place:
    """Return the environments of one run at the start of their first episodes."""
    key, started = jax.random.fold_in(seed_key, TRAINING_STREAM), jnp.zeros(num_envs, jnp.int32)
    env = task.reset(_episode_keys(key, started))
    return Place(env, key, started + 1, jnp.zeros(num_envs, jnp.int32), jnp.zeros(num_envs))


def step_all(task: DeviceTask, place: Place, action: Float[Array, "*run env act"]) -> tuple[Place, Stepped]:
    """Act in all environments, with actions in [-1, 1]; environments whose episode ends begin another."""
    runs = place.key.ndim
    obs, after = task.obs(place.env), _each(task.step, runs)(place.env, action)
    reward, terminated = task.reward(after), task.terminated(after)
    length, total_reward = place.length + 1, place.total_reward + reward
    ended = terminated | (length >= task.limit)
    transition = Transition(obs, action, reward, 1.0 - terminated.astype(jnp.float32), task.obs(after))

    def begin_anew() -> PyTree[Array]:
        fresh = _each(task.reset, runs)(_each(_episode_keys, runs)(place.key, place.started))
        return jax.tree.map(lambda new, old: jnp.where(_like(ended, new), new, old), fresh, after)

    # A reset may cost more than a step: it is computed only where some environment needs it.
    env = jax.lax.cond(ended.any(), begin_anew, lambda: after)
    begun = Place(
        env,
        place.key,
        place.started + ended.astype(jnp.int32),
        jnp.where(ended, 0, length),
        jnp.where(ended, 0.0, total_reward),
    )
    return begun, Stepped(transition, ended, length, total_reward)


def _episode_keys(key: Key[Array, ""], started: Int[Array, "env"]) -> Key[Array, "env"]:
    """Return the key of each environment's next episode."""
    own = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(started.shape[0]))
    return jax.vmap(jax.random.fold_in)(own, started)


def _each(function: Any, runs: int) -> Any:
    """Return a function of one run's arrays as one of several runs' where there is such an axis."""
    return jax.vmap(function) if runs else function


def _like(chosen: Bool[Array, "..."], leaf: Array) -> Bool[Array, "..."]:
    """Return a choice among environments in as many dimensions as the arrays chosen from have."""
    return chosen.reshape(chosen.shape + (1,) * (leaf.ndim - chosen.ndim))
