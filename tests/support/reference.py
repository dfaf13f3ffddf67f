"""What the tests compare against: the same quantities in float64, by scipy or by plain loops."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from hypothesis import settings
from scipy.integrate import quad

Curve = Callable[[Any], Any]
"""A marginal Q as a function of one action."""

prop = settings(max_examples=60, deadline=None, derandomize=True)
"""For every property test: no deadline, for the first example compiles; the same examples in every run."""


def log_slope(x):
    """log(1 - tanh(x)^2)."""
    return 2.0 * (np.log(2.0) - np.logaddexp(x, -x))


def log_weight(q: Curve, alpha: float, x):
    """Logarithm of the unnormalised Boltzmann density in x."""
    return q(np.tanh(x)) / alpha + log_slope(x)


def moments(q: Curve, alpha: float, bound: float) -> tuple[float, float]:
    """Mean and variance in x of exp(Q / alpha) on [-bound, bound], by adaptive quadrature."""
    x = np.linspace(-bound, bound, 20_001)
    height = log_weight(q, alpha, x)
    peaks = (height[1:-1] >= height[:-2]) & (height[1:-1] >= height[2:])
    edges = np.diff(height > height.max() - 40.0)  # where the mass starts and ends
    breaks = np.unique(np.concatenate([x[1:-1][peaks], x[:-1][edges]]))

    def integral(f):
        def integrand(t):
            return f(t) * np.exp(log_weight(q, alpha, t) - height.max())

        return quad(integrand, -bound, bound, points=breaks, limit=500, epsabs=1e-12, epsrel=1e-9)[0]

    mass = integral(lambda _: 1.0)
    mean = integral(lambda t: t) / mass
    return mean, integral(lambda t: (t - mean) ** 2) / mass


def filled(make: Callable[[Any], Any], seed: int):
    """What `make(key)` returns, with weights drawn by NumPy: JAX's own drawing takes seconds to compile."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(make, jax.random.key(0))
    return jax.tree.map(lambda leaf: jax.numpy.asarray(rng.normal(0.0, 0.4, leaf.shape), leaf.dtype), shapes)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "tanh": np.tanh,
}


def mlp(net, x, *index: int):
    """One vector through the network that `index` picks out of a stack, layer by layer."""
    weights, biases = ([np.asarray(leaf, np.float64)[index] for leaf in leaves] for leaves in (net.weights, net.biases))
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = (ACTIVATIONS[net.activation](x) if layer else x) @ weight + bias
    return x


def normalised(norm, x, mean, var, *index: int):
    """y = scale (x - mean) / sqrt(var + 1e-3) + shift, of the normalisation that `index` picks out of a stack."""
    scale, shift = (np.asarray(leaf, np.float64)[index] for leaf in (norm.scale, norm.shift))
    return scale * (x - mean) / np.sqrt(var + 1e-3) + shift


def mlp_on_batch(net, x, *index: int):
    """A batch through a normalised network, and the mean and variance of each layer's input in it."""
    x, seen = np.asarray(x, np.float64), []
    for layer, norm in enumerate(net.norms):
        x = ACTIVATIONS[net.activation](x) if layer else x
        seen.append((x.mean(axis=0), x.var(axis=0)))
        weight, bias = (np.asarray(leaves[layer], np.float64)[index] for leaves in (net.weights, net.biases))
        x = normalised(norm, x, *seen[-1], *index) @ weight + bias
    return x, seen


def marginal(net, twin: int, dim: int, obs, a: float):
    """Q_i(s, a_i) of one twin and one dimension: encoder and embedding, then the subnetwork on [z, e_i]."""
    act, nets = ACTIVATIONS[net.subnetworks.mlp.activation], net.subnetworks
    state = np.asarray(obs, np.float64)
    state = state if net.encoder is None else act(mlp(net.encoder, state, twin))
    embedded = act(mlp(nets.embedding, np.array([a], np.float64), twin, dim))
    return mlp(nets.mlp, np.concatenate([state, embedded]), twin, dim)[0]
