"""The Boltzmann policy q(a|s) proportional to exp(Q(s, a) / alpha) of a critic with marginals: by quadrature in all
action dimensions at once, or by importance sampling where those are too many.

Everything is of one state; map it over more. Distributions are masses on the nodes x_k of a `Grid` per dimension, where
a = tanh(x), so that they sum to one; densities are over actions.
"""

from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bisac.figures.divided import Divided
from bisac.ops.gaussian import TanhGaussian, log_tanh_slope
from bisac.ops.quadrature import Grid

MOST_DIMENSIONS = 3
"""Quadrature in more dimensions than this is too dear: the nodes' number is raised to that power."""


class Boltzmann(NamedTuple):
    """The Boltzmann policy q(.|s) of one state on a grid, as far as the figures need it."""

    marginals: Float[Array, "act node"]
    """The mass of each dimension's nodes."""
    log_partition: Float[Array, ""]
    """The log of the integral of exp(Q / alpha) over actions."""
    negative_entropy: Float[Array, ""]
    """The negative entropy E_q[log q(a)]."""


class Weighted(NamedTuple):
    """The marginals of q(.|s) by importance sampling."""

    marginals: Float[Array, "act node"]
    """The mass of each dimension's nodes."""
    effective_samples: Float[Array, ""]
    """How many independent draws from q itself would tell as much."""


def exact_grid(bound: float, intervals: int) -> Grid:
    """Return nodes at which the critic is evaluated itself, not interpolated."""
    return Grid(bound, intervals, points=0)


def q_on_product(
    critic: Divided, obs: Float[Array, "obs"], actions: Float[Array, "act node"]
) -> Float[Array, "twin *nodes"]:
    """Return Q_j(s, a) of both twins on the product of each dimension's own nodes; one axis a dimension."""
    dims = len(actions)
    own = [critic.marginals.curves(obs[None], actions[i])[:, i, 0] for i in range(dims)]  # each (twin, node)
    separable = jax.vmap(outer_sum)(jnp.stack(own, axis=1))
    mesh = jnp.meshgrid(*actions[1:], indexing="ij")
    others = jnp.stack([a.ravel() for a in mesh], axis=-1) if mesh else jnp.zeros((1, 0))  # (rest, act - 1)
    tiled = jnp.broadcast_to(obs, (len(others), *obs.shape))

    def slab(first: Float[Array, ""]) -> Float[Array, "twin rest"]:
        action = jnp.concatenate([jnp.full((len(others), 1), first), others], axis=-1)
        return critic.parts(tiled, action)[1]

    interaction = jnp.moveaxis(jax.lax.map(slab, actions[0]), 0, 1)  # all at once would not fit in memory
    return separable + interaction.reshape(-1, *separable.shape[1:])


def outer_sum(rows: Float[Array, "act node"]) -> Float[Array, "*nodes"]:
    """Return sum_i rows[i, k_i] for every tuple of nodes k."""
    return reduce(jnp.add.outer, rows)


def boltzmann(q: Float[Array, "*nodes"], alpha: Float[Array, ""], grid: Grid) -> Boltzmann:
    """Return the Boltzmann policy of a Q that is known on the product of the grid's nodes."""
    scaled = q / alpha
    log_measure = outer_sum(jnp.broadcast_to(jnp.asarray(grid.log_measure), (q.ndim, len(grid.nodes))))
    log_partition = jax.nn.logsumexp(scaled + log_measure)
    mass = jnp.exp(scaled + log_measure - log_partition)
    marginals = [mass.sum(axis=tuple(j for j in range(q.ndim) if j != i)) for i in range(q.ndim)]
    return Boltzmann(jnp.stack(marginals), log_partition, (mass * scaled).sum() - log_partition)


def separable_marginals(
    critic: Divided, obs: Float[Array, "obs"], alpha: Float[Array, ""], grid: Grid
) -> Float[Array, "act node"]:
    """Return the log mass of the marginals q_i as VDN-a has them: exp(Q_i / alpha), with the mean of the twins' Q_i."""
    curves = critic.marginals.curves(obs[None], jnp.tanh(jnp.asarray(grid.nodes)))[:, :, 0].mean(axis=0)
    return jax.nn.log_softmax(curves / alpha + jnp.asarray(grid.log_measure)[None], axis=-1)


def importance_marginals(
    critic: Divided, obs: Float[Array, "obs"], alpha: Float[Array, ""], grid: Grid, key: Key[Array, ""], count: int
) -> Weighted:
    """Return the true marginals from `count` draws of the product of VDN-a's.

    The ratio of target and proposal is exp(U / alpha): all else of Q is in both. Both live on the same nodes, so this
    tends to what `boltzmann` gives.
    """
    proposal = separable_marginals(critic, obs, alpha, grid)
    dims, nodes = proposal.shape
    index = jax.random.categorical(key, proposal, shape=(count, dims))
    action = jnp.tanh(jnp.asarray(grid.nodes))[index]
    interaction = critic.parts(jnp.broadcast_to(obs, (count, *obs.shape)), action)[1].mean(axis=0)
    weight = jax.nn.softmax(interaction / alpha)
    marginals = jax.vmap(lambda column: jnp.zeros(nodes).at[column].add(weight), in_axes=1)(index)
    return Weighted(marginals, 1.0 / jnp.square(weight).sum())


def moments(mass: Float[Array, "*n node"], grid: Grid) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Return the mean and the standard deviation of x."""
    x = jnp.asarray(grid.nodes)
    mean = mass @ x
    apart = jnp.subtract(jnp.broadcast_to(x, mass.shape), mean[..., None])
    return mean, jnp.sqrt((mass * jnp.square(apart)).sum(axis=-1))


def density(mass: Float[Array | np.ndarray, "*n node"], grid: Grid) -> Float[np.ndarray, "*n node"]:
    """Return the density over x of a mass on the nodes, to be drawn."""
    weights = np.exp(np.asarray(grid.log_measure) - np.asarray(log_tanh_slope(jnp.asarray(grid.nodes))))
    return np.asarray(mass) / weights


def total_variation(p: Float[Array, "*n node"], q: Float[Array, "*n node"]) -> Float[Array, "*n"]:
    """Return half the summed absolute difference: 0 where the two agree, 1 where they have nothing in common."""
    return 0.5 * jnp.abs(p - q).sum(axis=-1)


def kl(p: Float[Array, "*n node"], q: Float[Array, "*n node"]) -> Float[Array, "*n"]:
    """Return D_KL(p || q) between masses on the same nodes."""
    tiny = jnp.finfo(p.dtype).tiny  # float32 rounds a far tail to zero; infinity would say more than it knows
    return jax.scipy.special.rel_entr(p, jnp.maximum(q, tiny)).sum(axis=-1)


def forward_kl(target: Boltzmann, policy: TanhGaussian, grid: Grid) -> Float[Array, ""]:
    """Return D_KL(q || pi), by the target's marginals: log pi is a sum over dimensions."""
    x = jnp.broadcast_to(jnp.asarray(grid.nodes), target.marginals.shape)
    one_a_dimension = TanhGaussian(policy.mean[:, None, None], policy.log_std[:, None, None])
    log_prob = one_a_dimension.log_prob(x[..., None])  # (act, node)
    return target.negative_entropy - (target.marginals * log_prob).sum()


def reverse_kl(
    critic: Divided,
    obs: Float[Array, "obs"],
    alpha: Float[Array, ""],
    log_partitions: Float[Array, "target"],
    policy: TanhGaussian,
    nodes: int = 33,
) -> Float[Array, "target"]:
    """Return D_KL(pi || q) for the targets of the mean and of the minimum of the twins, in this order.

    E_pi[Q] is by the trapezoidal rule on the policy's own scale, so that no policy is too narrow for it.
    """
    z = np.linspace(-5.0, 5.0, nodes)
    weight = np.exp(-0.5 * z**2)
    x = policy.mean[:, None] + jnp.multiply.outer(policy.std, jnp.asarray(z, policy.mean.dtype))  # (act, node)
    q = q_on_product(critic, obs, jnp.tanh(x))
    expectation = jnp.stack([q.mean(axis=0), q.min(axis=0)])
    for _ in range(len(policy.mean)):
        expectation = expectation @ jnp.asarray(weight / weight.sum(), q.dtype)
    return log_partitions - policy.entropy() - expectation / alpha
