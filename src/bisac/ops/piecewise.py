"""The forward-KL projection of exp(Q / alpha) where Q is linear between nodes in the action: piece by piece, no grid.

On each piece exp(Q / alpha) is an exponential of the action, whose mass, mean and variance have closed forms at any
temperature; a grid would have to be finer than the sharpest marginal. Only x = atanh(a) is curved on a piece: it is
taken to second order around the piece's mean. The two outermost pieces are halved again and again towards -1 and 1,
where x goes to infinity.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

HALVINGS = 16
"""How often the outermost pieces are halved: up to |x| = 7.5."""
FLAT = 0.5
"""A change of Q / alpha over a piece up to which series are used: the closed forms lose digits there."""


class Pieces(NamedTuple):
    """The pieces of [-1, 1]; places are told by their distances from both ends, which keeps digits near either."""

    to_ends: Float[np.ndarray, "node end"]
    """What takes values at the nodes to values at the pieces' ends, of which neighbours share one."""
    below: Float[np.ndarray, "piece"]
    """1 + a at the left end of each piece."""
    above: Float[np.ndarray, "piece"]
    """1 - a at its right end."""
    length: Float[np.ndarray, "piece"]
    """How long it is."""


@cache
def pieces(nodes: int) -> Pieces:
    """Return the pieces between so many nodes, evenly spaced from -1 to 1."""
    evenly = np.linspace(0.0, 2.0, nodes)
    halved = evenly[1] * 0.5 ** np.arange(HALVINGS, 0, -1)
    below = np.concatenate([[0.0], halved, evenly[1:-1], 2.0 - halved[::-1], [2.0]])
    above = below[::-1]  # the same distances from the other end
    left_length = np.diff(below)
    length = np.where(below[1:] <= 1.0, left_length, left_length[::-1])  # of the nearer end's distances: more digits
    to_ends = np.stack([np.interp(below, evenly, unit) for unit in np.eye(nodes)])
    return Pieces(*(array.astype(np.float32) for array in (to_ends, below[:-1], above[1:], length)))


def project_piecewise(
    values: Float[Array, "*n node"], alpha: Float[Array, ""]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Return mean* and var* of exp(Q / alpha) in x, from the values of Q at nodes between which it is linear."""
    piece = pieces(values.shape[-1])

    def one(q: Float[Array, "node"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        at_ends = jnp.matmul((q - q.max()) / alpha, piece.to_ends, precision="highest")
        left, right = at_ends[:-1], at_ends[1:]
        within = truncated(jnp.abs(right - left))  # d: the distance from the end where Q is larger
        mass = jax.nn.softmax(jnp.maximum(left, right) + jnp.log(within.integral * piece.length))
        from_left = jnp.where(right > left, 1.0 - within.mean, within.mean)
        from_right = jnp.where(right > left, within.mean, 1.0 - within.mean)
        below, above = piece.below + piece.length * from_left, piece.above + piece.length * from_right
        slope = 1.0 / (below * above)  # dx/da = 1 / (1 - a^2)
        var_a = jnp.square(piece.length) * within.var
        x = 0.5 * jnp.log(below / above) + 0.5 * (below - above) * jnp.square(slope) * var_a
        mean = mass @ x
        return mean, mass @ (jnp.square(slope) * var_a + jnp.square(x - mean))

    return jnp.vectorize(one, signature="(node)->(),()")(values)


class Truncated(NamedTuple):
    """The density exp(-rate d) over d in [0, 1]."""

    integral: Float[Array, "piece"]
    """Its integral, by which the two others are divided."""
    mean: Float[Array, "piece"]
    """The mean of d."""
    var: Float[Array, "piece"]
    """The variance of d."""


def truncated(rate: Float[Array, "piece"]) -> Truncated:
    """Return the moments of exp(-rate d) over d in [0, 1], for rates of 0 and more."""
    y, left = jnp.maximum(rate, FLAT), jnp.exp(-jnp.maximum(rate, FLAT))
    closed = Truncated((1.0 - left) / y, 1.0 / y - left / (1.0 - left), 1.0 / y**2 - left / (1.0 - left) ** 2)
    z = jnp.minimum(rate, FLAT)
    series = Truncated(
        1.0 - z / 2.0 + z**2 / 6.0 - z**3 / 24.0 + z**4 / 120.0 - z**5 / 720.0,
        1.0 / 2.0 - z / 12.0 + z**3 / 720.0 - z**5 / 30_240.0,
        1.0 / 12.0 - z**2 / 240.0 + z**4 / 6_048.0 - z**6 / 172_800.0,
    )
    return jax.tree.map(lambda near, far: jnp.where(rate < FLAT, near, far), series, closed)
