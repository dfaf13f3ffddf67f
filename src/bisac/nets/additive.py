"""A sum of one curve per action dimension, sum_i Q_i(s, a_i), by one network of the state.

Each Q_i(s, .) is linear between nodes that are the same for all states: the network gives the values there. A narrow
peak is learned as fast as a broad one, which a network of the scalar a_i does not do, and the curve at all nodes costs
one pass. What the curves are fitted to is not known here.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.piecewise import project_piecewise

NODES = 41
"""Nodes in [-1, 1], ends included: 0.05 apart."""


class Additive(eqx.Module):
    """The curves Q_i(s, .) of every action dimension."""

    trunk: MLP
    """The network from the state to the values at the nodes of all curves."""

    @staticmethod
    def init(
        key: Key[Array, ""], obs_dim: int, action_dim: int, hidden: Sequence[int], activation: Activation
    ) -> "Additive":
        """Return curves that start nearly flat, by a network whose hidden layers have these widths."""
        trunk = MLP.init(key, (obs_dim, *hidden, action_dim * NODES), activation)
        last = (trunk.weights[-1], trunk.biases[-1])
        return Additive(eqx.tree_at(lambda m: (m.weights[-1], m.biases[-1]), trunk, [0.01 * leaf for leaf in last]))

    def on_batch(self, obs: Float[Array, "batch obs"]) -> tuple[Float[Array, "batch act node"], tuple[Moments, ...]]:
        """Return the values at the nodes, for training, and the moments of the batch in each layer."""
        values, seen = self.trunk.on_batch(obs)
        return values.reshape(len(obs), -1, NODES), seen

    def curves(
        self, obs: Float[Array, "batch obs"], actions: Float[Array, "point"]
    ) -> Float[Array, "1 act batch point"]:
        """Return Q_i(s, .) at the same actions for every state; the leading axis is there for VDN-a's twins."""
        return jnp.einsum("bnk,pk->nbp", self.values(obs), hats(actions))[None]

    def project(self, obs: Float[Array, "batch obs"], alpha: Float[Array, ""]) -> TanhGaussian:
        """Return the forward-KL projection of exp(Q_i / alpha) at each observation."""
        return TanhGaussian.of_moments(*project_piecewise(self.values(obs), alpha))

    def values(self, obs: Float[Array, "batch obs"]) -> Float[Array, "batch act node"]:
        """Return the values at the nodes."""
        return jax.vmap(self.trunk)(obs).reshape(len(obs), -1, NODES)


def hats(action: Float[Array, "*n"]) -> Float[Array, "*n node"]:
    """Return the weight of each node's value in a curve that is linear between the nodes, at these actions."""
    nodes = jnp.linspace(-1.0, 1.0, NODES).reshape((1,) * action.ndim + (NODES,))
    return jnp.maximum(0.0, 1.0 - jnp.abs(action[..., None] - nodes) * (NODES - 1) / 2.0)
