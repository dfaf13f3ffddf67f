import jax.numpy as jnp
import numpy as np
import pytest

from bisac.ops.returns import generalised_advantages, polyak, soft_value, td_target


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


@pytest.mark.parametrize("trace", [0.0, 0.5, 0.95, 1.0])
def test_advantages_equal_a_naive_sum(trace):
    """For each step: the discounted sum of the errors until its episode or the rollout ends."""
    rng = np.random.default_rng(0)
    reward, value, next_value = rng.normal(size=(3, 12, 4)).astype(np.float32)
    ended = rng.random((12, 4)) < 0.3
    discount = np.where(ended & (rng.random((12, 4)) < 0.5), 0.0, 1.0).astype(np.float32)  # half are truncations
    gamma = 0.9
    expected = np.zeros((12, 4))
    for env in range(4):
        for t in range(12):
            for later in range(t, 12):
                target = reward[later, env] + gamma * discount[later, env] * next_value[later, env]
                expected[t, env] += (gamma * trace) ** (later - t) * (target - value[later, env])
                if ended[later, env]:
                    break
    found = generalised_advantages(*map(jnp.asarray, (reward, discount, ended, value, next_value)), gamma, trace)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
