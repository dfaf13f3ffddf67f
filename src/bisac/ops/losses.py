"""Every loss of the family, each written once. Inputs are batches; what is returned is a mean over them."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from bisac.ops.gaussian import TanhGaussian

Spread = Literal["std", "var", "kl"]
"""How the projection loss compares widths: see `projection_loss`."""


def squared_error(q: Float[Array, "twin batch"], target: Float[Array, "batch"]) -> Float[Array, ""]:
    """TD error of both twins: summed over them, for each learns as if alone."""
    return 0.5 * jnp.square(q - target[None]).mean(axis=-1).sum()


def reverse_kl_loss(
    log_prob: Float[Array, "batch"], q: Float[Array, "twin batch"], alpha: Float[Array, ""]
) -> Float[Array, ""]:
    """L_r = E[alpha log pi(a|s) - min_j Q_j(s, a)]: alpha KL(pi || q) up to a constant."""
    return (alpha * log_prob - q.min(axis=0)).mean()


class ProjectionLoss(NamedTuple):
    """L_f in its two parts."""

    mean: Float[Array, ""]
    spread: Float[Array, ""]


def projection_loss(
    policy: TanhGaussian, projected: TanhGaussian, alpha: Float[Array, ""], spread: Spread
) -> ProjectionLoss:
    """L_f: the distance of the policy from the forward-KL projection, summed over action dimensions.

    `std` and `var` (the paper's) are squared differences of the means and of that measure of width. `kl` is
    alpha KL(projection || policy), split into what the means and what the widths contribute.
    """
    mean_gap = jnp.square(projected.mean - policy.mean)
    if spread == "kl":
        log_ratio = projected.log_std - policy.log_std
        mean = 0.5 * alpha * mean_gap * jnp.exp(-2.0 * policy.log_std)
        width = alpha * (0.5 * (jnp.exp(2.0 * log_ratio) - 1.0) - log_ratio)
    else:
        power = 2.0 if spread == "var" else 1.0
        mean = mean_gap
        width = jnp.square(jnp.exp(power * projected.log_std) - jnp.exp(power * policy.log_std))
    return ProjectionLoss(mean.sum(-1).mean(), width.sum(-1).mean())


def temperature_loss(
    log_alpha: Float[Array, ""], entropy: Float[Array, "batch"], target_entropy: float
) -> Float[Array, ""]:
    """Raises alpha while the policy's entropy is below its target, and lowers it above."""
    return log_alpha * (entropy - target_entropy).mean()
