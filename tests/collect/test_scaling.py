import warnings
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from point_mass import PointMass
from probe_envs import Counter
from small_runs import SHORT

import bisac
from bisac.algos import A2C, REGISTRY, SAC, Rollout
from bisac.collect.learning import fresh_learning
from bisac.collect.off_policy import draw_action
from bisac.collect.on_policy import explore, learn_from_rollout
from bisac.collect.scaling import Scaling
from bisac.nets.actors import UnsquashedActor
from bisac.nets.scaled import LIMIT
from bisac.runs.log import read_progress
from bisac.types import Spec, Transition

SPEC = Spec("sizes", 2, (-1.0,), (1.0,))
SEEN = jax.random.normal(jax.random.key(1), (50, 4, 2)) * 4.0 + 7.0
"""Observations of four environments, far from what networks should see."""
BY_HAND = (SEEN - SEEN.mean((0, 1), keepdims=True)) / SEEN.std((0, 1), keepdims=True)


@dataclass(frozen=True)
class Watching(A2C):
    """Tells what it is given to learn from, and learns nothing."""

    def update(self, state, rollout, key, remaining):
        return state, {"first": rollout.obs[0, 0, 0], "next": rollout.next_obs[0, 0, 0], "remaining": remaining}


def after_seeing(algo):
    """What learning holds once it has seen `SEEN`."""
    learning = fresh_learning(algo, SPEC, 4, jax.random.key(0))
    scaling = learning.scaling.observe(SEEN, jnp.zeros((50, 4)), jnp.zeros((50, 4), bool), 0.9)
    return eqx.tree_at(lambda whole: whole.scaling, learning, scaling)


def test_exploration_acts_on_scaled_observations():
    off = SAC(hidden=(8,), batch_size=16, replay_size=64, normalise_observations=True).settled()
    learning = after_seeing(off)
    keys = jax.random.split(learning.key, 3)
    expected = off.act(learning.agent, BY_HAND[7], keys[1], explore=True)
    np.testing.assert_allclose(draw_action(off, learning, SEEN[7], False)[1], expected, rtol=1e-3, atol=1e-5)
    fresh = A2C(hidden=(8,))
    learning = after_seeing(fresh)
    expected = fresh.explore(learning.agent, BY_HAND[7], jax.random.fold_in(learning.key, 3))
    found = explore(fresh, learning.agent, learning.scaling, SEEN[7], learning.key, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_a_rollout_is_learned_from_as_it_was_acted_upon():
    """By the statistics of before it, which it then changes."""
    algo = Watching(hidden=(8,), normalise_rewards=False)
    learning, far = after_seeing(algo), SEEN[:10] + 50.0
    before = jax.tree.map(jnp.copy, learning.scaling)  # what learning holds is given away
    nothing = jnp.zeros((10, 4))
    rollout = Rollout(SEEN[:10], jnp.zeros((10, 4, 1)), nothing, nothing, far, jnp.zeros((10, 4), bool))
    after = learn_from_rollout(algo, learning, rollout, 1.0)
    assert after.metric_sums["first"] == pytest.approx(float(BY_HAND[0, 0, 0]), rel=1e-3)
    assert after.metric_sums["next"] == pytest.approx(float(before.obs(far)[0, 0, 0]), rel=1e-3)
    assert not np.array_equal(after.scaling.observations.mean, before.observations.mean)


@pytest.mark.parametrize("env", [Counter, PointMass()], ids=["host", "device"])
def test_how_much_of_the_run_is_left_is_told_to_fresh_rollouts(env, monkeypatch, tmp_path):
    monkeypatch.setitem(REGISTRY, "watching", Watching)
    sizes = dict(hidden=(4,), rollout=20, normalise_observations=False, normalise_rewards=False)
    every = SHORT | {"eval_every": 20, "eval_episodes": 1, "num_envs": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the parts of an observation that are not learned from
        bisac.train(env, algo="watching", out=tmp_path / "run", **sizes, **every)
    rows = read_progress((tmp_path / "run" / "progress.csv").read_text())
    np.testing.assert_allclose([row["remaining"] for row in rows], [1.0, 0.8, 0.6, 0.4, 0.2], rtol=1e-6)


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
