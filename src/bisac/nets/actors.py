"""Policies: what turns observations into a distribution over actions, and all that a policy file has to carry."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.critics import Marginals
from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments
from bisac.ops.gaussian import LOG_STD_MAX, LOG_STD_MIN, Gaussian, TanhGaussian
from bisac.ops.projection import Projection, project
from bisac.ops.quadrature import Grid


class Actor(eqx.Module):
    """What acts on batches of observations."""

    @abstractmethod
    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Actions in [-1, 1]: drawn to explore, or the deterministic ones."""


class TanhGaussianActor(Actor):
    """A policy pi(a|s) that is a Gaussian under tanh."""

    @abstractmethod
    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """The distribution over actions at each observation."""

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """A sampled action, or the deterministic one."""
        policy = self(obs)
        return policy.sample(key).action if explore else policy.mode()


class GaussianActor(TanhGaussianActor):
    """SAC's actor: one network gives the mean and the log standard deviation of x."""

    mlp: MLP

    @staticmethod
    def init(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation
    ) -> "GaussianActor":
        """A fresh actor."""
        return GaussianActor(MLP.init(key, (obs_dim, *hidden, 2 * action_dim), activation))

    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """The network's Gaussian."""
        return self._gaussian(jax.vmap(self.mlp)(obs))

    def on_batch(self, obs: Float[Array, "batch obs"]) -> tuple[TanhGaussian, tuple[Moments, ...]]:
        """The same for training: a normalised network takes the moments of the batch, which are returned too."""
        output, seen = self.mlp.on_batch(obs)
        return self._gaussian(output), seen

    @staticmethod
    def _gaussian(output: Float[Array, "batch out"]) -> TanhGaussian:
        mean, log_std = jnp.split(output, 2, axis=-1)
        return TanhGaussian(mean, _bounded(log_std))


class ProjectedActor(TanhGaussianActor):
    """The forward-KL projection of exp(Q_i / alpha): Forward SAC's policy, with no network of its own."""

    marginals: Marginals
    log_alpha: Float[Array, ""]
    grid: Grid = eqx.field(static=True)

    def project(self, obs: Float[Array, "batch obs"]) -> Projection:
        """mean* and var*, from the mean of the twins' marginals."""
        curves = self.marginals.curves(obs, jnp.asarray(self.grid.actions)).mean(axis=0)  # (act, batch, point)
        return jax.tree.map(jnp.transpose, project(curves, jnp.exp(self.log_alpha), self.grid))

    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """The projected Gaussian."""
        return projected_gaussian(self.project(obs))


class CorrectedActor(TanhGaussianActor):
    """The projection plus a learned correction (d, c): mean = mean* + d, log std = log std* + c."""

    projected: ProjectedActor
    correction: MLP

    @staticmethod
    def init_correction(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation
    ) -> MLP:
        """A network whose output starts near zero, so that training starts at the projection."""
        mlp = MLP.init(key, (obs_dim, *hidden, 2 * action_dim), activation)
        return eqx.tree_at(lambda m: (m.weights[-1], m.biases[-1]), mlp, replace_fn=lambda leaf: 0.01 * leaf)

    @staticmethod
    def offsets(output: Float[Array, "batch out"]) -> tuple[Float[Array, "batch act"], Float[Array, "batch act"]]:
        """(d, c) from the network's output, with c within (-2, 2)."""
        d, c = jnp.split(output, 2, axis=-1)
        return d, 2.0 * jnp.tanh(0.5 * c)

    def __call__(self, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        """The corrected Gaussian."""
        return corrected_gaussian(self.projected(obs), *self.offsets(jax.vmap(self.correction)(obs)))


class DeterministicActor(Actor):
    """DDPG's actor: a network under tanh; it explores by adding noise to what it would do."""

    mlp: MLP
    noise: float = eqx.field(static=True)
    """Standard deviation of the exploration noise."""

    @staticmethod
    def init(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation, noise: float
    ) -> "DeterministicActor":
        """A fresh actor."""
        return DeterministicActor(MLP.init(key, (obs_dim, *hidden, action_dim), activation), noise)

    def __call__(self, obs: Float[Array, "batch obs"]) -> Float[Array, "batch act"]:
        """mu(s)."""
        return jnp.tanh(jax.vmap(self.mlp)(obs))

    def on_batch(self, obs: Float[Array, "batch obs"]) -> tuple[Float[Array, "batch act"], tuple[Moments, ...]]:
        """The same for training: a normalised network takes the moments of the batch, which are returned too."""
        output, seen = self.mlp.on_batch(obs)
        return jnp.tanh(output), seen

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """mu(s), with noise to explore."""
        return noisy(self(obs), key, self.noise) if explore else self(obs)


class UnsquashedActor(Actor):
    """PPO's actor: a Gaussian whose width does not depend on the state; the environment gets it cut to [-1, 1]."""

    mlp: MLP
    log_std: Float[Array, "act"]

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        activation: Activation,
        log_std: float,
    ) -> "UnsquashedActor":
        """A fresh actor, whose mean starts near zero."""
        mlp = MLP.orthogonal(key, (obs_dim, *hidden, action_dim), activation, last=0.01)
        return UnsquashedActor(mlp, jnp.full(action_dim, log_std, jnp.float32))

    def __call__(self, obs: Float[Array, "batch obs"]) -> Gaussian:
        """The distribution over actions at each observation."""
        mean = jax.vmap(self.mlp)(obs)
        return Gaussian(mean, jnp.broadcast_to(self.log_std, mean.shape))

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """A sampled action, or the mean."""
        policy = self(obs)
        return jnp.clip(policy.sample(key) if explore else policy.mean, -1.0, 1.0)


def noisy(
    action: Float[Array, "batch act"], key: Key[Array, ""], std: float, limit: float = jnp.inf
) -> Float[Array, "batch act"]:
    """Actions with Gaussian noise, itself cut off at +-limit, kept in [-1, 1]."""
    noise = jnp.clip(std * jax.random.normal(key, action.shape), -limit, limit)
    return jnp.clip(action + noise, -1.0, 1.0)


def projected_gaussian(projection: Projection) -> TanhGaussian:
    """The policy that a projection describes."""
    least = jnp.exp(2.0 * LOG_STD_MIN)
    return TanhGaussian(projection.mean, _bounded(0.5 * jnp.log(jnp.maximum(projection.var, least))))


def corrected_gaussian(
    projected: TanhGaussian, d: Float[Array, "batch act"], c: Float[Array, "batch act"]
) -> TanhGaussian:
    """The projected policy moved by (d, c)."""
    return TanhGaussian(projected.mean + d, _bounded(projected.log_std + c))


def _bounded(log_std: Float[Array, "*n"]) -> Float[Array, "*n"]:
    return jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)
