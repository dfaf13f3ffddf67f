"""Gymnasium's Pendulum-v1 in JAX: swing a pendulum up, and keep it there, by a motor that is too weak to lift it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray


class PendulumState(NamedTuple):
    """A pendulum, and what it was rewarded with."""

    angle: Float[Array, ""]
    """Radians from upright, in [-pi, pi): float32 would lose digits of an angle that grows."""
    speed: Float[Array, ""]
    """Radians a second."""
    obs: Float[Array, "3"]
    """Cosine and sine of the angle, and the speed."""
    reward: Float[Array, ""]
    done: Bool[Array, ""]


class Pendulum:
    """One step is Gymnasium's, from the same state, within the rounding of float32."""

    def __init__(self, g: float = 10.0):
        self.g = g

    action_low, action_high = (-2.0,), (2.0,)
    max_episode_steps = 200
    max_speed, dt, mass, length = 8.0, 0.05, 1.0, 1.0

    def reset(self, rng: PRNGKeyArray) -> PendulumState:
        """Begin anywhere, with a speed of at most 1."""
        angle, speed = jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0) * jnp.array([jnp.pi, 1.0])
        return _state(angle, speed, jnp.zeros(()))

    def step(self, state: PendulumState, action: Float[Array, "1"]) -> PendulumState:
        """Apply a torque for a twentieth of a second."""
        torque = jnp.clip(action[0], self.action_low[0], self.action_high[0])
        cost = jnp.square(state.angle) + 0.1 * jnp.square(state.speed) + 0.001 * jnp.square(torque)
        gravity = 3.0 * self.g / (2.0 * self.length) * jnp.sin(state.angle)
        push = 3.0 / (self.mass * self.length**2) * torque
        speed = jnp.clip(state.speed + (gravity + push) * self.dt, -self.max_speed, self.max_speed)
        return _state(state.angle + speed * self.dt, speed, -cost)


def _state(angle: Float[Array, ""], speed: Float[Array, ""], reward: Float[Array, ""]) -> PendulumState:
    # A step turns it by 0.4 at most: one turn back is enough, and costs no digits as a remainder would.
    angle = jnp.where(angle >= jnp.pi, angle - 2 * jnp.pi, jnp.where(angle < -jnp.pi, angle + 2 * jnp.pi, angle))
    obs = jnp.stack([jnp.cos(angle), jnp.sin(angle), speed])
    return PendulumState(angle, speed, obs, reward, jnp.zeros((), bool))
