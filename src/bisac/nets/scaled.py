"""Observations shifted and scaled by the mean and spread of all that was seen, and an actor that carries both.

How these statistics are gathered during a run, and how rewards are scaled, is not known here; how the layers of a
network are normalised over a batch is another thing: `nets/normalisation.py`.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.actors import Actor

LIMIT = 10.0
"""Normalised values are cut off here, so that an early outlier does no harm."""


class Statistics(eqx.Module):
    """The mean and the variance of all values that were ever seen."""

    mean: Float[Array, "*n"]
    """The mean of each entry."""
    var: Float[Array, "*n"]
    """The variance of each entry."""
    count: Float[Array, ""]
    """How many values were seen."""

    @staticmethod
    def init(*shape: int) -> "Statistics":
        """Return the statistics before anything is seen: mean 0 and variance 1, which a first batch replaces."""
        return Statistics(jnp.zeros(shape), jnp.ones(shape), jnp.zeros(()))

    def updated(self, batch: Float[Array, "batch *n"]) -> "Statistics":
        """Return the statistics with a batch more, as if all values had been seen at once."""
        size = jnp.float32(batch.shape[0])
        total = self.count + size
        delta = batch.mean(axis=0) - self.mean
        spread = self.var * self.count + batch.var(axis=0) * size + jnp.square(delta) * self.count * size / total
        return Statistics(self.mean + delta * size / total, spread / total, total)

    @property
    def std(self) -> Float[Array, "*n"]:
        """The standard deviation of each entry, never quite zero."""
        return jnp.sqrt(self.var + 1e-8)


class ScaledActor(Actor):
    """An actor with the statistics of the observations that it was trained on: all that a policy file needs."""

    actor: Actor
    """The actor, which takes scaled observations."""
    observations: Statistics
    """What observations are scaled by."""

    def act(self, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
        """Return the actor's actions on the observations once these are scaled."""
        return self.actor.act(scaled(self.observations, obs), key, explore)


def scaled_actor(actor: Actor, observations: Statistics | None) -> Actor:
    """Return the actor as it takes observations as they come; None is for one that was trained on just these."""
    return actor if observations is None else ScaledActor(actor, observations)


def scaled(statistics: Statistics, obs: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
    """Return observations shifted by the mean and divided by the standard deviation, cut off at +-LIMIT."""
    shape = (1,) * (obs.ndim - 1) + statistics.mean.shape
    return jnp.clip((obs - statistics.mean.reshape(shape)) / statistics.std.reshape(shape), -LIMIT, LIMIT)
