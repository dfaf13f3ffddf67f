from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bisac.figures.boltzmann import (
    boltzmann,
    density,
    exact_grid,
    forward_kl,
    importance_marginals,
    kl,
    moments,
    q_on_product,
    reverse_kl,
    separable_marginals,
    total_variation,
)
from bisac.nets.critics import Decomposed
from bisac.ops.gaussian import TanhGaussian, log_tanh_slope

OBS = jnp.asarray([0.3, -0.8])
ALPHA = jnp.float32(0.1)
close = np.testing.assert_allclose


@partial(jax.jit, static_argnames="dims")
def critic_of(dims):
    return Decomposed.init(jax.random.key(0), 2, dims, (7,), (4,), (5,), (6,), "relu", "joint")


@partial(jax.jit, static_argnames=("dims", "grid"))
def solved(critic, dims, grid):
    """The exact policies for the mean and the minimum of the twins, and VDN-a's marginals."""
    q = q_on_product(critic, OBS, jnp.broadcast_to(jnp.tanh(jnp.asarray(grid.nodes)), (dims, len(grid.nodes))))
    targets = [boltzmann(one, ALPHA, grid) for one in (q.mean(axis=0), q.min(axis=0))]
    return *targets, jnp.exp(separable_marginals(critic, OBS, ALPHA, grid))


sample = jax.jit(importance_marginals, static_argnames=("grid", "count"))


@pytest.mark.parametrize("dims", [1, 3])
def test_q_on_product_is_the_critic_at_each_tuple(dims):
    critic = critic_of(dims)
    actions = np.random.default_rng(dims).uniform(-1, 1, (dims, 4)).astype(np.float32)
    q = jax.jit(q_on_product)(critic, OBS, jnp.asarray(actions))
    tuples = list(np.ndindex(*[4] * dims))
    each = jnp.asarray([[actions[i, k] for i, k in enumerate(place)] for place in tuples])
    expected = jax.jit(Decomposed.__call__)(critic, jnp.broadcast_to(OBS, (len(each), 2)), each)
    close([q[(slice(None), *place)] for place in tuples], expected.T, rtol=1e-5, atol=1e-6)


def gaussian_q(mean, covariance, grid):
    """The Q whose Boltzmann policy (alpha = 1) is this Gaussian under tanh, on the grid's product."""
    x = np.stack(np.meshgrid(*[grid.nodes] * len(mean), indexing="ij"), -1).astype(np.float64)
    slope = np.asarray(log_tanh_slope(jnp.asarray(x, jnp.float32)), np.float64).sum(-1)
    return jnp.asarray(stats.multivariate_normal(mean, covariance).logpdf(x) - slope, jnp.float32)


def test_correlated_gaussian_has_its_own_marginals_and_divergences():
    mean, covariance = np.array([0.5, -0.4]), np.array([[0.3, 0.2], [0.2, 0.5]])
    grid = exact_grid(5.0, 100)
    target = boltzmann(gaussian_q(mean, covariance, grid), jnp.float32(1.0), grid)
    found_mean, found_std = moments(target.marginals, grid)
    close(found_mean, mean, atol=1e-3)
    close(found_std, np.sqrt(np.diag(covariance)), atol=1e-3)
    close(target.log_partition, 0.0, atol=1e-3)
    close(density(target.marginals, grid)[0], stats.norm(mean[0], 0.3**0.5).pdf(grid.nodes), atol=2e-3)
    # KL between Gaussians, in closed form; tanh changes nothing.
    policy_mean, policy_std = np.array([0.2, 0.1]), np.array([0.6, 0.9])
    policy = TanhGaussian(jnp.asarray(policy_mean, jnp.float32), jnp.asarray(np.log(policy_std), jnp.float32))
    inverse = np.diag(policy_std**-2)
    gap = policy_mean - mean
    expected = 0.5 * (
        np.trace(inverse @ covariance) - 2 + gap @ inverse @ gap
        + np.log(np.prod(policy_std**2) / np.linalg.det(covariance))
    )  # fmt: skip
    close(forward_kl(target, policy, grid), expected, atol=2e-3)


def test_three_dimensions_match_closed_form():
    covariance = 0.25 * (0.5 * np.eye(3) + 0.5)
    grid = exact_grid(4.0, 60)
    target = boltzmann(gaussian_q(np.zeros(3), covariance, grid), jnp.float32(1.0), grid)
    close(moments(target.marginals, grid)[1], [0.5] * 3, atol=1e-3)
    entropy = stats.multivariate_normal(np.zeros(3), covariance).entropy()
    slope = np.asarray(log_tanh_slope(jnp.asarray(grid.nodes)))
    expected_slope = 3 * (stats.norm(0, 0.5).pdf(grid.nodes) * slope).sum() * grid.spacing
    close(target.negative_entropy, -entropy - expected_slope, atol=5e-3)


def test_quadrature_against_scipy():
    def q(a, b):
        return np.sin(3 * a) + 2 * a * b - b**2

    grid = exact_grid(5.0, 100)
    actions = np.tanh(grid.nodes.astype(np.float64))
    found = boltzmann(jnp.asarray(q(actions[:, None], actions[None]), jnp.float32), jnp.float32(0.5), grid)

    def integral(g):
        limit = float(np.tanh(5.0))
        return integrate.dblquad(lambda b, a: g(a) * np.exp(q(a, b) / 0.5), -limit, limit, -limit, limit)[0]

    partition = integral(lambda a: 1.0)
    close(found.log_partition, np.log(partition), atol=1e-4)
    close(moments(found.marginals, grid)[0][0], integral(np.arctanh) / partition, atol=1e-4)


def test_reverse_kl_against_monte_carlo():
    critic, grid = critic_of(2), exact_grid(5.0, 100)
    partitions = jnp.stack([target.log_partition for target in solved(critic, 2, grid)[:2]])
    policy = TanhGaussian(jnp.asarray([0.4, -0.2]), jnp.asarray([-1.0, -0.3]))
    found = jax.jit(reverse_kl)(critic, OBS, ALPHA, partitions, policy)

    @jax.jit
    def sampled(key):
        many = TanhGaussian(*(jnp.broadcast_to(v, (100_000, 2)) for v in (policy.mean, policy.log_std)))
        action, log_prob = many.sample(key)
        values = critic(jnp.broadcast_to(OBS, (100_000, 2)), action)
        return [(log_prob - value / ALPHA).mean() for value in (values.mean(axis=0), values.min(axis=0))]

    close(found, np.asarray(sampled(jax.random.key(0))) + partitions, atol=0.02)
    assert (found > 0.0).all()


def test_importance_sampling_agrees_with_quadrature():
    critic, grid = critic_of(3), exact_grid(5.0, 60)
    truth, _, vdn_a = solved(critic, 3, grid)
    sampled, effective = sample(critic, OBS, ALPHA, grid, jax.random.key(1), 200_000)
    assert 1_000 < effective < 200_000
    for estimated, true in zip(moments(sampled, grid), moments(truth.marginals, grid), strict=True):
        close(estimated, true, atol=0.02)
    assert total_variation(sampled, truth.marginals).max() < 0.02
    assert total_variation(vdn_a, truth.marginals).min() > 0.02  # so the check can fail


def test_without_interaction_the_marginals_are_exact():
    whole = critic_of(3)
    critic = eqx.tree_at(lambda c: c.auxiliary, whole, jax.tree.map(jnp.zeros_like, whole.auxiliary))
    grid = exact_grid(5.0, 60)
    truth, _, vdn_a = solved(critic, 3, grid)
    close(vdn_a, truth.marginals, atol=1e-5)
    assert sample(critic, OBS, ALPHA, grid, jax.random.key(1), 200_000).effective_samples == pytest.approx(
        2e5, rel=1e-3
    )


def test_divergences_of_masses():
    p, q = np.random.default_rng(0).dirichlet(np.ones(6), 2)
    close(kl(jnp.asarray(p, jnp.float32), jnp.asarray(q, jnp.float32)), stats.entropy(p, q), rtol=1e-4)
    close(total_variation(jnp.asarray(p), jnp.asarray(q)), np.maximum(p - q, 0.0).sum(), rtol=1e-5)
    assert np.isfinite(kl(jnp.asarray([0.5, 0.5]), jnp.asarray([1.0, 0.0])))
