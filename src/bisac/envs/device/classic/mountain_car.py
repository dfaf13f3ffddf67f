"""Gymnasium's MountainCarContinuous-v0 in JAX: a car too weak for the hill must swing itself up."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray


class CarState(NamedTuple):
    """A car in its valley, and what it was rewarded with."""

    obs: Float[Array, "2"]
    """Position and velocity: all there is to know."""
    reward: Float[Array, ""]
    done: Bool[Array, ""]


class MountainCar:
    """One step is Gymnasium's, from the same state, within the rounding of float32."""

    def __init__(self, goal_velocity: float = 0.0):
        self.goal_velocity = goal_velocity

    action_low, action_high = (-1.0,), (1.0,)
    max_episode_steps = 999
    left, right, goal, max_speed, power = -1.2, 0.6, 0.45, 0.07, 0.0015

    def reset(self, rng: PRNGKeyArray) -> CarState:
        """Begin at rest, near the bottom of the valley."""
        position = jax.random.uniform(rng, (), minval=-0.6, maxval=-0.4)
        return CarState(jnp.stack([position, jnp.zeros(())]), jnp.zeros(()), jnp.zeros((), bool))

    def step(self, state: CarState, action: Float[Array, "1"]) -> CarState:
        """Push, slide, and count what the push cost; the flag on the hill is worth 100."""
        position, velocity = state.obs
        force = jnp.clip(action[0], self.action_low[0], self.action_high[0])
        velocity = velocity + force * self.power - 0.0025 * jnp.cos(3.0 * position)
        velocity = jnp.clip(velocity, -self.max_speed, self.max_speed)
        position = jnp.clip(position + velocity, self.left, self.right)
        velocity = jnp.where((position == self.left) & (velocity < 0.0), 0.0, velocity)
        done = (position >= self.goal) & (velocity >= self.goal_velocity)
        reward = jnp.where(done, 100.0, 0.0) - 0.1 * jnp.square(action[0])
        return CarState(jnp.stack([position, velocity]), reward, done)
