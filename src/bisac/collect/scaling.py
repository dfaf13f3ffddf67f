"""Observations shifted and scaled, rewards scaled, by what a run has seen: pure state, part of the run and of policies.

How layers of networks are normalised over a batch is another thing: `nets/normalisation.py`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from bisac.nets.actors import Actor
from bisac.nets.scaled import LIMIT, Statistics, scaled, scaled_actor
from bisac.types import Transition


class Scaling(eqx.Module):
    """What a run has seen of observations and rewards; None for what it does not normalise."""

    observations: Statistics | None
    returns: Statistics | None
    """Statistics of the discounted return so far, whose standard deviation scales rewards."""
    running: Float[Array, "env"] | None
    """Each environment's discounted return so far."""

    @staticmethod
    def init(obs_dim: int, num_envs: int, observations: bool, rewards: bool) -> "Scaling":
        """Return the scaling of a run that has seen nothing yet."""
        return Scaling(
            Statistics.init(obs_dim) if observations else None,
            Statistics.init() if rewards else None,
            jnp.zeros(num_envs) if rewards else None,
        )

    def observe(
        self,
        obs: Float[Array, "time env obs"],
        reward: Float[Array, "time env"],
        ended: Bool[Array, "time env"],
        gamma: float,
    ) -> "Scaling":
        """Return the scaling with some steps more of every environment."""
        observations, returns, running = self.observations, self.returns, self.running
        if observations is not None:
            observations = observations.updated(obs.reshape(-1, obs.shape[-1]))
        if returns is not None and running is not None:

            def accumulate(total: Float[Array, "env"], step: tuple[Float[Array, "env"], Bool[Array, "env"]]):
                total = gamma * total + step[0]
                return jnp.where(step[1], 0.0, total), total

            running, seen = jax.lax.scan(accumulate, running, (reward, ended))
            returns = returns.updated(seen.reshape(-1))
        return Scaling(observations, returns, running)

    def obs(self, obs: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        """Return observations as networks see them."""
        return obs if self.observations is None else scaled(self.observations, obs)

    def reward(self, reward: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Return rewards as values are learned from them."""
        return reward if self.returns is None else jnp.clip(reward / self.returns.std, -LIMIT, LIMIT)

    def batch(self, batch: Transition) -> Transition:
        """Return transitions as learning sees them."""
        return batch._replace(
            obs=self.obs(batch.obs), next_obs=self.obs(batch.next_obs), reward=self.reward(batch.reward)
        )

    def around(self, actor: Actor) -> Actor:
        """Return the actor on observations as they come."""
        return scaled_actor(actor, self.observations)
