"""What the members of the family that project share: the quadrature, and where the marginals Q_i come from."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from bisac.algos.soft import ActorPart, Soft, SoftState
from bisac.nets.actors import ProjectedActor
from bisac.nets.critics import Decomposed
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.quadrature import Grid
from bisac.types import Metrics
from bisac.validate import require

CUT_OFF = 0.01
"""A marginal with more probability than this in the outer tenths of [-b, b] counts as cut off."""


@dataclass(frozen=True)
class Projecting(Soft[ActorPart]):
    """Hyperparameters of the members that project: the quadrature of the forward-KL projection."""

    integration_bound: float = 5.0
    """VDN-a: b, for the projection integrates x over [-b, b]."""
    simpson_intervals: int = 100
    """VDN-a: even number of Simpson intervals; the spacing 2b / intervals should not exceed 0.1."""
    chebyshev_points: int = 17
    """VDN-a: points at which each Q_i is evaluated, then interpolated to Simpson's nodes; 0 evaluates at each node."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "integration_bound")
        require(self, "even and from 2 to 10000", lambda v: 2 <= v <= 10_000 and v % 2 == 0, "simpson_intervals")
        require(self, "0 or from 2 to 200", lambda v: v == 0 or 2 <= v <= 200, "chebyshev_points")

    def projected(self, state: SoftState[ActorPart]) -> ProjectedActor:
        """Return the projection of the policy exp(Q / alpha) that VDN-a's marginals and the temperature define."""
        critic = state.critic.fixed
        assert isinstance(critic, Decomposed)
        grid = Grid(self.integration_bound, self.simpson_intervals, self.chebyshev_points)
        return ProjectedActor(critic.marginals, state.temperature.model, grid)

    def project(self, state: SoftState[ActorPart], obs: Float[Array, "batch obs"]) -> tuple[TanhGaussian, Metrics]:
        """Return the projected policy at each observation, and metrics: of a grid, how well it resolved it."""
        if state.marginals is not None:
            policy = state.marginals.fixed.project(obs, state.alpha)
            return policy, {"projection_std": policy.std.mean()}
        actor = self.projected(state)
        projection = actor.project(obs)
        policy = TanhGaussian.of_moments(projection.mean, projection.var)
        too_sharp = jnp.sqrt(projection.var) < actor.grid.spacing
        return policy, {
            "projection_std": policy.std.mean(),
            "projection_too_sharp": too_sharp.mean(),
            "projection_cut_off": (projection.edge_mass > CUT_OFF).mean(),
        }
