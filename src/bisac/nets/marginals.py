"""The marginals Q_i(s, a_i) of the VDN-a critic: a network for each action dimension, all of them one batched network.

Stacked parameters have leading axes (twin, act), and products run over the batch inside of them: each layer of all
twins and all action dimensions is one batched matrix product. What Q is made of beside them: `nets/critics.py`.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.nets.mlp import MLP, Activation
from bisac.nets.normalisation import Moments


class Subnetwork(eqx.Module):
    """Q_i(s, a_i) of one action dimension: an embedding e of the scalar a, then a network on [z, e].

    Its first layer is linear, so the share of z and that of e are computed apart and added.
    """

    embedding: MLP
    """The network from a to e, which ends in an activation."""
    mlp: MLP
    """The network from [z, e] to Q_i."""

    def action_part(self, a: Float[Array, ""]) -> Float[Array, "hidden"]:
        """Return the embedded action's share of the first layer, with the bias."""
        embedded = self.embedding.act(self.embedding(a[None]))
        count = len(embedded)
        return self.mlp.normed_part(embedded, -count, None) @ self.mlp.weights[0][-count:] + self.mlp.biases[0]

    def finish(self, first: Float[Array, "hidden"]) -> Float[Array, ""]:
        """Return Q_i, given the first layer before its activation."""
        return self.mlp.after_first(first)[0]

    def on_batch(
        self, state: Float[Array, "batch state"], a: Float[Array, "batch"]
    ) -> tuple[Float[Array, "batch"], tuple[Moments, ...]]:
        """Return Q_i of a batch of states z and actions, normalised by that batch, and its moments in each layer."""
        embedded, seen = self.embedding.on_batch(a[:, None])
        q, seen_after = self.mlp.on_batch(jnp.concatenate([state, self.embedding.act(embedded)], axis=-1))
        return q[:, 0], (*seen, *seen_after)


class Marginals(eqx.Module):
    """Q_i(s, a_i) of every action dimension, by subnetworks that share one encoder z(s) of the state.

    Without an encoder z is the state itself, the paper's form.
    """

    encoder: MLP | None
    """The encoders z(s), stacked (twin, ...); None where z is the state."""
    subnetworks: Subnetwork
    """The subnetworks, stacked (twin, act, ...)."""

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
        """Return fresh twins of N subnetworks each.

        `encoder`, `embedding` and `hidden` are the widths of the layers of the encoder (none for no encoder), of the
        embedding, and between embedding and Q_i.
        """
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
        """Return Q_i(s, a_i) of every dimension i, at each state and action of a batch."""

        def one(net: Subnetwork, state_part: Float[Array, "hidden"], a: Float[Array, ""]) -> Float[Array, ""]:
            return net.finish(state_part + net.action_part(a))

        over_batch = jax.vmap(one, (None, 0, 0))
        over_dims = jax.vmap(over_batch, (0, 0, 1))
        return jax.vmap(over_dims, (0, 0, None))(self.subnetworks, self._state_part(obs), action)

    def on_batch(
        self, obs: Float[Array, "batch obs"], action: Float[Array, "batch act"]
    ) -> tuple[Float[Array, "twin act batch"], tuple[Moments, ...]]:
        """Return Q_i normalised by the batch, and the batch's moments in each layer, in the order of the tree."""
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
        """Return Q_i(s, .) at the same few actions for every state.

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
        """Return the state's share of the subnetworks' first layer."""
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
