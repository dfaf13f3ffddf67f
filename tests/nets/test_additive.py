"""Curves that are linear between nodes."""

import jax
import jax.numpy as jnp
import numpy as np
from reference import log_slope

from bisac.nets.additive import NODES, Additive, hats


def test_hats_interpolate_as_numpy_does():
    values = np.random.default_rng(0).normal(size=NODES)
    actions = np.linspace(-1.0, 1.0, 333, dtype=np.float32)
    ours = np.asarray(hats(jnp.asarray(actions))) @ values
    np.testing.assert_allclose(ours, np.interp(actions, np.linspace(-1.0, 1.0, NODES), values), atol=1e-5)


def test_curves_are_the_trunks_values_interpolated_state_by_state():
    model = Additive.init(jax.random.key(0), 3, 2, (8,), "relu")
    obs = jax.random.normal(jax.random.key(1), (5, 3))
    actions = jnp.linspace(-0.9, 0.8, 7)
    curves = np.asarray(model.curves(obs, actions))
    assert curves.shape == (1, 2, 5, 7)
    values, _ = model.on_batch(obs)
    for i in range(2):
        for b in range(5):
            naive = np.interp(actions, np.linspace(-1.0, 1.0, NODES), values[b, i])
            np.testing.assert_allclose(curves[0, i, b], naive, atol=1e-6)


def test_the_projection_is_that_of_each_states_own_curves():
    model = Additive.init(jax.random.key(0), 3, 2, (8,), "relu")
    obs, alpha = jax.random.normal(jax.random.key(1), (4, 3)), jnp.float32(1e-3)
    policy = jax.jit(lambda: model.project(obs, alpha))()
    x = np.linspace(-9.0, 9.0, 20_001)
    height = np.asarray(model.curves(obs, jnp.asarray(np.tanh(x), jnp.float32)))[0] / 1e-3 + log_slope(x)
    p = np.exp(height - height.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(policy.mean, (p @ x).T, atol=2e-3)
