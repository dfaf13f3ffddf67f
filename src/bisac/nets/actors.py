"""Actors: what turns observations into actions, or into a distribution over them, and all that a policy file carries.

Actions are in [-1, 1] here; what an environment makes of them, and how an actor is trained, is not known.
"""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.marginals import Marginals
from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments
from bisac.ops.gaussian import Gaussian, TanhGaussian, bounded
from bisac.ops.projection import Projection, project
from bisac.ops.quadrature import Grid


class Actor(eqx.Module):
    """Whatever answers a batch of observations with actions."""

    @abstractmethod
    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Return actions in [-1, 1]: drawn by `key` to explore, or the deterministic ones."""


class TanhGaussianActor(Actor):
    """A policy pi(a|s) that is a Gaussian under tanh."""

    @abstractmethod
    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """Return the distribution over actions at each observation."""

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Return an action sampled from the policy to explore, or its mode."""
        policy = self(obs)
        return policy.sample(key).action if explore else policy.mode()


class GaussianActor(TanhGaussianActor):
    """SAC's actor: one network gives the mean and the log standard deviation of x."""

    mlp: MLP
    """The network, whose outputs are the means and then the log standard deviations."""

    @staticmethod
    def init(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation
    ) -> "GaussianActor":
        """Return a fresh actor whose network has hidden layers of these widths."""
        return GaussianActor(MLP.init(key, (obs_dim, *hidden, 2 * action_dim), activation))

    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """Return the Gaussian that the network gives at each observation."""
        return self._gaussian(jax.vmap(self.mlp)(obs))

    def on_batch(self, obs: Float[Array, "batch obs"]) -> tuple[TanhGaussian, tuple[Moments, ...]]:
        """Return the Gaussians for training, by a network that is normalised by the batch, and the batch's moments."""
        output, seen = self.mlp.on_batch(obs)
        return self._gaussian(output), seen

    @staticmethod
    def _gaussian(output: Float[Array, "batch out"]) -> TanhGaussian:
        mean, log_std = jnp.split(output, 2, axis=-1)
        return TanhGaussian(mean, bounded(log_std))


class ProjectedActor(TanhGaussianActor):
    """The forward-KL projection of exp(Q_i / alpha): Forward SAC's policy, with no network of its own."""

    marginals: Marginals
    """VDN-a's networks of Q_i, twins whose mean is projected."""
    log_alpha: Float[Array, ""]
    """The logarithm of the temperature."""
    grid: Grid = eqx.field(static=True)
    """The quadrature."""

    def project(self, obs: Float[Array, "batch obs"]) -> Projection:
        """Return mean* and var* at each observation, from the mean of the twins' marginals."""
        curves = self.marginals.curves(obs, jnp.asarray(self.grid.actions)).mean(axis=0)  # (act, batch, point)
        return jax.tree.map(jnp.transpose, project(curves, jnp.exp(self.log_alpha), self.grid))

    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """Return the projected Gaussian at each observation."""
        projection = self.project(obs)
        return TanhGaussian.of_moments(projection.mean, projection.var)


class DeterministicActor(Actor):
    """DDPG's actor: a network under tanh; it explores by adding noise to what it would do."""

    mlp: MLP
    """The network, before tanh."""
    noise: float = eqx.field(static=True)
    """Standard deviation of the exploration noise."""

    @staticmethod
    def init(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation, noise: float
    ) -> "DeterministicActor":
        """Return a fresh actor whose network has hidden layers of these widths."""
        return DeterministicActor(MLP.init(key, (obs_dim, *hidden, action_dim), activation), noise)

    def __call__(self, obs: Float[Array, "batch obs"]) -> Float[Array, "batch act"]:
        """Return the action mu(s) at each observation."""
        return jnp.tanh(jax.vmap(self.mlp)(obs))

    def on_batch(self, obs: Float[Array, "batch obs"]) -> tuple[Float[Array, "batch act"], tuple[Moments, ...]]:
        """Return mu(s) for training, by a network that is normalised by the batch, and the batch's moments."""
        output, seen = self.mlp.on_batch(obs)
        return jnp.tanh(output), seen

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Return mu(s), with noise to explore."""
        return noisy(self(obs), key, self.noise) if explore else self(obs)


class UnsquashedActor(Actor):
    """PPO's actor: a Gaussian whose width does not depend on the state; the environment gets it cut to [-1, 1]."""

    mlp: MLP
    """The network of the mean."""
    log_std: Float[Array, "act"]
    """The logarithm of the standard deviation of each action dimension."""

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        activation: Activation,
        log_std: float,
    ) -> "UnsquashedActor":
        """Return a fresh actor, whose mean starts near zero and whose log standard deviation at the number given."""
        mlp = MLP.orthogonal(key, (obs_dim, *hidden, action_dim), activation, last=0.01)
        return UnsquashedActor(mlp, jnp.full(action_dim, log_std, jnp.float32))

    def __call__(self, obs: Float[Array, "batch obs"]) -> Gaussian:
        """Return the distribution over actions at each observation."""
        mean = jax.vmap(self.mlp)(obs)
        return Gaussian(mean, jnp.broadcast_to(self.log_std, mean.shape))

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Return an action sampled from the policy to explore, or its mean, cut to [-1, 1]."""
        policy = self(obs)
        return jnp.clip(policy.sample(key) if explore else policy.mean, -1.0, 1.0)


def noisy(
    action: Float[Array, "batch act"], key: Key[Array, ""], std: float, limit: float = jnp.inf
) -> Float[Array, "batch act"]:
    """Return actions with Gaussian noise, itself cut off at +-limit, kept in [-1, 1]."""
    noise = jnp.clip(std * jax.random.normal(key, action.shape), -limit, limit)
    return jnp.clip(action + noise, -1.0, 1.0)
