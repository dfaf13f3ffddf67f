"""Simpson's rule under tanh, and the interpolation that makes evaluating a network on its nodes cheap.

Everything here depends on hyperparameters alone, so it is computed once, in float64 NumPy, and enters the
compiled program as constants.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

FloatArray = np.ndarray
"""What is computed here, before JAX sees it."""


def simpson(bound: float, intervals: int) -> tuple[Float[FloatArray, "node"], Float[FloatArray, "node"]]:
    """Return nodes and weights of the composite Simpson rule with that many intervals on [-bound, bound]."""
    nodes = np.linspace(-bound, bound, intervals + 1)
    weights = np.ones(intervals + 1)
    weights[1:-1:2] = 4.0
    weights[2:-1:2] = 2.0
    return nodes, weights * (2.0 * bound / intervals) / 3.0


def chebyshev_points(count: int) -> Float[FloatArray, "point"]:
    """Return that many Chebyshev points of the second kind on [-1, 1], both ends among them."""
    return -np.cos(np.pi * np.arange(count) / (count - 1))


def interpolation_matrix(
    points: Float[FloatArray, "point"], targets: Float[FloatArray, "node"]
) -> Float[FloatArray, "point node"]:
    """Return the matrix that takes values at Chebyshev points of the second kind to values at `targets`.

    It is that of barycentric interpolation: the value at a target is the sum over points of value times entry.
    """
    weights = (-1.0) ** np.arange(len(points))
    weights[[0, -1]] /= 2.0
    difference = targets[None, :] - points[:, None]  # (point, node)
    on_point = difference == 0.0
    terms = weights[:, None] / np.where(on_point, 1.0, difference)
    matrix = terms / terms.sum(axis=0)
    return np.where(on_point.any(axis=0), on_point.astype(float), matrix)


@dataclass(frozen=True)
class Grid:
    """The quadrature of the projection: Simpson nodes x_k on [-bound, bound], reached from `points` Chebyshev points.

    `points = 0` evaluates the critic at every Simpson node instead: exact, and several times dearer.
    """

    bound: float = 5.0
    """b: the integral is over [-b, b]."""
    intervals: int = 100
    """The number of Simpson intervals, which is even."""
    points: int = 17
    """The number of Chebyshev points, or 0."""

    @property
    def spacing(self) -> float:
        """The distance between neighbouring nodes."""
        return 2.0 * self.bound / self.intervals

    @cached_property
    def nodes(self) -> Float[FloatArray, "node"]:
        """The Simpson nodes in x."""
        return simpson(self.bound, self.intervals)[0].astype(np.float32)

    @cached_property
    def log_measure(self) -> Float[FloatArray, "node"]:
        """log(w_k tanh'(x_k)): what turns a sum over nodes into an integral over actions."""
        nodes, weights = simpson(self.bound, self.intervals)
        log_cosh = np.logaddexp(nodes, -nodes) - np.log(2.0)  # cosh itself overflows far out
        return (np.log(weights) - 2.0 * log_cosh).astype(np.float32)

    @cached_property
    def actions(self) -> Float[FloatArray, "point"]:
        """The actions at which a marginal Q is evaluated."""
        nodes = np.tanh(simpson(self.bound, self.intervals)[0])
        return (chebyshev_points(self.points) if self.points else nodes).astype(np.float32)

    @cached_property
    def interpolation(self) -> Float[FloatArray, "point node"]:
        """The matrix that takes values at `actions` to values at the Simpson nodes."""
        nodes = np.tanh(simpson(self.bound, self.intervals)[0])
        if not self.points:
            return np.eye(len(nodes), dtype=np.float32)
        return interpolation_matrix(chebyshev_points(self.points), nodes).astype(np.float32)
