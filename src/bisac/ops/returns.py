"""What a value should be: targets of temporal-difference learning."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def soft_value(
    q: Float[Array, "twin *batch"], log_prob: Float[Array, "*batch"], alpha: Float[Array, ""]
) -> Float[Array, "*batch"]:
    """V = min_j Q_j - alpha log pi, from one sampled action."""
    return q.min(axis=0) - alpha * log_prob


def td_target(
    reward: Float[Array, "*batch"],
    discount: Float[Array, "*batch"],
    next_value: Float[Array, "*batch"],
    gamma: float,
) -> Float[Array, "*batch"]:
    """The target y = r + gamma (1 - terminated) V(s'): the paper's, with the discount and termination it leaves out."""
    return reward + gamma * discount * next_value


def polyak(online: Float[Array, "*n"], target: Float[Array, "*n"], tau: float) -> Float[Array, "*n"]:
    """The target parameter moved a fraction tau towards the online one."""
    return target + tau * jnp.subtract(online, target)
