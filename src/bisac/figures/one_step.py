"""One SAC step and the forward projection from the same policy, and their distances from the Boltzmann policy.

Nothing is drawn here.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bisac.algos import SAC, BidirectionalSAC, ForwardSACActor
from bisac.algos.base import number
from bisac.algos.soft import SoftState
from bisac.figures.boltzmann import boltzmann, forward_kl, moments, q_on_product, reverse_kl
from bisac.figures.divided import Divided, divided, projection
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import projection_loss, reverse_kl_loss
from bisac.ops.quadrature import Grid

POLICIES = ("start", "sac_step", "projection", "projection_actor_step", "exact_projection")
"""The policies that are compared: the run's own; that after one SAC step of its actor; VDN-a's projection; the actor
after one step towards that; and the projection of the true marginals, which no policy can beat in D_KL(q || pi)."""
START, SAC_STEP, PROJECTION = (POLICIES.index(name) for name in ("start", "sac_step", "projection"))
"""Where those that are drawn stand among them."""
TARGETS = ("mean", "min")
"""What the targets take of the twins' Q: the projection is of their mean, SAC's loss has their minimum."""


class Distances(NamedTuple):
    """Distances of the policies of a state from the Boltzmann policy, for each target."""

    forward: Float[Array, "*state target policy"]
    """D_KL(q || pi), which the forward projection minimises."""
    reverse: Float[Array, "*state target policy"]
    """D_KL(pi || q), which SAC descends."""
    truth: Float[Array, "*state act node"]
    """The marginals of q, for the mean of the twins."""
    exact: TanhGaussian
    """The projection of those marginals."""


Stepping = SAC | BidirectionalSAC | ForwardSACActor
"""The algorithms with an actor network, which can take SAC's step."""


@partial(jax.jit, static_argnames=("algo", "grid"))
def one_step_policies(
    algo: Stepping, state: SoftState, obs: Float[Array, "batch obs"], key: Key[Array, ""], grid: Grid
) -> TanhGaussian:
    """Return all of `POLICIES` but the last, stacked on the leading axis.

    Critic and temperature stay as they are. The steps are those of the checkpoint's own optimiser, of a normalised
    actor as it acts: with its running moments, not with those of the batch.
    """
    critic, alpha = divided(state), state.alpha
    optimiser = algo.adam(algo.actor_lr, number(algo.policy_delay))
    assert critic is not None
    projected = projection(critic, obs, state.temperature.model, grid)

    def policy(model: Any) -> TanhGaussian:
        return algo.actor(eqx.tree_at(lambda s: s.actor.model, state, model))(obs)

    def sac_loss(model: Any):
        action, log_prob = policy(model).sample(key)
        return reverse_kl_loss(log_prob, critic(obs, action), alpha), None

    def forward_loss(model: Any):
        parts = projection_loss(policy(model), projected, "std")
        return parts.mean + parts.spread, None

    by_sac, by_projection = (state.actor.step(optimiser, loss)[0].model for loss in (sac_loss, forward_loss))
    policies = [policy(state.actor.model), policy(by_sac), projected, policy(by_projection)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)


@partial(jax.jit, static_argnames="grid")
def distances(
    critic: Divided, obs: Float[Array, "obs"], alpha: Float[Array, ""], policies: TanhGaussian, grid: Grid
) -> Distances:
    """Return the distances of the given policies of one state, and of the exact projection after them."""
    dims = policies.mean.shape[-1]
    actions = jnp.broadcast_to(jnp.tanh(jnp.asarray(grid.nodes)), (dims, len(grid.nodes)))
    q = q_on_product(critic, obs, actions)
    targets = [boltzmann(q.mean(axis=0), alpha, grid), boltzmann(q.min(axis=0), alpha, grid)]
    mean, std = moments(targets[0].marginals, grid)
    exact = TanhGaussian.of_moments(mean, jnp.square(std))
    everyone = jax.tree.map(lambda rows, row: jnp.concatenate([rows, row[None]]), policies, exact)
    forward = [jax.vmap(partial(forward_kl, target, grid=grid))(everyone) for target in targets]
    partitions = jnp.stack([target.log_partition for target in targets])
    # One policy after another: the products of nodes of all at once would not fit in memory.
    reverse = jax.lax.map(lambda policy: reverse_kl(critic, obs, alpha, partitions, policy), everyone)
    return Distances(jnp.stack(forward), reverse.T, targets[0].marginals, exact)


def statistics(found: Distances, grid: Grid) -> dict[str, Any]:
    """Return quartiles of each divergence, and how often the projection is nearer than the SAC step."""
    too_sharp = np.mean(np.asarray(found.exact.std) < grid.spacing)
    numbers: dict[str, Any] = {"states": len(found.forward), "share_of_marginals_sharper_than_grid": too_sharp}
    for t, target in enumerate(TARGETS):
        numbers[f"target_{target}"] = {
            name: {
                "quartiles": {p: np.quantile(values[:, t, i], [0.25, 0.5, 0.75]) for i, p in enumerate(POLICIES)},
                "projection_nearer_than_sac_step": np.mean(values[:, t, PROJECTION] < values[:, t, SAC_STEP]),
                "sac_step_nearer_than_start": np.mean(values[:, t, SAC_STEP] < values[:, t, START]),
            }
            for name, values in (("kl_q_pi", np.asarray(found.forward)), ("kl_pi_q", np.asarray(found.reverse)))
        }
    return numbers
