import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from bisac.figures.gradient import LEAST_STD, descend, gaussian_kl, project_gaussian

TARGET, START = jnp.asarray([2.0, 0.5]), jnp.asarray([-1.0, 2.0])


def test_gaussian_kl_against_scipy():
    p, q = stats.norm(*np.asarray(START)), stats.norm(*np.asarray(TARGET))
    expected = integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -25.0, 25.0)[0]
    assert gaussian_kl(START, TARGET) == pytest.approx(expected, rel=1e-5)
    assert gaussian_kl(TARGET, TARGET) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("target", [(2.0, 0.5), (-30.0, 0.1)])
def test_projection_lands_on_the_target(target):
    np.testing.assert_allclose(project_gaussian(jnp.asarray(target)), target, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("estimator", ["pathwise", "score"])
def test_a_step_is_the_gradient_of_the_divergence(estimator):
    path = descend(START, TARGET, jax.random.key(0), 0.1, 1_000_000, 1, estimator)
    gradient = jax.grad(gaussian_kl)(START, TARGET)
    np.testing.assert_allclose((path[0] - path[1]) / 0.1, gradient, rtol=0.02)


def test_descent_converges_with_many_samples():
    path = descend(START, TARGET, jax.random.key(0), 0.01, 100, 1000, "pathwise")
    assert path.shape == (1001, 2)
    np.testing.assert_allclose(path[0], START)
    assert gaussian_kl(path[-1], TARGET) < 0.01


def test_a_step_beyond_zero_ends_above_it():
    path = descend(START, TARGET, jax.random.key(0), 1.0, 1000, 1, "pathwise")  # the gradient is about 7.5
    assert path[1, 1] == pytest.approx(LEAST_STD)
