import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import log_slope
from scipy.integrate import quad
from scipy.stats import norm

from bisac.ops.gaussian import Gaussian, TanhGaussian, log_tanh_slope


@jax.jit
def log_prob(mean, log_std, x):
    return TanhGaussian(mean, log_std).log_prob(x)


@jax.jit
def entropy(mean, log_std):
    return TanhGaussian(mean, log_std).entropy()


def f32(*values):
    return tuple(jnp.asarray(value, jnp.float32) for value in values)


# Every mean with every log std and every x, each a batch of one dimension.
MEANS, LOG_STDS, XS = (
    axis.reshape(-1, 1)
    for axis in np.meshgrid([-3.0, 0.0, 0.5, 3.0], [-5.0, -1.0, 2.0], [-20.0, -9.5, -1.0, 0.3, 20.0])
)


def test_slope_is_stable_and_so_is_its_derivative():
    x = np.array([-100.0, -20.0, -9.5, -1.0, 0.0, 0.7, 9.5, 20.0, 100.0])
    (x32,) = f32(x)
    # Absolute: around 0 the slope's logarithm is a difference of numbers near 1.
    np.testing.assert_allclose(log_tanh_slope(x32), log_slope(x), rtol=1e-6, atol=5e-7)
    np.testing.assert_allclose(jax.vmap(jax.grad(log_tanh_slope))(x32), -2.0 * np.tanh(x), rtol=1e-6, atol=1e-6)


def test_log_prob_matches_scipy():
    mean, log_std, x = f32(MEANS, LOG_STDS, XS)
    expected = norm.logpdf(XS, MEANS, np.exp(LOG_STDS)) - log_slope(XS)
    # The absolute part is for the one value near 0, a difference of numbers near 2.
    np.testing.assert_allclose(log_prob(mean, log_std, x), expected[:, 0], rtol=1e-5, atol=1e-6)


def test_gradients_of_log_prob_match_their_closed_forms():
    gradients = jax.jit(jax.grad(lambda *inputs: log_prob(*inputs).sum(), argnums=(0, 1, 2)))
    std = np.exp(LOG_STDS)
    z = (XS - MEANS) / std
    expected = (z / std, z**2 - 1.0, -z / std + 2.0 * np.tanh(XS))
    for ours, theirs in zip(gradients(*f32(MEANS, LOG_STDS, XS)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_density_integrates_to_one_over_actions():
    nodes, weights = np.polynomial.legendre.leggauss(300)
    pairs = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1)
    x, mean, log_std = f32(np.arctanh(pairs), [0.3, -0.5], [-0.7, -1.5])
    density = np.exp(log_prob(jnp.broadcast_to(mean, x.shape), jnp.broadcast_to(log_std, x.shape), x))
    assert weights @ density @ weights == pytest.approx(1.0, abs=1e-5)


MEAN, STD = np.array([0.8, -0.2, 0.0]), np.exp([-0.5, 0.0, -3.0])


@pytest.fixture(scope="module")
def samples():
    mean, log_std = (jnp.broadcast_to(value, (200_000, 3)) for value in f32(MEAN, np.log(STD)))
    return jax.jit(lambda key: TanhGaussian(mean, log_std).sample(key))(jax.random.key(0))


def test_samples_have_the_mean_and_std_of_x(samples):
    x = np.arctanh(np.asarray(samples.action, float))
    # Five standard errors.
    np.testing.assert_array_less(np.abs(x.mean(0) - MEAN), 5.0 * STD / np.sqrt(len(x)))
    np.testing.assert_array_less(np.abs(x.std(0) / STD - 1.0), 5.0 / np.sqrt(2.0 * len(x)))
    np.testing.assert_allclose(np.corrcoef(x.T), np.eye(3), atol=5.0 / np.sqrt(len(x)))


def test_samples_carry_the_log_prob_of_their_action(samples):
    action = np.asarray(samples.action[:1000], float)
    expected = norm.logpdf(np.arctanh(action), MEAN, STD) - np.log1p(-(action**2))
    # The action in float32 gives x back to about 1e-6, and the narrowest std magnifies that twentyfold.
    np.testing.assert_allclose(samples.log_prob[:1000], expected.sum(-1), atol=1e-3)


def test_entropy_is_the_mean_of_minus_log_prob(samples):
    log_prob = np.asarray(samples.log_prob, float)
    ours = entropy(*f32(MEAN, np.log(STD)))
    assert abs(float(ours) + log_prob.mean()) < 5.0 * log_prob.std() / np.sqrt(len(log_prob))


def test_mode_is_the_squashed_mean():
    np.testing.assert_allclose(TanhGaussian(*f32(MEAN, np.log(STD))).mode(), np.tanh(MEAN), rtol=1e-6)


# The quadrature's nodes lie further apart in x the wider the policy, while the bend of log tanh' stays as narrow.
@pytest.mark.parametrize(
    ("log_std", "atol"),
    [(-5.0, 5e-6), (-3.0, 5e-6), (-1.0, 5e-6), (0.0, 5e-6), (1.0, 1e-5), (1.5, 2e-5), (2.0, 5e-4)],
)
def test_entropy_matches_quadrature(log_std, atol):
    means = np.linspace(-3.0, 3.0, 7)
    std = np.exp(log_std)

    def exact(mean):
        bend = np.clip(-mean / std, -10.0, 10.0)
        slope = quad(lambda z: norm.pdf(z) * log_slope(mean + std * z), -12.0, 12.0, points=[bend], limit=200)[0]
        return norm.entropy(mean, std) + slope

    ours = entropy(*f32(means[:, None], np.full((7, 1), log_std)))
    np.testing.assert_allclose(ours, [exact(mean) for mean in means], atol=atol)


def test_plain_gaussian_equals_scipy():
    mean, log_std, action = (np.random.default_rng(0).normal(size=(3, 6, 2)).astype(np.float32)) * 0.7
    policy = Gaussian(jnp.asarray(mean), jnp.asarray(log_std))
    expected = norm(mean, np.exp(log_std))
    np.testing.assert_allclose(policy.log_prob(jnp.asarray(action)), expected.logpdf(action).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(policy.entropy(), expected.entropy().sum(-1), rtol=1e-5)
    wide = Gaussian(jnp.full((20_000, 1), 2.0), jnp.full((20_000, 1), np.float32(np.log(3.0))))
    drawn = wide.sample(jax.random.key(0))
    assert drawn.mean() == pytest.approx(2.0, abs=0.1)
    assert drawn.std() == pytest.approx(3.0, rel=0.03)


def test_draws_are_of_x_along_a_leading_axis():
    mean, log_std = f32([[0.5, -1.0], [2.0, 0.0]], [[0.0, -1.0], [0.5, -2.0]])
    x = np.asarray(TanhGaussian(mean, log_std).draws(jax.random.key(0), 40_000))
    assert x.shape == (40_000, 2, 2)
    np.testing.assert_allclose(x.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(x.std(axis=0), np.exp(log_std), rtol=0.02)
