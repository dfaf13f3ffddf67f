import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from bisac.ops.gaussian import TanhGaussian
from bisac.ops.improvement import decoupled_kl, sample_weights, temperature_dual, weighted_likelihood_loss, weights_kl

RNG = np.random.default_rng(0)
SAMPLES, BATCH, ACT = 6, 4, 3


def random(*shape, scale=1.0):
    return jnp.asarray(scale * RNG.normal(size=shape), jnp.float32)


def naive_weights(q, eta):
    """In float64, one state after another."""
    weights = np.empty(q.shape)
    for b in range(q.shape[1]):
        odds = [np.exp((float(value) - float(q[:, b].max())) / eta) for value in q[:, b]]
        weights[:, b] = np.array(odds) / sum(odds)
    return weights


@pytest.mark.parametrize("eta", [0.01, 0.7, 50.0])
def test_weights_match_a_loop(eta):
    q = 100.0 + random(SAMPLES, BATCH)  # a constant in Q cancels
    np.testing.assert_allclose(sample_weights(q, jnp.float32(eta)), naive_weights(q, eta), rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 30.0])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
def test_temperature_dual_is_least_where_scipy_finds_it(epsilon, scale):
    """There the weights' divergence from the samples' own is the bound: the E-step goes as far as it may."""
    q = random(20, 16, scale=scale)
    exact = np.asarray(q, float)

    def dual(log_eta):
        eta = np.exp(log_eta)
        return eta * epsilon + eta * np.mean(np.log(np.mean(np.exp(exact / eta), axis=0)))

    least = minimize_scalar(dual, bounds=(np.log(0.02 * scale), np.log(50.0 * scale)), method="bounded").x
    value, slope = jax.jit(jax.value_and_grad(lambda log_eta: temperature_dual(q, jnp.exp(log_eta), epsilon)))(
        jnp.float32(least)
    )
    assert value == pytest.approx(dual(least), rel=1e-5)
    assert abs(slope) < 1e-3 * np.exp(least)
    assert weights_kl(sample_weights(q, jnp.exp(jnp.float32(least)))) == pytest.approx(epsilon, rel=1e-3)


def test_divergence_of_weights_matches_a_loop():
    weights = naive_weights(random(SAMPLES, BATCH), 0.3)
    expected = np.mean([sum(w * np.log(SAMPLES * w) for w in weights[:, b]) for b in range(BATCH)])
    np.testing.assert_allclose(weights_kl(jnp.asarray(weights, jnp.float32)), expected, rtol=1e-5)
    alone = jnp.zeros((SAMPLES, BATCH)).at[0].set(1.0)  # 0 log 0 is 0
    np.testing.assert_allclose(weights_kl(alone), np.log(SAMPLES), rtol=1e-6)


@pytest.fixture
def pair():
    """A policy, and the old one."""
    return tuple(TanhGaussian(random(BATCH, ACT), random(BATCH, ACT, scale=0.3)) for _ in range(2))


def divergence(p, q):
    """KL(p || q) of two normal distributions, by adaptive quadrature."""
    return quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), *p.interval(1 - 1e-12))[0]


def test_each_divergence_moves_one_parameter_only(pair):
    policy, old = pair
    mean, std, old_mean, old_std = (np.asarray(v, float) for v in (policy.mean, policy.std, old.mean, old.std))
    expected = np.zeros((2, ACT))
    for b, i in np.ndindex(BATCH, ACT):
        before = norm(old_mean[b, i], old_std[b, i])
        expected[0, i] += divergence(before, norm(mean[b, i], old_std[b, i])) / BATCH
        expected[1, i] += divergence(before, norm(old_mean[b, i], std[b, i])) / BATCH
    np.testing.assert_allclose(decoupled_kl(policy, old), expected, rtol=1e-4)


def test_small_divergences_keep_their_digits():
    """The bound on the standard deviation's is 1e-4 and less: 1 + 1e-4 in float32 has three digits of it."""
    old = TanhGaussian(jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    moved = TanhGaussian(jnp.full((1, 1), 1e-3), jnp.full((1, 1), 1e-3))
    np.testing.assert_allclose(np.ravel(decoupled_kl(moved, old)), [5e-7, 1e-6], rtol=5e-3)


def test_likelihood_loss_matches_a_loop(pair):
    policy, old = pair
    x, weights = random(SAMPLES, BATCH, ACT), naive_weights(random(SAMPLES, BATCH), 0.5)
    expected = 0.0
    for k, b, i in np.ndindex(SAMPLES, BATCH, ACT):
        at = float(x[k, b, i])
        of_mean = norm(float(policy.mean[b, i]), float(old.std[b, i])).logpdf(at)
        of_std = norm(float(old.mean[b, i]), float(policy.std[b, i])).logpdf(at)
        expected -= weights[k, b] * (of_mean + of_std) / BATCH
    loss = weighted_likelihood_loss(policy, old, x, jnp.asarray(weights, jnp.float32))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_likelihood_is_greatest_at_the_moments_of_the_weighted_samples(pair):
    """The mean is theirs, and the variance theirs around the old mean."""
    _, old = pair
    x = random(SAMPLES, BATCH, ACT)
    weights = jnp.asarray(naive_weights(random(SAMPLES, BATCH), 0.5), jnp.float32)
    mean = jnp.einsum("kb,kba->ba", weights, x)
    var = jnp.einsum("kb,kba->ba", weights, jnp.square(x - old.mean[None]))
    slope = jax.grad(lambda policy: weighted_likelihood_loss(policy, old, x, weights))
    for part in jax.tree.leaves(slope(TanhGaussian(mean, 0.5 * jnp.log(var)))):
        np.testing.assert_allclose(part, 0.0, atol=1e-5)
