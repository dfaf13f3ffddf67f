"""Every loss of the algorithms, each written once. Inputs are batches; what is returned is a mean over them."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from bisac.ops.gaussian import TanhGaussian
from bisac.types import Metrics

Spread = Literal["std", "var", "kl"]
"""How the projection loss compares widths: see `projection_loss`."""


def squared_error(q: Float[Array, "twin batch"], target: Float[Array, "batch"]) -> Float[Array, ""]:
    """Return half the squared TD error of the twins, summed over them, for each learns as if alone."""
    return 0.5 * jnp.square(q - target[None]).mean(axis=-1).sum()


def reverse_kl_loss(
    log_prob: Float[Array, "batch"], q: Float[Array, "twin batch"], alpha: Float[Array, ""]
) -> Float[Array, ""]:
    """Return L_r = E[alpha log pi(a|s) - min_j Q_j(s, a)]: alpha KL(pi || q) up to a constant."""
    return (alpha * log_prob - q.min(axis=0)).mean()


class ProjectionLoss(NamedTuple):
    """L_f in its two parts, each a mean over states."""

    mean: Float[Array, ""]
    """What the distance of the means contributes."""
    spread: Float[Array, ""]
    """What the difference of the widths contributes."""

    def metrics(self) -> Metrics:
        """Return the two parts by the names that they have in logs."""
        return {"penalty_mean": self.mean, "penalty_spread": self.spread}


def projection_loss(
    policy: TanhGaussian, projected: TanhGaussian, spread: Spread, weight: Float[Array, "batch"] | None = None
) -> ProjectionLoss:
    """Return L_f: the distance of the policy from the forward-KL projection, summed over action dimensions.

    States count by their `weight`, alike where none is given. `std` and `var` (the paper's) are squared differences of
    the means and of that measure of width. `kl` is KL(projection || policy), split into what the means and what the
    widths contribute.
    """
    mean_gap = jnp.square(projected.mean - policy.mean)
    if spread == "kl":
        log_ratio = projected.log_std - policy.log_std
        mean = 0.5 * mean_gap * jnp.exp(-2.0 * policy.log_std)
        width = 0.5 * (jnp.exp(2.0 * log_ratio) - 1.0) - log_ratio
    else:
        power = 2.0 if spread == "var" else 1.0
        mean = mean_gap
        width = jnp.square(jnp.exp(power * projected.log_std) - jnp.exp(power * policy.log_std))
    counted = 1.0 if weight is None else weight
    return ProjectionLoss((counted * mean.sum(-1)).mean(), (counted * width.sum(-1)).mean())


def temperature_loss(
    log_alpha: Float[Array, ""], entropy: Float[Array, "batch"], target_entropy: float
) -> Float[Array, ""]:
    """Return the loss that raises alpha while the policy's entropy is below its target, and lowers it above."""
    return log_alpha * (entropy - target_entropy).mean()


def policy_gradient_loss(
    log_prob: Float[Array, "batch"], old_log_prob: Float[Array, "batch"], advantage: Float[Array, "batch"], clip: float
) -> Float[Array, ""]:
    """Return PPO's surrogate -E[min(rho A, clip(rho) A)] with rho = pi / pi_old.

    Without clipping (an infinite clip) and at pi = pi_old its gradient is that of -E[A log pi]: A2C's.
    """
    ratio = jnp.exp(log_prob - old_log_prob)
    return -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage).mean()


def clipped_value_loss(
    value: Float[Array, "batch"], old_value: Float[Array, "batch"], target: Float[Array, "batch"], clip: float
) -> Float[Array, ""]:
    """Return half the squared error of the value; moving it further than `clip` from what it was earns nothing."""
    near = old_value + jnp.clip(value - old_value, -clip, clip)
    return 0.5 * jnp.maximum(jnp.square(value - target), jnp.square(near - target)).mean()
