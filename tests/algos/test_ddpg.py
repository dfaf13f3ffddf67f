import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.algos import DDPG, TD3
from bisac.nets.actors import noisy
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


def apart(state):
    """The state with targets that are not what is learned: as after many updates."""
    targets = lambda s: (s.target_actor, s.target_critic)  # noqa: E731
    return eqx.tree_at(targets, state, jax.tree.map(lambda leaf: 1.3 * leaf + 0.1, targets(state)))


def same(left, right):
    return all((a == b).all() for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


def test_critic_regresses_onto_the_target_networks_value():
    algo = DDPG(hidden=(8,), gamma=0.9).settled()
    state = apart(algo.init(SPEC, KEYS[4]))
    next_q = state.target_critic(BATCH.next_obs, state.target_actor(BATCH.next_obs))[0]
    q = state.critic.model(BATCH.obs, BATCH.action)[0]
    expected = 0.5 * np.mean((np.asarray(q) - (BATCH.reward + 0.9 * BATCH.discount * next_q)) ** 2)
    _, metrics = jax.jit(algo.update)(state, BATCH, KEYS[5])
    assert metrics["critic_loss"] == pytest.approx(float(expected), rel=1e-5)


def test_ddpg_moves_everything_at_every_update():
    algo = DDPG(hidden=(8,), tau=0.1).settled()
    state = algo.init(SPEC, KEYS[4])
    assert state.critic.model.mlp.weights[0].shape[0] == 1
    after, _ = jax.jit(algo.update)(state, BATCH, KEYS[5])
    assert not same(after.actor.model, state.actor.model)
    for name, online in (("target_actor", after.actor.model), ("target_critic", after.critic.model)):
        old, new = jax.tree.leaves(getattr(state, name)), jax.tree.leaves(getattr(after, name))
        for before, now, towards in zip(old, new, jax.tree.leaves(online), strict=True):
            np.testing.assert_allclose(now, 0.9 * before + 0.1 * towards, rtol=1e-5, atol=1e-7)


def test_td3_delays_the_actor_and_the_targets():
    algo = TD3(hidden=(8,), policy_delay=3).settled()
    state, update = algo.init(SPEC, KEYS[4]), jax.jit(algo.update)
    assert state.critic.model.mlp.weights[0].shape[0] == 2
    for number in range(1, 7):
        after, metrics = update(state, BATCH, KEYS[5])
        assert not same(after.critic.model, state.critic.model)
        for name in ("actor", "target_actor", "target_critic"):
            assert same(getattr(after, name), getattr(state, name)) == (number % 3 != 0), (number, name)
        assert (metrics["actor_loss"] == 0.0) == (number < 3)  # that of the last step the actor took
        state = after


def test_td3_takes_the_smaller_twin():
    algo = TD3(hidden=(8,), gamma=0.9, target_noise=0.0).settled()
    state = apart(algo.init(SPEC, KEYS[4]))
    next_q = state.target_critic(BATCH.next_obs, state.target_actor(BATCH.next_obs)).min(axis=0)
    target = BATCH.reward + 0.9 * BATCH.discount * next_q
    expected = sum(0.5 * np.mean((np.asarray(q) - target) ** 2) for q in state.critic.model(BATCH.obs, BATCH.action))
    _, metrics = jax.jit(algo.update)(state, BATCH, KEYS[5])
    assert metrics["critic_loss"] == pytest.approx(float(expected), rel=1e-5)


def test_noise_is_cut_off_and_stays_in_the_box():
    action = jnp.full((4000, 1), 0.3)
    drawn = noisy(action, KEYS[0], 0.2)
    assert drawn.std() == pytest.approx(0.2, rel=0.05)
    assert drawn.mean() == pytest.approx(0.3, abs=0.02)
    assert jnp.abs(noisy(action, KEYS[0], 0.2, 0.1) - 0.3).max() == pytest.approx(0.1)
    assert jnp.abs(noisy(jnp.full((4000, 1), 0.9), KEYS[0], 0.2)).max() == 1.0
    assert (noisy(action, KEYS[0], 0.0, 0.0) == action).all()


def test_exploration_noise_is_the_keys():
    algo = DDPG(hidden=(8,), exploration_noise=0.1).settled()
    state, obs = algo.init(SPEC, KEYS[4]), BATCH.obs
    quiet = algo.act(state, obs, KEYS[0], explore=False)
    first, again, other = (algo.act(state, obs, key, explore=True) for key in (KEYS[0], KEYS[0], KEYS[1]))
    assert (first == again).all()
    assert (first != other).any()
    assert jnp.abs(first - quiet).max() < 0.5
