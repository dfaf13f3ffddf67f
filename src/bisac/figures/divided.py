"""Critics as a sum of marginals and the rest, whichever way the marginals came to be."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from bisac.algos.soft import SoftState
from bisac.nets.actors import ProjectedActor
from bisac.nets.additive import Additive, hats
from bisac.nets.critics import Critic, Decomposed, Decomposition
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.quadrature import Grid


class Distilled(eqx.Module):
    """A joint critic beside the marginals that were distilled from it: Q = sum_i Q_i + U, where U is what they miss."""

    critic: Critic
    """The joint critic."""
    marginals: Additive
    """The curves Q_i, which the twins share."""

    def parts(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], Float[Array, "twin batch"]]:
        """Return sum_i Q_i and U of each twin, apart."""
        q = self.critic(obs, action)
        separable = jnp.einsum("bnk,bnk->b", self.marginals.values(obs), hats(action))
        return jnp.broadcast_to(separable, q.shape), q - separable[None]

    def __call__(self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]) -> Float[Array, "twin batch"]:
        """Return Q_j(s, a) of both twins."""
        return self.critic(obs, action)


Divided = Decomposed | Distilled
"""A critic whose Q is known as sum_i Q_i + U."""


def divided(state: SoftState) -> Divided | None:
    """Return an agent's critics with their marginals, normalised ones at their running moments; None without any."""
    critic = state.critic.fixed
    if state.marginals is not None:
        return Distilled(critic, state.marginals.fixed)
    return critic if isinstance(critic, Decomposed) else None


def projection(
    critic: Divided, obs: Float[Array, "batch obs"], log_alpha: Float[Array, ""], grid: Grid
) -> TanhGaussian:
    """Return the forward-KL projection by a critic's marginals; the grid is for VDN-a's."""
    if isinstance(critic, Distilled):
        return critic.marginals.project(obs, jnp.exp(log_alpha))
    return ProjectedActor(critic.marginals, log_alpha, grid)(obs)


def division(critic: Divided) -> Decomposition | Literal["distilled"]:
    """Return how the marginals came to be: by which training of VDN-a, or distilled."""
    return "distilled" if isinstance(critic, Distilled) else critic.decomposition
