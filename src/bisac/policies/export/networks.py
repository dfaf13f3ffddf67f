"""Networks as steps of a graph: layers with their normalisation folded into them, and the marginals' curves.

Where a network's first layer is normalised, the mean is subtracted first: observations may lie far from zero, where
folding it into the bias would cost digits.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bisac.nets.marginals import Marginals, Subnetwork
from bisac.nets.mlp import MLP
from bisac.nets.normalisation import EPSILON
from bisac.ops.quadrature import Grid
from bisac.policies.export.graph import Graph


def add_mlp(graph: Graph, name: str, mlp: MLP, x: str, first: int = 0) -> str:
    """Append a network from its layer `first` on, and return the name of its output.

    A network that is stacked over axes takes x of shape (batch, *stack, row, in), with ones where all take the same.
    """
    x = add_hidden(graph, name, mlp, x, first)
    return add_layer(graph, f"{name}.last", mlp, len(mlp.weights) - 1, x)


def add_hidden(graph: Graph, name: str, mlp: MLP, x: str, first: int = 0) -> str:
    """Append all layers of a network but its last."""
    for layer in range(first, len(mlp.weights) - 1):
        x = add_activation(graph, mlp, add_layer(graph, f"{name}.layer{layer}", mlp, layer, x))
    return x


def add_layer(graph: Graph, name: str, mlp: MLP, layer: int, x: str, columns: slice = slice(None)) -> str:
    """Append one layer, or some columns of it, without an activation."""
    mean, weight, bias = _folded(mlp, layer)
    if mean is not None:
        x = graph.add("Sub", f"{name}.centred", x, mean)
    product = graph.add("MatMul", f"{name}.product", x, weight[..., columns])
    return graph.add("Add", name, product, bias[..., columns])


def add_activation(graph: Graph, mlp: MLP, x: str) -> str:
    """Append the network's activation."""
    if mlp.activation == "silu":
        return graph.add("Mul", f"{x}.silu", x, graph.add("Sigmoid", f"{x}.sigmoid", x))
    return graph.add({"relu": "Relu", "tanh": "Tanh"}[mlp.activation], f"{x}.{mlp.activation}", x)


def _folded(mlp: MLP, layer: int) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Return what is subtracted from a layer's input, if anything, its weight, and its bias."""
    weight, bias = (np.asarray(part[layer], np.float64) for part in (mlp.weights, mlp.biases))
    bias, mean = bias[..., None, :], None  # (*stack, 1, out)
    if mlp.norms:
        norm = mlp.norms[layer]
        assert norm.moments is not None, "a network that is exported needs running moments"
        scale, shift, mean, var = (
            np.asarray(part, np.float64)[..., None, :]
            for part in (norm.scale, norm.shift, norm.moments.mean, norm.moments.var)
        )
        gain = scale / np.sqrt(var + EPSILON)
        bias = bias + (shift - mean * gain * (layer > 0)) @ weight
        weight, mean = np.swapaxes(gain, -1, -2) * weight, None if layer else mean
    if weight.ndim == 2:  # not stacked
        bias, mean = bias[0], None if mean is None else mean[0]
    return mean, weight, bias


def add_curves(marginals: Marginals, graph: Graph, obs: str, grid: Grid) -> str:
    """Append Q_i(s, .) at the grid's actions, of shape (batch, act, point), and return its name."""
    nets, encoder = marginals.subnetworks, marginals.encoder
    mlp, dims = nets.mlp, nets.mlp.weights[0].shape[1]
    size = mlp.weights[0].shape[2] - nets.embedding.biases[-1].shape[-1]  # of the state's part of the first layer
    obs_dim = size if encoder is None else encoder.weights[0].shape[-2]
    x = graph.reshape("marginals.observation", obs, 1, 1, 1, obs_dim)  # (batch, twin, act, point, feature) from here on
    if encoder is not None:
        per_twin = jax.tree.map(lambda leaf: leaf[:, None], encoder)
        x = add_activation(graph, encoder, add_mlp(graph, "encoder", per_twin, x))
    # The state's share of the first layer is computed; that of the grid's actions, which has the bias, is a constant.
    norms = tuple(norm.inputs(None, size) for norm in mlp.norms[:1])
    share = MLP((mlp.weights[0][:, :, :size],), (jnp.zeros_like(mlp.biases[0]),), mlp.activation, norms)
    over_points = jax.vmap(Subnetwork.action_part, (None, 0))
    of_actions = jax.vmap(jax.vmap(over_points, (0, None)), (0, None))(nets, jnp.asarray(grid.actions))
    x = graph.add("Add", "marginals.layer0", add_mlp(graph, "marginals.state", share, x), np.asarray(of_actions))
    q = add_mlp(graph, "marginals", mlp, add_activation(graph, mlp, x), first=1)  # (batch, twin, act, point, 1)
    mean = graph.add("ReduceMean", "curves.mean", q, np.asarray([1]))
    return graph.reshape("curves.flat", mean, dims, len(grid.actions))
