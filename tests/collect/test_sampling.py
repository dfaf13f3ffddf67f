"""Batches over several steps, against a plain loop over the episodes that the memory was filled from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.collect import replay, sampling
from bisac.collect.scaling import Scaling
from bisac.types import Transition

draw = jax.jit(sampling.draw, static_argnums=(3, 4, 5, 6))
GAMMA, ENVS, CAPACITY = 0.9, 2, 24
PLAIN = Scaling.init(1, ENVS, observations=False, rewards=False)


def lived(times: int, seed: int = 1):
    """Steps of two environments whose episodes terminate, are truncated, and begin anew: (transition, ended) each."""
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(ENVS, 1)).astype(np.float32)
    steps = []
    for time in range(times):
        next_obs = rng.normal(size=(ENVS, 1)).astype(np.float32)
        terminated, truncated = rng.random((2, ENVS)) < 0.15
        ended, reward = terminated | truncated, rng.normal(size=ENVS).astype(np.float32)
        action = np.stack([np.full(ENVS, time), np.arange(ENVS)], axis=-1).astype(np.float32)  # tells which step it is
        steps.append((Transition(obs, action, reward, 1.0 - terminated.astype(np.float32), next_obs), ended))
        obs = np.where(ended[:, None], rng.normal(size=(ENVS, 1)), next_obs).astype(np.float32)
    return steps


def remembered(steps):
    memory = replay.init(CAPACITY, jax.tree.map(lambda leaf: leaf[0], steps[0][0]), ENVS)
    for transition, _ in steps:
        memory = replay.add(memory, jax.tree.map(jnp.asarray, transition))
    return memory


def by_a_loop(steps, time, env, n):
    """R, the discount of what comes after and its observation, for the step that an environment took at that time."""
    total, weight = 0.0, 1.0
    for transition, ended in steps[time : time + n]:
        total += weight * transition.reward[env]
        weight *= GAMMA
        if ended[env]:
            break
    return total, weight / GAMMA * transition.discount[env], transition.next_obs[env]


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("times", [9, 31], ids=["partly filled", "wrapped"])
def test_batches_are_what_a_loop_over_episodes_gives(n, times):
    steps = lived(times)
    newest = steps[-9:]
    assert any((ended & (transition.discount == 1.0)).any() for transition, ended in newest), "a truncation is held"
    assert not all(transition.discount.all() for transition, _ in newest), "a termination is held"
    batch = jax.device_get(draw(remembered(steps), PLAIN, jax.random.key(1), 200, n, GAMMA, ENVS))
    drawn = {(int(time), int(env)) for time, env in np.asarray(batch.action)}
    held = range(max(0, times - CAPACITY // ENVS), times)
    assert drawn == {(time, env) for time in held for env in range(ENVS)}
    for row in range(200):
        time, env = np.asarray(batch.action[row], int)
        total, discount, next_obs = by_a_loop(steps, time, env, n)
        np.testing.assert_array_equal(batch.obs[row], steps[time][0].obs[env])
        np.testing.assert_allclose(batch.reward[row], total, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(batch.discount[row], discount, rtol=1e-5)
        np.testing.assert_array_equal(batch.next_obs[row], next_obs)


def test_neither_the_oldest_step_nor_one_after_termination_follows_where_all_observations_are_alike():
    """What a memory that wrapped holds next to its newest step is its oldest, and no continuation."""
    steps = []
    for time, terminated in enumerate([False, False, True, False, False, False]):
        row = lambda value: np.full((1, 1), value, np.float32)  # noqa: E731
        discount = np.full(1, 1.0 - terminated, np.float32)
        steps.append(Transition(row(0.0), row(time), np.full(1, 10.0**time, np.float32), discount, row(0.0)))
    memory = replay.init(5, jax.tree.map(lambda leaf: leaf[0], steps[0]))
    for step in steps:
        memory = replay.add(memory, jax.tree.map(jnp.asarray, step))
    batch = draw(memory, PLAIN, jax.random.key(0), 100, 3, 1.0, 1)
    totals = {int(time): float(total) for time, total in zip(batch.action[:, 0], batch.reward, strict=True)}
    assert totals == {1: 110.0, 2: 100.0, 3: 111_000.0, 4: 110_000.0, 5: 100_000.0}


def test_rewards_are_scaled_before_they_are_summed():
    steps = lived(12)
    scaling = Scaling.init(1, ENVS, observations=True, rewards=True)
    seen = ((transition.obs, transition.reward * 100.0, ended) for transition, ended in steps)
    scaling = scaling.observe(*(jnp.asarray(np.stack(rows)) for rows in zip(*seen, strict=True)), GAMMA)
    batch = jax.device_get(draw(remembered(steps), scaling, jax.random.key(1), 20, 3, GAMMA, ENVS))
    scaled = [(t._replace(reward=np.asarray(scaling.reward(jnp.asarray(t.reward)))), ended) for t, ended in steps]
    for row in range(20):
        time, env = np.asarray(batch.action[row], int)
        total, _, next_obs = by_a_loop(scaled, time, env, 3)
        np.testing.assert_allclose(batch.reward[row], total, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(batch.next_obs[row], scaling.obs(jnp.asarray(next_obs)), rtol=1e-6)
