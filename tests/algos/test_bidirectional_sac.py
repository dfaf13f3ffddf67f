"""Bidirectional SAC's own step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forms import VDN_A

from bisac.algos import SAC, BidirectionalSAC
from bisac.ops.gaussian import TanhGaussian
from bisac.types import Spec, Transition


def test_rewards_on_another_scale_give_the_same_step():
    """Q and alpha times a hundred: q, its projection and the step of the actor stay as they are."""
    algo = BidirectionalSAC(hidden=(8,), batch_size=16, critic_lr=1e-12, **VDN_A | dict(epsilon=1.0)).settled()
    spec, key = Spec("sizes", 3, (-1.0, -1.0), (1.0, 1.0)), jax.random.key(1)
    fresh = jax.jit(algo.init, static_argnums=0)(spec, key)
    # Last layers in proportion: then Q is.
    heads = lambda s: [m for mlp in _networks(s) for m in (mlp.weights[-1], mlp.biases[-1])]  # noqa: E731
    scaled = eqx.tree_at(heads, fresh, [100.0 * leaf for leaf in heads(fresh)])
    scaled = eqx.tree_at(lambda s: s.temperature.model, scaled, fresh.temperature.model + jnp.log(100.0))
    shapes = ((16, 3), (16, 2), (16,), (16,), (16, 3))
    batch = Transition(*(jnp.tanh(jax.random.normal(key, shape)) for shape in shapes))
    one, other = (jax.jit(algo.update)(state, batch, key)[0].actor.model for state in (fresh, scaled))
    begun = jax.tree.leaves(fresh.actor.model)
    for before, small, large in zip(begun, jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.abs(small - before).max() > 1e-5
        np.testing.assert_allclose(small, large, atol=1e-6)


def _networks(state):
    critic = state.critic.model
    return critic.auxiliary, critic.marginals.subnetworks.mlp


SPEC = Spec("sizes", 3, (-1.0, -1.0), (1.0, 1.0))
JOINT = dict(hidden=(8,), batch_size=64)


def random_batch(seed, size=64):
    keys = jax.random.split(jax.random.key(seed), 5)
    shapes = ((size, 3), (size, 2), (size,), (size,), (size, 3))
    return Transition(*(jnp.tanh(jax.random.normal(key, shape)) for key, shape in zip(keys, shapes, strict=True)))


def test_where_the_projection_does_not_count_a_joint_critic_is_sac():
    """Whatever its weight: the same actor, critics and temperature after four updates, though marginals are learned."""
    ends = []
    for algo in (BidirectionalSAC(epsilon=100.0, margin=1e6, **JOINT), SAC(hidden=(8,), batch_size=64)):
        algo = algo.settled()
        update, state = jax.jit(algo.update), jax.jit(algo.init, static_argnums=0)(SPEC, jax.random.key(0))
        first = state.marginals
        for seed in range(4):
            state, _ = update(state, random_batch(seed), jax.random.key(seed))
        if first is not None:
            assert not np.array_equal(state.marginals.model.trunk.biases[-1], first.model.trunk.biases[-1])
            near, _ = algo.project(state, random_batch(9).obs)
            by_hand = state.marginals.fixed.project(random_batch(9).obs, jnp.exp(state.temperature.model))
            np.testing.assert_array_equal(near.mean, by_hand.mean)
        ends.append((state.actor, state.critic, state.temperature))
    for ours, theirs in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


class Bowl(eqx.Module):
    """Twins whose Q falls off from a best action, and that are so far apart."""

    best: jax.Array
    apart: float

    def __call__(self, obs, action):
        q = -jnp.square(action - self.best[None]).sum(-1)
        return jnp.stack([q, q + self.apart])


class Fixed(eqx.Module):
    """What a learner is to those that only ask."""

    fixed: object


@pytest.mark.parametrize(
    ("margin", "apart", "share"), [(0.0, 0.5, 1.0), (3.0, 0.5, 1.0), (1e4, 0.5, 0.0), (0.0, 3.0, 0.0)]
)
def test_the_projection_counts_where_both_twins_give_it_the_margin(margin, apart, share, monkeypatch):
    """A projection at the best action has the smaller reverse KL there, by 1.7 / alpha nats; the policy sits far away.

    It does not count where one twin's value of the policy is above the other's of the projection.
    """
    near, far = policy_at(np.full(64, 0.5)), policy_at(np.full(64, -0.5))
    followed, told = judged(BidirectionalSAC(margin=margin, **JOINT), far, near, apart, monkeypatch)
    assert followed.mean() == share
    assert told["projection_followed"] == told["projection_favoured"] == share
    # The other way round it has the larger one.
    assert judged(BidirectionalSAC(margin=margin, **JOINT), near, far, apart, monkeypatch)[0].sum() == 0.0


@pytest.mark.parametrize(
    ("quorum", "favoured", "followed"), [(0.1, 6, 0), (0.1, 7, 7), (0.2, 12, 0), (0.2, 13, 13), (0, 1, 1)]
)
def test_the_projection_counts_only_while_a_quorum_of_the_batch_favours_it(quorum, favoured, followed, monkeypatch):
    """Of 64 states: 6 are less than a tenth, 7 are more; 12 are less than a fifth, 13 are more."""
    near = policy_at(np.full(64, 0.5))
    present = policy_at(np.where(np.arange(64) < favoured, -0.5, 0.5))
    counted, told = judged(BidirectionalSAC(margin=3.0, quorum=quorum, **JOINT), present, near, 0.0, monkeypatch)
    np.testing.assert_array_equal(counted, np.arange(64) < followed)
    assert told["projection_favoured"] == favoured / 64
    assert told["projection_followed"] == followed / 64


@pytest.mark.parametrize(("updates", "share"), [(0, 0.0), (8, 0.0), (9, 1.0)])
def test_the_projection_counts_only_after_the_updates_that_patience_says(updates, share, monkeypatch):
    near, far = policy_at(np.full(64, 0.5)), policy_at(np.full(64, -0.5))
    algo = BidirectionalSAC(patience=9, **JOINT)
    assert judged(algo, far, near, 0.0, monkeypatch, updates)[0].mean() == share


def test_the_judge_compares_divergences_and_not_values_alone():
    """Where Q is flat the wider policy is nearer to q, by four nats: between a margin of 1 and of 3 in 2 dimensions."""
    narrow, wide = (TanhGaussian(jnp.zeros((64, 2)), jnp.full((64, 2), log_std)) for log_std in (-3.0, -1.0))

    def favoured(margin, present, projected):
        algo = BidirectionalSAC(margin=margin, **JOINT)
        with pytest.MonkeyPatch.context() as patch:
            return float(judged(algo, present, projected, 0.0, patch, critic=Flat())[1]["projection_favoured"])

    assert favoured(1.0, narrow, wide) > 0.8
    assert favoured(3.0, narrow, wide) < 0.3
    assert favoured(1.0, wide, narrow) < 0.1


class Flat(eqx.Module):
    """Twins to whom all actions are alike."""

    def __call__(self, obs, action):
        return jnp.zeros((2, len(action)))


def test_the_projection_weighs_what_epsilon_has_fallen_to():
    """After three updates of half-life three, 8 is 4."""
    kept = dict(margin="none", policy_delay=1, **JOINT)
    falling = BidirectionalSAC(epsilon=8.0, epsilon_half_life=3.0, **kept).settled()
    state = jax.jit(falling.init, static_argnums=0)(SPEC, jax.random.key(0))
    for seed in range(3):
        state, _ = jax.jit(falling.update)(state, random_batch(seed), jax.random.key(seed))
    constant = (BidirectionalSAC(epsilon=epsilon, epsilon_half_life="none", **kept) for epsilon in (4.0, 8.0))
    ours, same, other = (
        jax.jit(algo.settled().update)(state, random_batch(3), jax.random.key(3))[0].actor.model
        for algo in (falling, *constant)
    )
    largest = lambda left, right: max(  # noqa: E731
        float(jnp.abs(a - b).max()) for a, b in zip(*map(jax.tree.leaves, (left, right)), strict=True)
    )
    assert largest(ours, same) < 1e-6
    assert largest(ours, other) > 1e-5


def test_updates_are_counted_where_the_actor_waits_for_its_turn():
    """Its first turn is at the first update; what follows until its next one counts at once."""
    algo = BidirectionalSAC(policy_delay=2, **JOINT).settled()
    update, state = jax.jit(algo.update), jax.jit(algo.init, static_argnums=0)(SPEC, jax.random.key(0))
    counts = []
    for seed in range(4):
        state, _ = update(state, random_batch(seed), jax.random.key(seed))
        counts.append(int(algo.updates(state)))
    assert counts == [2, 2, 4, 4]


def policy_at(x):
    """A sharp policy whose mean of x is this in both dimensions, a number a state."""
    return TanhGaussian(jnp.repeat(jnp.asarray(x, jnp.float32)[:, None], 2, axis=1), jnp.full((64, 2), -3.0))


def judged(algo, present, projected, apart, monkeypatch, updates=1000, critic=None):
    """Whether a projection counts at each state, beside a present policy, by twins whose best action is at x = 0.5."""
    monkeypatch.setattr(BidirectionalSAC, "updates", lambda self, state: jnp.int32(updates))
    state = jax.jit(algo.settled().init, static_argnums=0)(SPEC, jax.random.key(0))
    critic = Fixed(critic or Bowl(jnp.tanh(jnp.full(2, 0.5)), apart))
    monkeypatch.setattr(BidirectionalSAC, "actor", lambda self, state: lambda obs: present)
    state = eqx.tree_at(lambda s: s.temperature.model, state, jnp.log(0.05))
    state = eqx.tree_at(lambda s: s.critic, state, critic, is_leaf=lambda leaf: leaf is state.critic)
    return algo.settled()._followed(state, projected, jnp.zeros((64, 3)), jax.random.key(3))


def test_epsilon_falls_by_half_in_so_many_updates_and_then_the_marginals_rest():
    """Counted in updates, of which the actor takes every third; below a thousandth the projection is over."""
    algo = BidirectionalSAC(epsilon=8.0, epsilon_half_life=3.0, margin=1.0, **JOINT).settled()
    update, state = jax.jit(algo.update), jax.jit(algo.init, static_argnums=0)(SPEC, jax.random.key(0))
    told, marginals, actors = [], [], []
    for seed in range(42):
        state, metrics = update(state, random_batch(seed), jax.random.key(seed))
        told.append(float(metrics["epsilon"]))
        marginals.append(np.asarray(state.marginals.model.trunk.biases[-1]))
        actors.append(np.asarray(state.actor.model.mlp.biases[-1]))
    np.testing.assert_allclose(told[:9:3], [8.0, 4.0, 2.0], rtol=1e-6)
    assert told[0] == told[2]
    np.testing.assert_allclose(told[36:], [8.0 / 2**12] * 3 + [0.0] * 3, rtol=1e-6)
    assert not np.array_equal(marginals[36], marginals[35])
    assert np.array_equal(marginals[39], marginals[38])
    assert not np.array_equal(actors[39], actors[38])  # SAC's part goes on
    assert metrics["marginals_unexplained"] == metrics["penalty_mean"] == 0.0
