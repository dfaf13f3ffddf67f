import jax.numpy as jnp
import numpy as np
import pytest

from bisac.ops.returns import polyak, soft_value, td_target


@pytest.mark.parametrize(
    ("discount", "expected"),
    [(0.0, 2.0), (1.0, 2.0 + 0.9 * 10.0)],
    ids=["termination cuts the bootstrap", "going on or truncation does not"],
)
def test_td_target(discount, expected):
    target = td_target(jnp.array([2.0]), jnp.array([discount]), jnp.array([10.0]), 0.9)
    np.testing.assert_allclose(target, [expected], rtol=1e-6)


def test_soft_value_takes_the_lower_twin_of_each_state():
    q = jnp.array([[1.0, 5.0], [3.0, -2.0]])
    log_prob = jnp.array([-1.0, 2.0])
    np.testing.assert_allclose(soft_value(q, log_prob, jnp.float32(0.5)), [1.0 + 0.5, -2.0 - 1.0], rtol=1e-6)


@pytest.mark.parametrize(("tau", "expected"), [(0.0, [3.0, -4.0]), (0.25, [2.5, -2.0]), (1.0, [1.0, 4.0])])
def test_polyak(tau, expected):
    np.testing.assert_allclose(polyak(jnp.array([1.0, 4.0]), jnp.array([3.0, -4.0]), tau), expected, rtol=1e-6)
