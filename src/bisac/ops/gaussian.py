"""Policies as distributions: the tanh Gaussian a = tanh(x) with x drawn from a diagonal Gaussian, and the plain one.

What gives their means and standard deviations is not known here.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0
"""Bounds of every policy's log standard deviation in x."""

LOG_2PI = float(np.log(2.0 * np.pi))
"""The logarithm of 2 pi."""


def log_tanh_slope(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return log(1 - tanh(x)^2), which the naive form loses beyond |x| = 9 in float32."""
    return 2.0 * (np.log(2.0) - x - jax.nn.softplus(-2.0 * x))


def bounded(log_std: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return log standard deviations, within what every policy keeps to."""
    return jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)


class Sample(NamedTuple):
    """An action and the log-probability of drawing it."""

    action: Float[Array, "*batch act"]
    """The action, in [-1, 1]."""
    log_prob: Float[Array, "*batch"]
    """The logarithm of its density."""


class TanhGaussian(eqx.Module):
    """The distribution of a = tanh(x) over actions in [-1, 1]^N; the last axis is the action's."""

    mean: Float[Array, "*batch act"]
    """The mean of x."""
    log_std: Float[Array, "*batch act"]
    """The logarithm of the standard deviation of x."""

    @staticmethod
    def of_moments(mean: Float[Array, "*batch act"], var: Float[Array, "*batch act"]) -> "TanhGaussian":
        """Return the policy whose x has this mean and variance, with its log standard deviation kept in bounds."""
        return TanhGaussian(mean, bounded(0.5 * jnp.log(jnp.maximum(var, jnp.exp(2.0 * LOG_STD_MIN)))))

    @property
    def std(self) -> Float[Array, "*batch act"]:
        """The standard deviation of x."""
        return jnp.exp(self.log_std)

    def mode(self) -> Float[Array, "*batch act"]:
        """Return the deterministic action: the squashed mean of x."""
        return jnp.tanh(self.mean)

    def sample(self, key: Key[Array, ""]) -> Sample:
        """Return a reparameterised action with its log-probability."""
        x = self.mean + self.std * jax.random.normal(key, self.mean.shape)
        return Sample(jnp.tanh(x), self.log_prob(x))

    def draws(self, key: Key[Array, ""], count: int) -> Float[Array, "sample *batch act"]:
        """Return that many draws of x, along a leading axis; the actions are their tanh."""
        return self.mean[None] + self.std[None] * jax.random.normal(key, (count, *self.mean.shape))

    def log_prob(self, x: Float[Array, "*batch act"]) -> Float[Array, "*batch"]:
        """Return the log-density of the action tanh(x), from x: an action near a bound no longer determines it."""
        z = (x - self.mean) * jnp.exp(-self.log_std)
        log_normal = -0.5 * (jnp.square(z) + LOG_2PI) - self.log_std
        return (log_normal - log_tanh_slope(x)).sum(-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy of the action: that of x in closed form, plus E[log tanh'(x)] by the trapezoidal rule.

        For wide policies that converges much faster than Gauss-Hermite, whose far nodes see only the kink of |x|.
        """
        z = np.linspace(-6.0, 6.0, 65)
        w = np.exp(-0.5 * z**2)
        x = self.mean[..., None] + jnp.multiply.outer(self.std, jnp.asarray(z, self.mean.dtype))  # (*batch, act, node)
        slope = log_tanh_slope(x) @ jnp.asarray(w / w.sum(), self.mean.dtype)
        return (0.5 * (LOG_2PI + 1.0) + self.log_std + slope).sum(-1)


class Gaussian(eqx.Module):
    """A diagonal Gaussian over actions that are not squashed; the last axis is the action's."""

    mean: Float[Array, "*batch act"]
    """The mean of the action."""
    log_std: Float[Array, "*batch act"]
    """The logarithm of its standard deviation."""

    def sample(self, key: Key[Array, ""]) -> Float[Array, "*batch act"]:
        """Return actions as drawn, which may lie anywhere."""
        return self.mean + jnp.exp(self.log_std) * jax.random.normal(key, self.mean.shape)

    def log_prob(self, action: Float[Array, "*batch act"]) -> Float[Array, "*batch"]:
        """Return the log-density of this action."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return (-0.5 * (jnp.square(z) + LOG_2PI) - self.log_std).sum(axis=-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Return the entropy of the action, in closed form."""
        return (0.5 * (1.0 + LOG_2PI) + self.log_std).sum(axis=-1)
