import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.ops.gaussian import TanhGaussian, log_tanh_slope
from bisac.ops.losses import (
    clipped_value_loss,
    policy_gradient_loss,
    projection_loss,
    reverse_kl_loss,
    squared_error,
    temperature_loss,
)

RNG = np.random.default_rng(0)


def random(*shape):
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def test_squared_error_matches_a_loop():
    q, target = random(2, 5), random(5)
    expected = sum(0.5 * np.mean([(float(q[j, b]) - float(target[b])) ** 2 for b in range(5)]) for j in range(2))
    np.testing.assert_allclose(squared_error(q, target), expected, rtol=1e-6)


def test_reverse_kl_loss_matches_a_loop():
    log_prob, q = random(5), random(2, 5)
    expected = np.mean([0.3 * float(log_prob[b]) - min(float(q[0, b]), float(q[1, b])) for b in range(5)])
    np.testing.assert_allclose(reverse_kl_loss(log_prob, q, jnp.float32(0.3)), expected, rtol=1e-6)


def test_reverse_kl_loss_descends_alpha_times_the_reverse_kl():
    # The target exp(Q / alpha) is Gaussian in x, so that the divergence is known.
    alpha, target_mean, target_std = 0.2, 0.4, 0.5
    count = 200_000

    def q(action):
        x = jnp.arctanh(action)[:, 0]
        log_normal = -0.5 * jnp.square((x - target_mean) / target_std)
        return jnp.stack([alpha * (log_normal - log_tanh_slope(x))] * 2)

    def loss(mean, log_std):
        policy = TanhGaussian(jnp.full((count, 1), mean), jnp.full((count, 1), log_std))
        action, log_prob = policy.sample(jax.random.key(0))
        return reverse_kl_loss(log_prob, q(action), jnp.float32(alpha))

    mean, log_std = 0.1, -1.2
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))(jnp.float32(mean), jnp.float32(log_std))
    # KL = log(target_std) - log_std + (std^2 + (mean - target_mean)^2) / (2 target_std^2) - 1/2
    expected = alpha * np.array([(mean - target_mean) / target_std**2, np.exp(2.0 * log_std) / target_std**2 - 1.0])
    # Five standard errors of the estimate, by the delta method: alpha std / target_std^2 / sqrt(count) is 5e-4.
    np.testing.assert_allclose(gradient, expected, atol=2.5e-3)


@pytest.fixture
def pair():
    """A policy and a projection: 4 states, 3 dimensions."""
    return TanhGaussian(random(4, 3), random(4, 3)), TanhGaussian(random(4, 3), random(4, 3))


@pytest.mark.parametrize(("spread", "power"), [("std", 1), ("var", 2)])
def test_projection_loss_matches_a_loop(pair, spread, power):
    policy, projected = pair
    means, spreads = [], []
    for b in range(4):
        pairs = [(policy.mean[b, i], projected.mean[b, i], policy.std[b, i], projected.std[b, i]) for i in range(3)]
        means.append(sum(float(m - t) ** 2 for m, t, _, _ in pairs))
        spreads.append(sum((float(s) ** power - float(t) ** power) ** 2 for _, _, s, t in pairs))
    result = projection_loss(policy, projected, spread)
    np.testing.assert_allclose(result, (np.mean(means), np.mean(spreads)), rtol=1e-5)


def gaussian_kl(p_mean, p_std, q_mean, q_std):
    """KL(p || q) of two Gaussians, in closed form."""
    return np.log(q_std / p_std) + (p_std**2 + (p_mean - q_mean) ** 2) / (2.0 * q_std**2) - 0.5


def test_projection_loss_as_kl(pair):
    policy, projected = pair
    mean, std, to_mean, to_std = (
        np.asarray(v, float) for v in (policy.mean, policy.std, projected.mean, projected.std)
    )
    whole = gaussian_kl(to_mean, to_std, mean, std).sum(-1).mean()
    widths = gaussian_kl(mean, to_std, mean, std).sum(-1).mean()
    result = projection_loss(policy, projected, "kl")
    np.testing.assert_allclose(result.mean + result.spread, whole, rtol=1e-5)
    np.testing.assert_allclose(result.spread, widths, rtol=1e-5)


@pytest.mark.parametrize("spread", ["std", "var", "kl"])
def test_projection_loss_is_least_at_the_projection(pair, spread):
    _, projected = pair

    @jax.jit  # the projection as an argument: as a constant, the compiler would round its exponential differently
    def loss(mean, log_std, projected):
        return sum(projection_loss(TanhGaussian(mean, log_std), projected, spread))

    at = (projected.mean, projected.log_std, projected)
    np.testing.assert_allclose(loss(*at), 0.0, atol=1e-7)
    for gradient in jax.jit(jax.grad(loss, argnums=(0, 1)))(*at):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-7)
    assert loss(projected.mean + 0.1, projected.log_std, projected) > 0.0
    assert loss(projected.mean, projected.log_std + 0.1, projected) > 0.0


@pytest.mark.parametrize(("entropy", "rises"), [(-5.0, True), (0.0, False)])
def test_temperature_rises_below_the_entropy_target_and_falls_above(entropy, rises):
    gradient = jax.grad(temperature_loss)(jnp.float32(-2.0), jnp.array([entropy - 1.0, entropy + 1.0]), -3.0)
    np.testing.assert_allclose(gradient, entropy + 3.0, rtol=1e-6)
    assert (gradient < 0.0) == rises  # descent moves log alpha against the gradient


def test_policy_gradient_loss_matches_a_loop():
    """Ratios below, within and above the clip, with advantages of either sign."""
    ratios, clip = [0.5, 0.9, 1.1, 1.6], 0.2
    pairs = [(ratio, advantage) for ratio in ratios for advantage in (-1.5, 0.7)]
    expected = -np.mean([min(r * a, min(max(r, 1.0 - clip), 1.0 + clip) * a) for r, a in pairs])
    old = random(len(pairs))
    ratio, advantage = (jnp.asarray(side, jnp.float32) for side in zip(*pairs, strict=True))
    np.testing.assert_allclose(policy_gradient_loss(old + jnp.log(ratio), old, advantage, clip), expected, rtol=1e-5)


def test_clipped_value_loss_matches_a_loop():
    """Values that moved towards their target and away from it, by less than the clip and by more, to either side."""
    old, clip = 1.0, 0.2
    rows = [(old + move, target) for move in (-1.0, -0.1, 0.1, 1.0) for target in (-2.0, 0.5, 1.5, 4.0)]
    near = [old + min(max(value - old, -clip), clip) for value, _ in rows]
    worse = [max((v - t) ** 2, (n - t) ** 2) for (v, t), n in zip(rows, near, strict=True)]
    value, target = (jnp.asarray(side, jnp.float32) for side in zip(*rows, strict=True))
    found = clipped_value_loss(value, jnp.full(len(rows), old), target, clip)
    np.testing.assert_allclose(found, 0.5 * np.mean(worse), rtol=1e-5)
