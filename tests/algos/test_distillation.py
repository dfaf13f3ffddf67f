"""Marginals that are distilled from a joint Q."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bisac.algos import distillation
from bisac.algos.distillation import DRAWS, STATES, centred, distil, drawn
from bisac.algos.learner import Learner
from bisac.nets.additive import NODES, Additive
from bisac.ops.gaussian import TanhGaussian

NEAR, FAR = -0.4, 0.6


def peaks(obs, action):
    """A broad low peak, a narrow high one, for each dimension; the state's own worth and an interaction beside them."""
    own = jnp.maximum(
        0.6 * jnp.exp(-0.5 * jnp.square((action - NEAR) / 0.4)), jnp.exp(-0.5 * jnp.square((action - FAR) / 0.08))
    )
    q = own.sum(-1) + 30.0 * obs[:, 0] + 0.1 * action[:, 0] * action[:, 1]
    return jnp.stack([0.5 * q - 0.2, 1.5 * q + 0.2])  # the mean of the twins is what counts


def test_the_far_peak_is_found_within_a_few_hundred_steps():
    """While the policy sits on the near peak, and whatever the states are worth."""
    optimiser = optax.adam(1e-3)
    learner = Learner.init(Additive.init(jax.random.key(0), 3, 2, (64,), "relu"), optimiser)
    policy = TanhGaussian(jnp.full((STATES, 2), jnp.arctanh(NEAR)), jnp.full((STATES, 2), -1.0))

    @jax.jit
    def step(learner, key):
        obs_key, draw_key = jax.random.split(key)
        obs = jax.random.normal(obs_key, (STATES, 3))
        return distil(learner, optimiser, peaks, policy, obs, draw_key)

    for key in jax.random.split(jax.random.key(1), 600):
        learner, told = step(learner, key)
    grid = jnp.linspace(-1.0, 1.0, NODES)
    curves = np.asarray(learner.fixed.curves(jnp.zeros((1, 3)), grid))[0, :, 0]
    truth = np.asarray(peaks(jnp.zeros((NODES, 3)), jnp.stack([grid, jnp.zeros(NODES)], -1))).mean(axis=0)
    for curve in curves:
        assert abs(float(grid[curve.argmax()]) - FAR) < 0.06
        np.testing.assert_allclose(curve - curve.mean(), truth - truth.mean(), atol=0.15)
    assert told["marginals_unexplained"] < 0.2


def test_half_of_the_draws_are_uniform_and_the_others_near_the_policy():
    policy = TanhGaussian(jnp.full((4000, 1), 1.0), jnp.full((4000, 1), jnp.log(0.05)))
    action = np.asarray(drawn(policy, jax.random.key(0)))
    assert action.shape == (DRAWS, 4000, 1)
    near = np.abs(np.arctanh(np.clip(action, -0.999, 0.999)) - 1.0) < 0.3
    # The uniform ones among them: a in tanh(1 -+ 0.3), a share of 0.13.
    np.testing.assert_allclose(near.mean(), 0.5 + 0.5 * (np.tanh(1.3) - np.tanh(0.7)) / 2, atol=0.02)
    far = np.arctanh(action[near])
    np.testing.assert_allclose(np.median(far), 1.0, atol=0.01)


def test_draws_near_the_policy_are_twice_as_wide(monkeypatch):
    monkeypatch.setattr(distillation, "UNIFORM", 0.0)
    policy = TanhGaussian(jnp.full((4000, 1), 0.3), jnp.full((4000, 1), jnp.log(0.05)))
    x = np.arctanh(np.asarray(drawn(policy, jax.random.key(0)), float))
    assert x.mean() == pytest.approx(0.3, abs=0.003)
    assert x.std() == pytest.approx(2.0 * 0.05, rel=0.02)


def test_centring_takes_off_each_states_own_mean():
    q = np.random.default_rng(0).normal(size=(DRAWS, 5)).astype(np.float32)
    naive = np.stack([column - column.mean() for column in q.T], axis=1)
    np.testing.assert_allclose(centred(jnp.asarray(q)), naive, atol=1e-6)
