"""What a value should be: targets of temporal-difference learning, and advantages."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def soft_value(
    q: Float[Array, "twin *batch"], log_prob: Float[Array, "*batch"], alpha: Float[Array, ""]
) -> Float[Array, "*batch"]:
    """Return V = min_j Q_j - alpha log pi, from one sampled action."""
    return q.min(axis=0) - alpha * log_prob


def td_target(
    reward: Float[Array, "*batch"],
    discount: Float[Array, "*batch"],
    next_value: Float[Array, "*batch"],
    gamma: float,
) -> Float[Array, "*batch"]:
    """Return y = r + gamma (1 - terminated) V(s'): the paper's target, with the discount and termination it leaves out.

    `discount` is 0 where the episode terminated, else 1.
    """
    return reward + gamma * discount * next_value


def n_step_return(
    reward: Float[Array, "step *batch"],
    discount: Float[Array, "step *batch"],
    follows: Bool[Array, "step *batch"],
    gamma: float,
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"], Int[Array, "*batch"]]:
    """Return R = sum_k gamma^k r_k over m steps, the discount of what comes after them, and the last of them, m - 1.

    The m steps are those from the first on, up to one that terminates (`discount` 0) or that the next does not follow
    (`follows`, which is not asked of the first). The second answer is gamma^(m-1) (1 - terminated), so that `td_target`
    makes of both R + gamma^m (1 - terminated) V(s_m).
    """
    goes_on = jnp.where(follows[1:], discount[:-1], 0.0)
    taken = jnp.cumprod(jnp.concatenate([jnp.ones_like(reward[:1]), goes_on]), axis=0)  # 1 for each of the m steps
    last = taken.sum(axis=0).astype(jnp.int32) - 1
    power = gamma ** jnp.arange(len(reward), dtype=reward.dtype)
    total = jnp.tensordot(power, taken * reward, axes=1)
    return total, power[last] * jnp.take_along_axis(discount, last[None], axis=0)[0], last


def polyak(online: Float[Array, "*n"], target: Float[Array, "*n"], tau: float) -> Float[Array, "*n"]:
    """Return the target parameter moved a fraction tau towards the online one."""
    return target + tau * jnp.subtract(online, target)


def generalised_advantages(
    reward: Float[Array, "time env"],
    discount: Float[Array, "time env"],
    ended: Bool[Array, "time env"],
    value: Float[Array, "time env"],
    next_value: Float[Array, "time env"],
    gamma: float,
    trace: float,
) -> Float[Array, "time env"]:
    """Return A_t = sum_k (gamma lambda)^k delta_{t+k}, with delta = r + gamma (1 - terminated) V(s') - V(s).

    The sum is over the steps of an episode, and `trace` is lambda.
    `next_value` is of the observation that the step led to, so a truncated episode bootstraps from its true last one.
    """
    delta = reward + gamma * discount * next_value - value

    def backwards(later: Float[Array, "env"], step: tuple[Float[Array, "env"], Bool[Array, "env"]]):
        advantage = step[0] + gamma * trace * jnp.where(step[1], 0.0, later)
        return advantage, advantage

    return jax.lax.scan(backwards, jnp.zeros_like(delta[0]), (delta, ended), reverse=True)[1]
