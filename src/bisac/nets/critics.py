"""Critics: the joint one of SAC, and the paper's VDN-a decomposition. Both come as twins, stacked on a leading axis.

Networks are stacked and vmapped outermost, the batch inside: then each layer of all twins and all action dimensions
is one batched matrix product on contiguous memory.

`critic(obs, action)` is Q of a classic critic, or of a normalised one that is fixed at running moments;
`critic.on_batch(obs, action)` is for training, where a normalised critic takes the moments of the batch itself.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments

Decomposition = Literal["residual", "joint"]
"""How sum_i Q_i + U is trained. `residual`: sum_i Q_i fits the target as if alone, U what it leaves; this makes the
marginals identifiable. `joint`: only the sum is fitted, as in the paper."""


class Joint(eqx.Module):
    """Q(s, a) as one network on the concatenated state and action."""

    mlp: MLP

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        hidden: Sequence[int],
        activation: Activation,
        count: int = 2,
    ) -> "Joint":
        """Twins, or as many as told, stacked on the leading axis."""
        sizes = (obs_dim + action_dim, *hidden, 1)
        return Joint(MLP.init(key, sizes, activation, (count,)))

    def __call__(self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]) -> Float[Array, "twin batch"]:
        """Q_j(s, a) of both twins."""
        return _on_concatenated(self.mlp, obs, action)

    def estimates(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        """What training regresses onto the TD target: Q itself."""
        return (self(obs, action),)

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[tuple[Float[Array, "twin batch"], ...], tuple[Moments, ...]]:
        """The same, normalised by the batch, and the moments of each layer's input in it."""
        q, seen = _on_concatenated_batch(self.mlp, obs, action)
        return (q,), seen


class Subnetwork(eqx.Module):
    """Q_i(s, a_i) of one action dimension: an embedding e of the scalar a, then a network on [z, e].

    Its first layer is linear, so the share of z and that of e are computed apart and added.
    """

    embedding: MLP
    mlp: MLP

    def action_part(self, a: Float[Array, ""]) -> Float[Array, "hidden"]:
        """The embedded action's share of the first layer, with the bias."""
        embedded = self.embedding.act(self.embedding(a[None]))
        count = len(embedded)
        return self.mlp.normed_part(embedded, -count, None) @ self.mlp.weights[0][-count:] + self.mlp.biases[0]

    def finish(self, first: Float[Array, "hidden"]) -> Float[Array, ""]:
        """Q_i from the first layer."""
        return self.mlp.after_first(first)[0]

    def on_batch(
        self, state: Float[Array, "batch state"], a: Float[Array, "batch"]
    ) -> tuple[Float[Array, "batch"], tuple[Moments, ...]]:
        """Q_i normalised by the batch, and the moments of each layer's input in it."""
        embedded, seen = self.embedding.on_batch(a[:, None])
        q, seen_after = self.mlp.on_batch(jnp.concatenate([state, self.embedding.act(embedded)], axis=-1))
        return q[:, 0], (*seen, *seen_after)


class Marginals(eqx.Module):
    """Q_i(s, a_i) of every action dimension, by subnetworks that share one encoder z(s) of the state.

    Without an encoder z is the state itself, the paper's form.
    """

    encoder: MLP | None
    """Stacked (twin, ...)."""
    subnetworks: Subnetwork
    """Stacked (twin, act, ...)."""

    @staticmethod
    def init(
        key: Key[Array, ""],
        obs_dim: int,
        action_dim: int,
        encoder: Sequence[int],
        embedding: Sequence[int],
        hidden: Sequence[int],
        activation: Activation,
    ) -> "Marginals":
        """Twins of N subnetworks each."""
        encoder_key, embedding_key, subnetwork_key = jax.random.split(key, 3)
        state_sizes = (obs_dim, *encoder)
        sizes = (state_sizes[-1] + embedding[-1], *hidden, 1)
        return Marginals(
            MLP.init(encoder_key, state_sizes, activation, (2,)) if encoder else None,
            Subnetwork(
                MLP.init(embedding_key, (1, *embedding), activation, (2, action_dim)),
                MLP.init(subnetwork_key, sizes, activation, (2, action_dim)),
            ),
        )

    def __call__(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> Float[Array, "twin act batch"]:
        """Q_i at the given actions."""

        def one(net: Subnetwork, state_part: Float[Array, "hidden"], a: Float[Array, ""]) -> Float[Array, ""]:
            return net.finish(state_part + net.action_part(a))

        over_batch = jax.vmap(one, (None, 0, 0))
        over_dims = jax.vmap(over_batch, (0, 0, 1))
        return jax.vmap(over_dims, (0, 0, None))(self.subnetworks, self._state_part(obs), action)

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin act batch"], tuple[Moments, ...]]:
        """Q_i normalised by the batch, and the moments of each layer's input in it, in the order of the tree."""
        twins = jax.tree.leaves(self.subnetworks)[0].shape[0]
        encoded, seen = jnp.broadcast_to(obs, (twins, *obs.shape)), ()
        if self.encoder is not None:
            encoded, seen = jax.vmap(MLP.on_batch, (0, None))(self.encoder, obs)
            encoded = self.encoder.act(encoded)
        over_dims = jax.vmap(Subnetwork.on_batch, (0, None, 1))
        q, seen_after = jax.vmap(over_dims, (0, 0, None))(self.subnetworks, encoded, action)
        return q, (*seen, *seen_after)

    def curves(
        self, obs: Float[Array, "batch obs"], actions: Float[Array, "point"]
    ) -> Float[Array, "twin act batch point"]:
        """Q_i(s, .) at the same few actions for every state.

        The state's share of the first layer is computed once per state, the action's once per point. The rest runs one
        network after another: the hidden layers of all at once would leave the cache, which at Humanoid's size makes
        them three times slower.
        """

        def one(net_and_state_part: tuple[Subnetwork, Float[Array, "batch hidden"]]) -> Float[Array, "batch point"]:
            net, state_part = net_and_state_part
            action_part = jax.vmap(net.action_part)(actions)
            over_points = jax.vmap(lambda s, a: net.finish(s + a), (None, 0))
            return jax.vmap(over_points, (0, None))(state_part, action_part)

        state_part = self._state_part(obs)
        twins, dims = state_part.shape[:2]
        nets = jax.tree.map(lambda leaf: leaf.reshape(twins * dims, *leaf.shape[2:]), (self.subnetworks, state_part))
        return jax.lax.map(one, nets).reshape(twins, dims, *obs.shape[:1], *actions.shape)

    def _state_part(self, obs: Float[Array, "batch obs"]) -> Float[Array, "twin act batch hidden"]:
        """The state's share of the subnetworks' first layer."""
        mlp = self.subnetworks.mlp
        if self.encoder is None:
            encoded = obs if not mlp.norms else jnp.broadcast_to(obs, (mlp.weights[0].shape[0], *obs.shape))
        else:
            over_batch = jax.vmap(lambda net, s: net.act(net(s)), (None, 0))
            encoded = jax.vmap(over_batch, (0, None))(self.encoder, obs)
        weights = mlp.weights[0][:, :, : encoded.shape[-1]]
        if mlp.norms:  # each subnetwork has a normalisation of its own
            over_batch = jax.vmap(lambda net, z: net.normed_part(z, None, len(z)), (None, 0))
            normed = jax.vmap(jax.vmap(over_batch, (0, None)), (0, 0))(mlp, encoded)
            return jnp.einsum("tnbz,tnzh->tnbh", normed, weights)
        return jnp.einsum("bi,tnih->tnbh" if self.encoder is None else "tbz,tnzh->tnbh", encoded, weights)


class Decomposed(eqx.Module):
    """VDN-a: Q(s, a) = sum_i Q_i(s, a_i) + U(s, a)."""

    marginals: Marginals
    auxiliary: MLP
    decomposition: Decomposition = eqx.field(static=True)

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
        """Twins, stacked on the leading axis."""
        marginals_key, auxiliary_key = jax.random.split(key)
        return Decomposed(
            Marginals.init(marginals_key, obs_dim, action_dim, encoder, embedding, subnetwork, activation),
            Joint.init(auxiliary_key, obs_dim, action_dim, hidden, activation).mlp,
            decomposition,
        )

    def parts(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], Float[Array, "twin batch"]]:
        """sum_i Q_i and U, apart."""
        return self.marginals(obs, action).sum(axis=1), _on_concatenated(self.auxiliary, obs, action)

    def __call__(self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]) -> Float[Array, "twin batch"]:
        """Q_j(s, a) of both twins."""
        separable, interaction = self.parts(obs, action)
        return separable + interaction

    def estimates(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        """What training regresses onto the TD target; the last is Q itself."""
        return self._regressed(*self.parts(obs, action))

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[tuple[Float[Array, "twin batch"], ...], tuple[Moments, ...]]:
        """The same, normalised by the batch, and the moments of each layer's input in it."""
        marginals, seen = self.marginals.on_batch(obs, action)
        interaction, seen_after = _on_concatenated_batch(self.auxiliary, obs, action)
        return self._regressed(marginals.sum(axis=1), interaction), (*seen, *seen_after)

    def _regressed(
        self, separable: Float[Array, "twin batch"], interaction: Float[Array, "twin batch"]
    ) -> tuple[Float[Array, "twin batch"], ...]:
        if self.decomposition == "joint":
            return (separable + interaction,)
        return separable, jax.lax.stop_gradient(separable) + interaction


Critic = Joint | Decomposed


def _on_concatenated(
    mlp: MLP, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
) -> Float[Array, "twin batch"]:
    """A stacked network on [s, a]."""
    over_batch = jax.vmap(MLP.__call__, (None, 0))
    return jax.vmap(over_batch, (0, None))(mlp, jnp.concatenate([obs, action], axis=-1))[..., 0]


def _on_concatenated_batch(
    mlp: MLP, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
) -> tuple[Float[Array, "twin batch"], tuple[Moments, ...]]:
    """A stacked network on [s, a], normalised by the batch."""
    q, seen = jax.vmap(MLP.on_batch, (0, None))(mlp, jnp.concatenate([obs, action], axis=-1))
    return q[..., 0], seen
