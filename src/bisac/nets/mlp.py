"""The multilayer perceptron under every network here."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

Activation = Literal["relu", "silu", "tanh"]
"""The hidden layers' nonlinearity, by the name it has in settings."""

_ACTIVATIONS: dict[Activation, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}


class MLP(eqx.Module):
    """Layers x W + b with an activation between them, for one input vector; vmap it over more."""

    weights: tuple[Float[Array, "*stack _in _out"], ...]
    biases: tuple[Float[Array, "*stack _out"], ...]
    activation: Activation = eqx.field(static=True)

    @staticmethod
    def init(key: Key[Array, ""], sizes: Sequence[int], activation: Activation, stack: tuple[int, ...] = ()) -> "MLP":
        """Weights and biases uniform within 1 / sqrt(inputs), the scheme SAC's published results rest on.

        `stack` is the shape of an array of such networks. All come from one draw, cut to shape: a draw for each array
        would take seconds to compile.
        """
        shapes = [(*stack, *shape) for n, m in pairwise(sizes) for shape in ((n, m), (m,))]
        counts = np.cumsum([np.prod(shape) for shape in shapes])
        draws = jnp.split(jax.random.uniform(key, (int(counts[-1]),), minval=-1.0, maxval=1.0), counts[:-1])
        limits = [n**-0.5 for n in sizes[:-1] for _ in ("weight", "bias")]
        arrays = [limit * draw.reshape(shape) for limit, draw, shape in zip(limits, draws, shapes, strict=True)]
        return MLP(tuple(arrays[::2]), tuple(arrays[1::2]), activation)

    @staticmethod
    def orthogonal(key: Key[Array, ""], sizes: Sequence[int], activation: Activation, last: float) -> "MLP":
        """Orthogonal weights, scaled by sqrt(2) but by `last` in the last layer, and no bias: the scheme of PPO's."""
        scales = [2.0**0.5] * (len(sizes) - 2) + [last]
        layers = zip(jax.random.split(key, len(scales)), pairwise(sizes), scales, strict=True)
        weights = [jax.nn.initializers.orthogonal(scale)(k, shape) for k, shape, scale in layers]
        return MLP(tuple(weights), tuple(jnp.zeros(m) for m in sizes[1:]), activation)

    def __call__(self, x: Float[Array, "in"]) -> Float[Array, "out"]:
        """Output of the last layer, which has no activation."""
        return self.after_first(x @ self.weights[0] + self.biases[0])

    def after_first(self, hidden: Float[Array, "hidden"]) -> Float[Array, "out"]:
        """The rest of the network, given the first layer before its activation."""
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = self.act(hidden) @ weight + bias
        return hidden

    def act(self, hidden: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
        """The activation."""
        return _ACTIVATIONS[self.activation](hidden)
