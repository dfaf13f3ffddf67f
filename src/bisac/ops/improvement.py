"""Policy improvement as inference: the E-step and the M-step of Maximum a Posteriori Policy Optimisation.

The E-step weighs actions that the old policy drew by what they are worth; the M-step fits a Gaussian to them, within
trust regions around the old one (Abdolmaleki et al., 2018, in its decoupled form). All is in x, where a = tanh(x): the
change of variables adds to the likelihood what no parameter moves, and cancels in divergences. Where values come from,
and how the dual variables are learned, is not known here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bisac.ops.gaussian import Gaussian, TanhGaussian


def sample_weights(q: Float[Array, "sample batch"], eta: Float[Array, ""]) -> Float[Array, "sample batch"]:
    """Return w_k = softmax_k(Q(s, a_k) / eta): the improved policy, as weights of the old one's samples."""
    return jax.nn.softmax(q / eta, axis=0)


def temperature_dual(q: Float[Array, "sample batch"], eta: Float[Array, ""], epsilon: float) -> Float[Array, ""]:
    """Return g(eta) = eta epsilon + eta E_s[log 1/K sum_k exp(Q(s, a_k) / eta)].

    Where it is least, the improved policy's divergence from the old one, KL(w || 1/K), is epsilon on average.
    """
    log_mean = jax.nn.logsumexp(q / eta, axis=0) - np.log(q.shape[0])
    return eta * (epsilon + log_mean.mean())


def weights_kl(weights: Float[Array, "sample batch"]) -> Float[Array, ""]:
    """Return E_s[KL(w || 1/K)] = E_s[sum_k w_k log(K w_k)]: how far the E-step went."""
    return np.log(weights.shape[0]) - jax.scipy.special.entr(weights).sum(axis=0).mean()


def weighted_likelihood_loss(
    policy: TanhGaussian,
    old: TanhGaussian,
    x: Float[Array, "sample batch act"],
    weights: Float[Array, "sample batch"],
) -> Float[Array, ""]:
    """Return -E_s[sum_k w_k (log N(x_k; mean, std_old) + log N(x_k; mean_old, std))].

    Decoupled: the mean is fitted at the old standard deviation, and the standard deviation around the old mean, so
    that each has a trust region of its own, and a good sample far off moves the mean before it shrinks the width.
    """
    of_mean = jax.vmap(Gaussian(policy.mean, old.log_std).log_prob)(x)
    of_std = jax.vmap(Gaussian(old.mean, policy.log_std).log_prob)(x)
    return -(weights * (of_mean + of_std)).sum(axis=0).mean()


class DecoupledKL(NamedTuple):
    """KL(old || new) of each action dimension, a mean over states, as if only one of the two parameters had moved."""

    mean: Float[Array, "act"]
    """With the new mean, and the old standard deviation."""
    std: Float[Array, "act"]
    """With the new standard deviation, and the old mean."""


def decoupled_kl(policy: TanhGaussian, old: TanhGaussian) -> DecoupledKL:
    """Return E_s[(mean - mean_old)^2 / (2 std_old^2)] and E_s[log(std / std_old) + std_old^2 / (2 std^2) - 1/2]."""
    of_mean = 0.5 * jnp.square((policy.mean - old.mean) * jnp.exp(-old.log_std))
    log_ratio = old.log_std - policy.log_std
    of_std = 0.5 * jnp.expm1(2.0 * log_ratio) - log_ratio
    return DecoupledKL(of_mean.mean(axis=0), of_std.mean(axis=0))
