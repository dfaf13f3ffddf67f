import jax.numpy as jnp
import numpy as np
import pytest

from bisac.ops.rewards import in_rewards, spread_of


@pytest.mark.parametrize(
    ("rewards", "unit"),
    [
        (np.random.default_rng(1).normal(-3.0, 0.5, 100_000), 0.5),
        (np.where(np.arange(1000) % 100, np.random.default_rng(2).normal(0.0, 1.0, 1000), -100.0), 1.0),  # crashes
        (np.where(np.arange(1000) % 100, 0.0, 1.0), np.sqrt(0.01 * 0.99)),  # sparse: most are equal
        (np.full(100, 0.7), 0.7),
        (np.full(100, -1e-3), 1e-3),
        (np.zeros(100), 1.0),
    ],
)
def test_the_unit_of_rewards_is_a_robust_spread(rewards, unit):
    assert float(spread_of(jnp.asarray(rewards, jnp.float32))) == pytest.approx(unit, rel=0.06)


def test_values_come_back_in_the_environments_rewards():
    value, unit = jnp.float32(3.0), jnp.float32(0.5)
    assert in_rewards(value, None) == 3.0
    assert in_rewards(value, unit) == 1.5
    assert in_rewards(value, unit, 2) == 0.75
