"""A point mass on the device, as a user would write it: Brax's convention, and nothing of ours."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

EPISODE = 20


class Mass(NamedTuple):
    """Where a mass is, and what came of the last push."""

    velocity: Array
    obs: dict[str, Array]
    reward: Array
    done: Array


class PointMass:
    """Push a mass to the origin; beyond `wall` the episode ends."""

    action_size, max_episode_steps = 1, EPISODE

    def __init__(self, wall=2.0):
        self.wall = wall

    def reset(self, rng):
        position = jax.random.uniform(rng, (), minval=-1.0, maxval=1.0)
        return self._state(position, jnp.zeros(()), 0.0)

    def step(self, state, action):
        velocity = 0.9 * state.velocity + 0.1 * action[0]
        position = state.obs["state"][0] + 0.2 * velocity
        return self._state(position, velocity, -jnp.square(position) - 0.01 * jnp.square(action[0]))

    def _state(self, position, velocity, reward):
        obs = {"state": jnp.stack([position, velocity]), "privileged_state": jnp.zeros(3)}
        return Mass(velocity, obs, jnp.asarray(reward), (jnp.abs(position) > self.wall).astype(jnp.float32))
