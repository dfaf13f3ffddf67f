"""The forward-KL projection of a Boltzmann policy onto Gaussians, under tanh.

For a diagonal Gaussian in x (a = tanh x), the minimiser of KL(q || pi) has the mean and the variance of each
marginal of q. With q_i proportional to exp(Q_i / alpha) over actions, the change of variables brings in tanh'(x).
This is the paper's final equation of its appendix on implementation. Where Q_i comes from is not known here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bisac.ops.quadrature import Grid


class Projection(NamedTuple):
    """The projected Gaussian of each action dimension, and whether the grid could resolve it."""

    mean: Float[Array, "*n"]
    """mean*: the mean of the marginal, in x."""
    var: Float[Array, "*n"]
    """var*: its variance."""
    edge_mass: Float[Array, "*n"]
    """The probability in the outer tenths of [-b, b]: where it is large, b cuts the marginal off."""


def project(marginal_q: Float[Array, "*n point"], alpha: Float[Array, ""], grid: Grid) -> Projection:
    """Return mean* and var* of exp(Q_i / alpha) in x, from Q_i at `grid.actions`.

    The softmax over nodes is the normalised quadrature; it cannot overflow.
    """
    x, log_measure = jnp.asarray(grid.nodes), jnp.asarray(grid.log_measure)
    edges = (jnp.abs(x) > 0.9 * grid.bound).astype(x.dtype)

    def one(q: Float[Array, "point"]) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        # The constant in Q cancels: taken off first, it costs no digits where products are of low precision (GPUs).
        centred = q - q.max()
        at_nodes = jnp.matmul(centred, grid.interpolation, precision="highest") if grid.points else centred
        p = jax.nn.softmax(at_nodes / alpha + log_measure)
        mean = p @ x
        return mean, p @ jnp.square(x - mean), p @ edges

    return Projection(*jnp.vectorize(one, signature="(point)->(),(),()")(marginal_q))
