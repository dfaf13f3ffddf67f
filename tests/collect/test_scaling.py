import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.collect.scaling import Scaling
from bisac.nets.actors import UnsquashedActor
from bisac.nets.scaled import LIMIT
from bisac.types import Transition


def test_rewards_are_scaled_by_the_running_return():
    rng = np.random.default_rng(1)
    reward = rng.normal(1.0, 2.0, (30, 3)).astype(np.float32)
    ended = rng.random((30, 3)) < 0.2
    totals, seen = np.zeros(3), []
    for t in range(30):  # the naive way
        totals = 0.9 * totals + reward[t]
        seen.append(totals.copy())
        totals[ended[t]] = 0.0
    whole = Scaling.init(1, 3, observations=False, rewards=True)
    parts = whole
    obs = jnp.zeros((30, 3, 1))
    whole = whole.observe(obs, jnp.asarray(reward), jnp.asarray(ended), 0.9)
    for t in range(0, 30, 10):  # a rollout at a time: what is running is carried over
        rows = slice(t, t + 10)
        parts = parts.observe(obs[rows], jnp.asarray(reward[rows]), jnp.asarray(ended[rows]), 0.9)
    for normaliser in (whole, parts):
        assert normaliser.returns.std == pytest.approx(np.std(seen), rel=1e-3)
        np.testing.assert_allclose(normaliser.running, totals, rtol=1e-4)
        np.testing.assert_allclose(normaliser.reward(jnp.asarray(reward)), reward / np.std(seen), rtol=1e-3)


def test_outliers_are_cut_off():
    normaliser = Scaling.init(1, 1, observations=True, rewards=True)
    steps = jnp.array([[[1.0]], [[-1.0]]]), jnp.array([[1.0], [-1.0]]), jnp.array([[True], [True]])
    normaliser = normaliser.observe(*steps, 0.9)
    assert normaliser.obs(jnp.array([1e6])) == LIMIT
    assert normaliser.reward(jnp.array(-1e6)) == -LIMIT


def test_switched_off_it_changes_nothing():
    normaliser = Scaling.init(2, 3, observations=False, rewards=False)
    assert jax.tree.leaves(normaliser) == []
    batch = Transition(jnp.ones((4, 2)), jnp.ones((4, 1)), jnp.ones(4), jnp.ones(4), jnp.ones((4, 2)))
    assert all((a == b).all() for a, b in zip(normaliser.batch(batch), batch, strict=True))
    actor = UnsquashedActor.init(jax.random.key(0), 2, 1, (4,), "tanh", 0.0)
    assert normaliser.around(actor) is actor


def test_policy_acts_on_observations_as_they_come():
    obs = jax.random.normal(jax.random.key(1), (50, 1, 2)) * 4.0 + 7.0
    normaliser = Scaling.init(2, 1, observations=True, rewards=False)
    normaliser = normaliser.observe(obs, jnp.zeros((50, 1)), jnp.zeros((50, 1), bool), 0.9)
    actor = UnsquashedActor.init(jax.random.key(0), 2, 1, (4,), "tanh", 0.0)
    flat = obs[:, 0]
    by_hand = (flat - flat.mean(0, keepdims=True)) / flat.std(0, keepdims=True)
    expected = actor.act(by_hand, jax.random.key(0), explore=False)
    found = normaliser.around(actor).act(flat, jax.random.key(0), explore=False)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
