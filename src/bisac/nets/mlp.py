"""The multilayer perceptron under every network here."""

from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
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

    weights: tuple[Float[Array, "*stack in out"], ...]
    biases: tuple[Float[Array, "*stack out"], ...]
    activation: Activation = eqx.field(static=True)

    @staticmethod
    def init(key: Key[Array, ""], sizes: Sequence[int], activation: Activation) -> "MLP":
        """Weights and biases uniform within 1 / sqrt(inputs), the scheme SAC's published results rest on."""
        weights, biases = [], []
        for layer_key, inputs, outputs in zip(jax.random.split(key, len(sizes) - 1), sizes, sizes[1:], strict=False):
            weight_key, bias_key = jax.random.split(layer_key)
            limit = inputs**-0.5
            weights.append(jax.random.uniform(weight_key, (inputs, outputs), minval=-limit, maxval=limit))
            biases.append(jax.random.uniform(bias_key, (outputs,), minval=-limit, maxval=limit))
        return MLP(tuple(weights), tuple(biases), activation)

    def __call__(self, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
        """Output of the last layer, which has no activation."""
        return self.after_first(x @ self.weights[0] + self.biases[0])

    def after_first(self, hidden: Float[Array, "*n hidden"]) -> Float[Array, "*n out"]:
        """The rest of the network, given the first layer before its activation."""
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = self.act(hidden) @ weight + bias
        return hidden

    def act(self, hidden: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """The activation."""
        return _ACTIVATIONS[self.activation](hidden)
