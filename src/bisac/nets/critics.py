"""Critics: the joint one of SAC, and the paper's VDN-a decomposition. Both come as twins, stacked on a leading axis.

Networks are stacked and vmapped outermost, the batch inside: then each layer of all twins and all action dimensions
is one batched matrix product on contiguous memory.

`critic(obs, action)` is Q of a classic critic, or of a normalised one that is fixed at running moments;
`critic.on_batch(obs, action)` is for training, where a normalised critic takes the moments of the batch itself. What
a critic is trained towards is not known here.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.marginals import Marginals
from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments

Decomposition = Literal["residual", "joint"]
"""How sum_i Q_i + U is trained. `residual`: sum_i Q_i fits the target as if alone, U what it leaves; this makes the
marginals identifiable. `joint`: only the sum is fitted, as in the paper."""


class Joint(eqx.Module):
    """Q(s, a) as one network on the concatenated state and action."""

    mlp: MLP
    """The networks, stacked (twin, ...)."""

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        activation: Activation,
        count: int = 2,
    ) -> "Joint":
        """Return fresh twins, or as many networks as told, stacked on the leading axis."""
        sizes = (obs_dim + action_dim, *hidden, 1)
        return Joint(MLP.init(key, sizes, activation, (count,)))

    def __call__(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "*sample batch act"]
    ) -> Float[Array, "twin *sample batch"]:
        """Return Q_j(s, a) of both twins, also at several actions of each state, which are along a leading axis."""
        return (_on_concatenated if action.ndim == obs.ndim else _on_samples)(self.mlp, obs, action)

    def estimates(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        """Return what training regresses onto the TD target: Q itself, alone in a tuple."""
        return (self(obs, action),)

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[tuple[Float[Array, "twin batch"], ...], tuple[Moments, ...]]:
        """Return the estimates of a batch that normalises itself, and its moments in the input of each layer."""
        q, seen = _on_concatenated_batch(self.mlp, obs, action)
        return (q,), seen


class Decomposed(eqx.Module):
    """VDN-a: Q(s, a) = sum_i Q_i(s, a_i) + U(s, a)."""

    marginals: Marginals
    """The networks of Q_i, as twins."""
    auxiliary: MLP
    """The networks of U on [s, a], stacked (twin, ...)."""
    decomposition: Decomposition = eqx.field(static=True)
    """How the two parts are trained."""

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        encoder: Sequence[int],
        embedding: Sequence[int],
        subnetwork: Sequence[int],
        activation: Activation,
        decomposition: Decomposition,
    ) -> "Decomposed":
        """Return fresh twins, stacked on the leading axis.

        `hidden` are the widths of U; `encoder`, `embedding` and `subnetwork` those of the marginals.
        """
        marginals_key, auxiliary_key = jax.random.split(key)
        return Decomposed(
            Marginals.init(marginals_key, obs_dim, action_dim, encoder, embedding, subnetwork, activation),
            Joint.init(auxiliary_key, obs_dim, action_dim, hidden, activation).mlp,
            decomposition,
        )

    def parts(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], Float[Array, "twin batch"]]:
        """Return sum_i Q_i and U of each twin, apart."""
        return self.marginals(obs, action).sum(axis=1), _on_concatenated(self.auxiliary, obs, action)

    def __call__(self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]) -> Float[Array, "twin batch"]:
        """Return Q_j(s, a) of both twins."""
        separable, interaction = self.parts(obs, action)
        return separable + interaction

    def estimates(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        """Return what training regresses onto the TD target, each by itself; the last is Q."""
        return self._regressed(*self.parts(obs, action))

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[tuple[Float[Array, "twin batch"], ...], tuple[Moments, ...]]:
        """Return the estimates of a batch that normalises itself, and its moments in the input of each layer."""
        marginals, seen = self.marginals.on_batch(obs, action)
        interaction, seen_after = _on_concatenated_batch(self.auxiliary, obs, action)
        return self._regressed(marginals.sum(axis=1), interaction), (*seen, *seen_after)

    def _regressed(
        self, separable: Float[Array, "twin batch"], interaction: Float[Array, "twin batch"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        """Return what is regressed onto the target, from sum_i Q_i and U."""
        if self.decomposition == "joint":
            return (separable + interaction,)
        return separable, jax.lax.stop_gradient(separable) + interaction


Critic = Joint | Decomposed
"""A critic of either kind."""


def _on_concatenated(
    mlp: MLP, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
) -> Float[Array, "twin batch"]:
    """Return the outputs of a stacked network on [s, a]."""
    over_batch = jax.vmap(MLP.__call__, (None, 0))
    return jax.vmap(over_batch, (0, None))(mlp, jnp.concatenate([obs, action], axis=-1))[..., 0]


def _on_samples(
    mlp: MLP, obs: Float[Array, "batch obs"], action: Float[Array, "sample batch act"]
) -> Float[Array, "twin sample batch"]:
    """Return the outputs of a stacked network on [s, a] at several actions of each state.

    The state's share of the first layer is computed once. The rest runs one sample after another: the hidden layers of
    all at once would leave the cache.
    """
    states = obs.shape[-1]

    def of_state(net: MLP, s: Float[Array, "obs"]) -> Float[Array, "hidden"]:
        return net.normed_part(s, None, states) @ net.weights[0][:states] + net.biases[0]

    def finish(net: MLP, share: Float[Array, "hidden"], a: Float[Array, "act"]) -> Float[Array, "1"]:
        return net.after_first(share + net.normed_part(a, states, None) @ net.weights[0][states:])

    shares = jax.vmap(jax.vmap(of_state, (None, 0)), (0, None))(mlp, obs)
    over_twins = jax.vmap(jax.vmap(finish, (None, 0, 0)), (0, 0, None))
    return jax.lax.map(lambda a: over_twins(mlp, shares, a)[..., 0], action).swapaxes(0, 1)


def _on_concatenated_batch(
    mlp: MLP, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
) -> tuple[Float[Array, "twin batch"], tuple[Moments, ...]]:
    """Return the outputs of a stacked network on [s, a], normalised by the batch, and its moments in each layer."""
    q, seen = jax.vmap(MLP.on_batch, (0, None))(mlp, jnp.concatenate([obs, action], axis=-1))
    return q[..., 0], seen
