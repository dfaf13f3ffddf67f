import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.algos import MPO
from bisac.errors import BisacError
from bisac.ops.improvement import DecoupledKL
from bisac.types import Spec, Transition

SPEC = Spec("Some-v0", 3, (-1.0, -1.0), (1.0, 1.0))
KEYS = jax.random.split(jax.random.key(0), 6)
BATCH = Transition(
    jax.random.normal(KEYS[0], (16, 3)),
    jax.random.uniform(KEYS[1], (16, 2), minval=-1.0),
    jax.random.normal(KEYS[2], (16,)),
    jnp.array([0.0, 1.0] * 8),
    jax.random.normal(KEYS[3], (16, 3)),
)
ALGO = MPO(gamma=0.9, tau=0.1, hidden=(8,), samples=6, next_samples=3).settled()


@pytest.fixture(scope="module")
def state():
    fresh = jax.jit(ALGO.init, static_argnums=0)(SPEC, KEYS[4])
    return apart(fresh)


def apart(state):
    """The state with targets that are not what is learned: as after many updates."""
    targets = lambda s: (s.target_actor, s.target_critic)  # noqa: E731
    return eqx.tree_at(targets, state, jax.tree.map(lambda leaf: 1.3 * leaf + 0.1, targets(state)))


@pytest.fixture(scope="module")
def updated(state):
    return jax.jit(ALGO.update)(state, BATCH, KEYS[5])


def test_critics_regress_onto_the_mean_over_the_old_policys_actions(state, updated):
    x = state.target_actor(BATCH.next_obs).draws(jax.random.split(KEYS[5])[0], 3)
    values = [np.asarray(state.target_critic(BATCH.next_obs, jnp.tanh(x[k]))).min(axis=0) for k in range(3)]
    target = BATCH.reward + 0.9 * BATCH.discount * np.mean(values, axis=0)
    q = state.critic.model(BATCH.obs, BATCH.action)
    expected = sum(0.5 * np.mean((np.asarray(one) - target) ** 2) for one in q)
    assert updated[1]["critic_loss"] == pytest.approx(float(expected), rel=1e-5)


def test_samples_are_the_old_policys_and_weighed_by_the_target_critic(state, updated):
    x = state.target_actor(BATCH.obs).draws(jax.random.split(KEYS[5])[1], 6)
    q = np.stack([np.asarray(state.target_critic(BATCH.obs, jnp.tanh(x[k])))[0] for k in range(6)]).astype(float)
    eta = float(state.duals.model.eta)
    weights = np.exp((q - q.max(axis=0)) / eta)
    weights /= weights.sum(axis=0)
    expected = (weights * np.log(6.0 * weights)).sum(axis=0).mean()  # KL from an even choice
    assert float(updated[1]["kl_weights"]) == pytest.approx(expected, rel=1e-3)


def test_targets_follow(state, updated):
    after, _ = updated
    for name, online in (("target_actor", after.actor.model), ("target_critic", after.critic.model)):
        old, new = jax.tree.leaves(getattr(state, name)), jax.tree.leaves(getattr(after, name))
        for before, now, towards in zip(old, new, jax.tree.leaves(online), strict=True):
            np.testing.assert_allclose(now, 0.9 * before + 0.1 * towards, rtol=1e-5, atol=1e-7)


def test_divergences_come_to_their_bounds():
    """On a steep Q the dual variables hold each step at the bounds, and metrics say so."""
    algo = MPO(hidden=(32,), samples=16, actor_lr=1e-3, tau=0.01, epsilon_mean=0.005, epsilon_std=1e-3).settled()

    @jax.jit
    def learned():
        keys = jax.random.split(KEYS[5], 2000)
        return jax.lax.scan(lambda state, key: algo.update(state, BATCH, key), algo.init(SPEC, KEYS[4]), keys)[1]

    told = learned()
    assert all(np.isfinite(values).all() for values in told.values())
    last = {name: float(values[-500:].mean()) for name, values in told.items()}
    assert last["kl_weights"] == pytest.approx(algo.epsilon, rel=0.2)
    assert last["kl_mean"] == pytest.approx(0.005, rel=0.3)
    assert last["kl_std"] < 1.3e-3


def test_a_dual_variable_rises_beyond_its_bound_and_falls_within_and_has_limits(state):
    step = jax.jit(ALGO.step_duals)
    q, kl = jax.random.normal(KEYS[0], (6, 16)), DecoupledKL(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
    before, after = state.duals.model, step(state.duals, q, kl).model
    assert ((after.log_alpha_mean > before.log_alpha_mean) == jnp.array([True, False])).all()
    assert ((after.log_alpha_std > before.log_alpha_std) == jnp.array([False, True])).all()
    low = eqx.tree_at(lambda d: d.model.log_alpha_mean, state.duals, jnp.full(2, -18.0))
    np.testing.assert_allclose(step(low, q, kl).model.log_alpha_mean, [-17.99, -18.0], atol=5e-3)
    high = eqx.tree_at(lambda d: d.model.log_alpha_mean, state.duals, jnp.full(2, np.log(100.0), jnp.float32))
    assert jnp.exp(step(high, q, kl).model.log_alpha_mean).max() == pytest.approx(100.0, rel=1e-5)


def test_the_policy_starts_as_wide_as_told(state):
    narrower = dataclasses.replace(ALGO, initial_log_std=-1.0).init(SPEC, KEYS[4])
    wide, narrow = (agent.actor.model(BATCH.obs) for agent in (state, narrower))
    np.testing.assert_allclose(narrow.log_std, wide.log_std - 1.0, atol=1e-5)
    np.testing.assert_allclose(narrow.mean, wide.mean, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"critic_norm": "batch"}, "--critic-norm must be none with MPO"),
        ({"samples": 1}, "--samples must be at least 2"),
        ({"epsilon_std": 0.0}, "--epsilon-std must be positive"),
    ],
)
def test_what_it_cannot_do_is_refused(wrong, sentence):
    with pytest.raises(BisacError, match=sentence):
        MPO(**wrong)
