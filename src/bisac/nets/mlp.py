"""The multilayer perceptron under every network here. It knows neither what it computes nor who trains it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bisac.nets.normalisation import Moments, Norm

Activation = Literal["relu", "silu", "tanh"]
"""The hidden layers' nonlinearity, by the name it has among hyperparameters."""

WIDEST = 2**20
"""Units that a layer may have at the most: more fit into no machine's memory."""

Model = TypeVar("Model")

_ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}


class MLP(eqx.Module):
    """Layers x W + b with an activation between them, for one input vector; vmap it over more."""

    weights: tuple[Float[Array, "*stack _in _out"], ...]
    """The weight of each layer."""
    biases: tuple[Float[Array, "*stack _out"], ...]
    """The bias of each layer."""
    activation: Activation = eqx.field(static=True)
    """The nonlinearity between layers."""
    norms: tuple[Norm, ...] = ()
    """What normalises the input of each layer; none in a classic network."""

    @staticmethod
    def init(key: Key[Array, ""], sizes: Sequence[int], activation: Activation, stack: tuple[int, ...] = ()) -> "MLP":
        """Return weights and biases uniform within 1 / sqrt(inputs), the scheme SAC's published results rest on.

        `sizes` are those of the input, of the hidden layers and of the output; `stack` is the shape of an array of such
        networks. All come from one draw, cut to shape: a draw for each array would take seconds to compile.
        """
        shapes = [(*stack, *shape) for n, m in pairwise(sizes) for shape in ((n, m), (m,))]
        counts = np.cumsum([np.prod(shape) for shape in shapes])
        draws = jnp.split(jax.random.uniform(key, (int(counts[-1]),), minval=-1.0, maxval=1.0), counts[:-1])
        limits = [n**-0.5 for n in sizes[:-1] for _ in ("weight", "bias")]
        arrays = [limit * draw.reshape(shape) for limit, draw, shape in zip(limits, draws, shapes, strict=True)]
        return MLP(tuple(arrays[::2]), tuple(arrays[1::2]), activation)

    @staticmethod
    def orthogonal(key: Key[Array, ""], sizes: Sequence[int], activation: Activation, last: float) -> "MLP":
        """Return orthogonal weights times sqrt(2), in the last layer times `last`, and no bias: the scheme of PPO's."""
        scales = [2.0**0.5] * (len(sizes) - 2) + [last]
        layers = zip(jax.random.split(key, len(scales)), pairwise(sizes), scales, strict=True)
        weights = [jax.nn.initializers.orthogonal(scale)(k, shape) for k, shape, scale in layers]
        return MLP(tuple(weights), tuple(jnp.zeros(m) for m in sizes[1:]), activation)

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        """Return the output of the last layer, which has no activation."""
        return self.after_first(self.normed(x, 0) @ self.weights[0] + self.biases[0])

    def on_batch(self, x: Float[Array, "batch in"]) -> tuple[Float[Array, "batch out"], tuple[Moments, ...]]:
        """Return the outputs for a batch that is normalised by itself, and the moments of each layer's input in it."""
        if not self.norms:
            return jax.vmap(self)(x), ()
        centre = x.mean(axis=0)  # taken off first: observations may lie far from zero, where squares cost digits
        x, seen = x - centre[None], []
        for layer, norm in enumerate(self.norms):
            x = self.act(x) if layer else x
            seen.append(Moments.of(x))
            weight, bias = norm.folded(self.weights[layer], self.biases[layer], seen[-1])
            x = x @ weight + bias[None]
        return x, (Moments(seen[0].mean + centre, seen[0].var), *seen[1:])

    def normed(self, x: Float[Array, "in"], layer: int) -> Float[Array, "in"]:
        """Return a layer's input, normalised by the moments that the network is fixed at; as it is in a classic one."""
        return _at_fixed_moments(self.norms[layer], x) if self.norms else x

    def normed_part(self, x: Float[Array, "part"], start: int | None, stop: int | None) -> Float[Array, "part"]:
        """Return inputs `start` to `stop` of the first layer, normalised as `normed` does."""
        return _at_fixed_moments(self.norms[0].inputs(start, stop), x) if self.norms else x

    def after_first(self, hidden: Float[Array, "hidden"]) -> Float[Array, "out"]:
        """Return the output of the network, given its first layer before the activation."""
        for layer, (weight, bias) in enumerate(zip(self.weights[1:], self.biases[1:], strict=True), start=1):
            hidden = self.normed(self.act(hidden), layer) @ weight + bias
        return hidden

    def act(self, hidden: Float[Array, "*batch hidden"]) -> Float[Array, "*batch hidden"]:
        """Return a layer's values after the activation."""
        return _ACTIVATIONS[self.activation](hidden)


def normalised(model: Model) -> Model:
    """Return the same model with the input of every layer of all its networks normalised."""

    def with_norms(mlp: MLP) -> MLP:
        norms = tuple(Norm.init(*weight.shape[:-1]) for weight in mlp.weights)
        return MLP(mlp.weights, mlp.biases, mlp.activation, norms)

    def is_mlp(leaf: object) -> bool:
        return isinstance(leaf, MLP)

    return jax.tree.map(lambda leaf: with_norms(leaf) if is_mlp(leaf) else leaf, model, is_leaf=is_mlp)


def _at_fixed_moments(norm: Norm, x: Float[Array, "in"]) -> Float[Array, "in"]:
    """Return the input normalised by the moments that its normalisation is fixed at."""
    assert norm.moments is not None, "a normalised network that is not in training needs running moments"
    return norm(x, norm.moments)
