"""How far VDN-a's marginals are from the true ones at single states, in numbers; nothing is drawn here."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from bisac.algos.projecting import CUT_OFF
from bisac.figures.boltzmann import (
    boltzmann,
    importance_marginals,
    kl,
    moments,
    q_on_product,
    separable_marginals,
    total_variation,
)
from bisac.figures.divided import Divided
from bisac.ops.quadrature import Grid

VARIATION_ACTIONS = 512
"""The number of uniform actions over which the variation of the parts of Q is measured."""
ENOUGH = 100
"""The number of effective samples below which importance sampling tells little."""


class Comparison(NamedTuple):
    """The marginals at the states of one checkpoint, true and estimated, and how much each part of Q varies."""

    truth: Float[Array, "state act node"]
    """The true marginals: by quadrature where the dimensions allow it, else by importance sampling."""
    estimate: Float[Array, "state act node"]
    """VDN-a's marginals."""
    sampled: Float[Array, "state act node"]
    """The true marginals by importance sampling."""
    effective_samples: Float[Array, "state"]
    """How many independent draws would tell as much as the importance sampling."""
    separable_std: Float[Array, "state"]
    """The standard deviation of sum_i Q_i over uniform actions, of the mean of the twins."""
    interaction_std: Float[Array, "state"]
    """The standard deviation of U over uniform actions."""
    q_std: Float[Array, "state"]
    """The standard deviation of Q, their sum, over uniform actions."""


@partial(jax.jit, static_argnames=("dims", "grid", "samples", "exactly"))
def compare(
    critic: Divided,
    obs: Float[Array, "obs"],
    alpha: Float[Array, ""],
    key: Key[Array, ""],
    index: int | Int[Array, ""],
    dims: int,
    grid: Grid,
    samples: int,
    exactly: bool,
) -> Comparison:
    """Return the marginals at the state of that index, and how much of Q's variation each part of it carries."""
    sample_key, action_key = jax.random.split(jax.random.fold_in(key, index))
    sampled, effective = importance_marginals(critic, obs, alpha, grid, sample_key, samples)
    truth = sampled
    if exactly:
        actions = jnp.broadcast_to(jnp.tanh(jnp.asarray(grid.nodes)), (dims, len(grid.nodes)))
        truth = boltzmann(q_on_product(critic, obs, actions).mean(axis=0), alpha, grid).marginals
    estimate = jnp.exp(separable_marginals(critic, obs, alpha, grid))
    uniform = jax.random.uniform(action_key, (VARIATION_ACTIONS, dims), minval=-1.0, maxval=1.0)
    parts = critic.parts(jnp.broadcast_to(obs, (VARIATION_ACTIONS, *obs.shape)), uniform)
    separable, interaction = (part.mean(axis=0) for part in parts)
    spread = (separable.std(), interaction.std(), (separable + interaction).std())
    return Comparison(truth, estimate, sampled, effective, *spread)


class MarginalErrors(NamedTuple):
    """How far VDN-a's marginals are from the true ones, by several measures."""

    mean_error: Float[Array, "state act"]
    """The absolute difference of the means of x."""
    mean_bias: Float[Array, "state act"]
    """The estimated mean of x less the true one."""
    std_error: Float[Array, "state act"]
    """The absolute difference of the standard deviations of x."""
    std_bias: Float[Array, "state act"]
    """The estimated standard deviation of x less the true one."""
    true_std: Float[Array, "state act"]
    """The true standard deviation of x."""
    total_variation: Float[Array, "state act"]
    """The total variation between the two."""
    kl_true_to_estimate: Float[Array, "state act"]
    """The divergence of the estimate from the truth, D_KL(true || estimate)."""
    kl_estimate_to_true: Float[Array, "state act"]
    """The divergence of the truth from the estimate, D_KL(estimate || true)."""


class MarginalMoments(NamedTuple):
    """Means and standard deviations of x under the estimated, the true and the sampled marginals."""

    mean: Float[Array, "state act"]
    """The mean under VDN-a's marginal."""
    std: Float[Array, "state act"]
    """The standard deviation under VDN-a's marginal."""
    true_mean: Float[Array, "state act"]
    """The mean under the true marginal."""
    true_std: Float[Array, "state act"]
    """The standard deviation under the true marginal."""
    sampled_mean: Float[Array, "state act"]
    """The mean under the true marginal by importance sampling."""
    sampled_std: Float[Array, "state act"]
    """The standard deviation under the true marginal by importance sampling."""


@partial(jax.jit, static_argnames="grid")
def all_moments(compared: Comparison, grid: Grid) -> MarginalMoments:
    """Return the moments of VDN-a's marginals, the true ones and the sampled ones."""
    masses = (compared.estimate, compared.truth, compared.sampled)
    return MarginalMoments(*(value for mass in masses for value in moments(mass, grid)))


@jax.jit
def errors(compared: Comparison, of: MarginalMoments) -> MarginalErrors:
    """Return each measure of how far VDN-a's marginals are from the true ones."""
    mean, std = of.mean - of.true_mean, of.std - of.true_std
    return MarginalErrors(
        jnp.abs(mean),
        mean,
        jnp.abs(std),
        std,
        of.true_std,
        total_variation(compared.estimate, compared.truth),
        kl(compared.truth, compared.estimate),
        kl(compared.estimate, compared.truth),
    )


def statistics(compared: Comparison, of: MarginalMoments, grid: Grid, exactly: bool) -> dict[str, Any]:
    """Return the errors of VDN-a's marginals, per dimension and over all, as the figure's file has them."""
    measures = {name: np.asarray(values) for name, values in errors(compared, of)._asdict().items()}
    per_dimension = {name: values.mean(axis=0) for name, values in measures.items()}
    per_dimension["mean_correlation"] = correlation(of.mean, of.true_mean)
    per_dimension["std_correlation"] = correlation(of.std, of.true_std)
    edge_mass = np.asarray(compared.truth)[..., np.abs(grid.nodes) > 0.9 * grid.bound].sum(axis=-1)
    effective = np.asarray(compared.effective_samples)
    numbers: dict[str, Any] = {
        "states": len(effective),
        "truth": "quadrature" if exactly else "importance sampling",
        "per_dimension": per_dimension,
        "over_all": {name: np.mean(values) for name, values in per_dimension.items()},
        "median": {name: np.median(values) for name, values in measures.items()},
        "std_over_actions": {
            "sum_q_i": np.mean(np.asarray(compared.separable_std)),
            "u": np.mean(np.asarray(compared.interaction_std)),
            "q": np.mean(np.asarray(compared.q_std)),
        },
        "effective_samples": {
            "median": np.median(effective),
            "least": effective.min(),
            "share_of_states_above_100": np.mean(effective > ENOUGH),
        },
        "share_of_marginals_cut_off": np.mean(edge_mass > CUT_OFF),
        "share_of_marginals_sharper_than_grid": np.mean(np.asarray(of.true_std) < grid.spacing),
    }
    if exactly:
        apart = {
            "mean_error": np.abs(np.asarray(of.sampled_mean) - np.asarray(of.true_mean)),
            "std_error": np.abs(np.asarray(of.sampled_std) - np.asarray(of.true_std)),
            "total_variation": 0.5 * np.abs(np.asarray(compared.sampled) - np.asarray(compared.truth)).sum(axis=-1),
        }
        numbers["importance_sampling_against_quadrature"] = {
            name: {measure: values[chosen].mean() if chosen.any() else None for measure, values in apart.items()}
            for name, chosen in (("all_states", effective > 0.0), ("where_effective", effective > ENOUGH))
        }
    return numbers


def correlation(x: Float[Array, "state act"], y: Float[Array, "state act"]) -> Float[np.ndarray, "act"]:
    """Return the correlation over states in each dimension; not a number where one of them does not vary."""
    a, b = (v - v.mean(axis=0) for v in (np.asarray(x, np.float64), np.asarray(y, np.float64)))
    scale = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return np.where(scale > 0.0, (a * b).sum(axis=0) / np.where(scale > 0.0, scale, 1.0), np.nan)
