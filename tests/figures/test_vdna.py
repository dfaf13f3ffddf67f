import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bisac.figures.boltzmann import exact_grid, moments
from bisac.figures.vdna_fit import Target, fit, log_marginals, log_target, make_target, true_marginals

GRID = exact_grid(4.0, 160)
log_density = jax.jit(jax.vmap(log_target, (None, 0)))
log_each = jax.jit(jax.vmap(log_marginals, (None, 0)))


@pytest.mark.parametrize("bimodal", [False, True])
@pytest.mark.parametrize("correlation", [0.0, 0.7, -0.5])
def test_target_is_a_density_with_its_marginals(bimodal, correlation):
    target = make_target(bimodal, 2, correlation)
    a = jnp.linspace(-1.0, 1.0, 401)
    pairs = jnp.stack(jnp.meshgrid(a, a, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(np.asarray(log_density(target, pairs), np.float64)).reshape(401, 401)
    marginal = np.exp(log_each(target, jnp.stack([a, a], axis=1)))
    for dim, other in ((0, 1), (1, 0)):  # at the very ends the copula is cut off
        found = np.trapezoid(density, a, axis=other)[1:-1]
        np.testing.assert_allclose(found, marginal[1:-1, dim], rtol=0.02, atol=5e-3)
    assert np.trapezoid(marginal[:, 0], a) == pytest.approx(1.0, abs=1e-3)


def test_copula_joins_normals_into_a_normal():
    # Narrow normals lose nothing by being cut to [-1, 1], so the whole is a multivariate normal.
    means, std, rho = np.array([0.1, -0.2, 0.0]), 0.1, 0.6
    shape = (3, 2)
    target = Target(jnp.broadcast_to(jnp.asarray(means, jnp.float32)[:, None], shape), jnp.full(shape, std),
                    jnp.full(shape, 0.5), jnp.float32(rho))  # fmt: skip
    normal = stats.multivariate_normal(means, std**2 * ((1 - rho) * np.eye(3) + rho))
    actions = normal.rvs(20, random_state=0)
    np.testing.assert_allclose(
        log_density(target, jnp.asarray(actions, jnp.float32)), normal.logpdf(actions), atol=0.02
    )


def test_true_marginals_have_the_mixture_s_moments_in_x():
    target = make_target(True, 2, 0.7)
    draws = np.random.default_rng(0)
    which = draws.uniform(size=400_000) < 0.6
    action = draws.normal(np.where(which, *np.asarray(target.means[0])), 0.16)
    x = np.arctanh(action[np.abs(action) < 1.0])
    mean, std = moments(true_marginals(target, GRID), GRID)
    assert mean[0] == pytest.approx(x.mean(), abs=5e-3)
    assert std[0] == pytest.approx(x.std(), abs=5e-3)


def test_fit_with_u_held_down_finds_independent_marginals():
    target, keys = make_target(False, 2, 0.0), jax.vmap(jax.random.key)(jnp.arange(1))
    held, free = (fit(target, keys, 1.0, penalty, "joint", 8, 500, 3e-3, GRID) for penalty in (100.0, 0.0))
    assert held.marginals.shape == (1, 2, 161)
    for found, true in zip(moments(held.marginals, GRID), moments(true_marginals(target, GRID), GRID), strict=True):
        np.testing.assert_allclose(found[0], true, atol=0.08)
    assert (held.error < 0.5 * held.separable_std).all()
    assert (held.interaction_std < 0.2 * free.interaction_std).all()
