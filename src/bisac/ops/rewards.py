"""The unit of rewards: values that are learned in units of the rewards' spread do not depend on their scale."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def spread_of(reward: Float[Array, "step"]) -> Float[Array, ""]:
    """Return the unit of rewards: how much those of random actions vary, whatever single ones are like.

    It is the distance of the 5th from the 95th percentile as it is in a normal distribution of standard deviation 1: a
    crash in a hundred steps does not count. Where nearly all rewards are equal, it is the standard deviation itself;
    where all are, their size; and 1 where all are zero.
    """
    low, high = jnp.percentile(reward, jnp.array([5.0, 95.0]))
    candidates = jnp.stack([(high - low) / 3.29, reward.std(), jnp.abs(reward).mean(), jnp.ones(())])
    # The rounding of a constant's mean is no spread.
    least = 1e-6 * jnp.abs(reward).max()
    return candidates[jnp.argmax(candidates > jnp.where(jnp.arange(4) < 2, least, 0.0))]


def in_rewards(value: Float[Array, ""], unit: Float[Array, ""] | None, power: int = 1) -> Float[Array, ""]:
    """Return a value that was learned in units of rewards as the environment counts them.

    `power` is 2 for a squared value; without a unit the value is already in the environment's rewards.
    """
    return value if unit is None else value * unit**power
