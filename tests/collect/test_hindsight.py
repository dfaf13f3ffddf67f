"""Goals replaced in hindsight, against plain lists of whole episodes."""

from collections import Counter
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from goal_envs import Wanderer
from small_runs import advanced, host_collector

from bisac.algos import OffPolicy
from bisac.collect import hindsight, replay
from bisac.collect.episodes import find_episodes, steps_left
from bisac.collect.learning import Flat, fresh_learning, with_episodes
from bisac.nets.actors import Actor
from bisac.types import Spec, Transition

GAMMA, BATCH, ENVS, CAPACITY, REPLACED = 0.9, 100, 2, 40, 80
DESIRED, WHO, ACHIEVED = slice(0, 2), slice(2, 4), slice(4, 6)


class Restless(Actor):
    def act(self, obs, key, explore):
        return jax.random.uniform(key, (len(obs), 1))


@dataclass(frozen=True)
class Onlooker(OffPolicy):
    """What it has learned is the last batch that it was shown."""

    def init(self, spec, key):
        return Transition.like(spec, self.batch_size)

    def begin(self, state, warm_up):
        return state

    def update(self, state, batch, key):
        return batch, {"reward": batch.reward.mean()}

    def actor(self, state):
        return Restless()

    policy = actor

    def usual_envs(self):
        return 1


def by_a_loop(steps, at, goal, n):
    """R, the discount of what comes after, and what that is, for a step of an episode in which `goal` was wanted."""
    total = 0.0
    for k, (_, reward, terminated, after) in enumerate(steps[at : at + n]):
        if goal is not None:
            reward = -np.abs(after["achieved_goal"].ravel() - goal).sum()
            terminated = terminated or (after["achieved_goal"].ravel() == goal).all()
        total += GAMMA**k * reward
        if terminated:
            break
    return [total], [GAMMA**k * (1.0 - terminated)], after["observation"], after["achieved_goal"].ravel()


def held_steps(collector, state):
    """What the memory holds: by environment and time, the episode as far as it has come, and the step's place in it."""
    oldest, held = max(0, (state.step - CAPACITY) // ENVS), {}
    for env in collector._envs.backend.envs:
        for steps in map(list, env.unwrapped.episodes):
            for at, (before, *_) in enumerate(steps):
                if before["observation"][1] >= oldest:
                    held[tuple(before["observation"])] = steps, at
    return held


def test_batches_are_those_of_lists_of_episodes():
    """Three steps each, of two environments, until the memory has wrapped, and begins in the middle of an episode."""
    n = 3
    algo = Onlooker(her=True, batch_size=BATCH, n_step=n, gamma=GAMMA, learning_starts=10, replay_size=CAPACITY)
    collector = host_collector(algo, Wanderer, ENVS)
    programs = hindsight._draw, hindsight._update, hindsight._remember_and_act
    compiled = [program._cache_size() for program in programs]
    state, _ = advanced(collector, collector.start(), 10)
    waits, torn = Counter(), False
    while state.step < 130:
        lived = held_steps(collector, state)
        torn |= any(0 < at < len(steps) - 1 for steps, at in list(lived.values())[:1])
        state, _ = collector.advance(state, 0)
        batch = jax.device_get(state.flat.whole.agent)
        expected = []
        for row, (who, wanted) in enumerate(zip(batch.obs[:, WHO], batch.obs[:, DESIRED], strict=True)):
            steps, at = lived[tuple(who)]
            here, goal = steps[at][0], wanted if row < REPLACED else None
            if goal is not None:
                (wait,) = [k for k, step in enumerate(steps[at:]) if (step[3]["achieved_goal"].ravel() == goal).all()]
                waits[len(steps) - at, wait] += 1
            goals = [here["achieved_goal"].ravel(), here["desired_goal"].ravel() if goal is None else goal]
            expected.append(np.concatenate([*goals, *by_a_loop(steps, at, goal, n), goals[1]]))
        seen = [batch.obs[:, ACHIEVED], batch.obs[:, DESIRED], batch.reward[:, None], batch.discount[:, None]]
        seen += [batch.next_obs[:, WHO], batch.next_obs[:, ACHIEVED], batch.next_obs[:, DESIRED]]
        np.testing.assert_allclose(np.concatenate(seen, axis=1), np.stack(expected), rtol=1e-5, atol=1e-5)
    assert torn, "the memory began within an episode"
    assert [program._cache_size() for program in programs] == [size + 1 for size in compiled]
    for left in range(1, 6):
        counts = np.array([waits[left, wait] for wait in range(left)])
        even = counts.sum() / left
        assert even > 40
        np.testing.assert_allclose(counts, even, atol=5 * np.sqrt(even), err_msg=f"{left} steps left")
    learning, lived = state.flat.whole, held_steps(collector, state)
    found = find_episodes(learning.replay, None, ENVS)  # as after a resume
    np.testing.assert_array_equal(found.led_to, learning.episodes.led_to)
    for numbers in (found.own, learning.episodes.own):
        left = steps_left(numbers, learning.replay, jnp.arange(CAPACITY), ENVS)
        expected = [lived[tuple(who)] for who in np.asarray(learning.replay.storage.obs[:, WHO])]
        np.testing.assert_array_equal(left, [len(steps) - 1 - at for steps, at in expected])


def test_nothing_follows_termination_even_where_all_observations_are_alike():
    discount = np.array([1, 1, 0, 1, 1, 1], np.float32)
    still = np.zeros((6, 1), np.float32)
    memory = replay.full_of(Transition(still, still, discount, discount, still))
    left = jax.jit(lambda memory: steps_left(find_episodes(memory, memory, 1).demos, memory, jnp.arange(6), 1))(memory)
    np.testing.assert_array_equal(left, [2, 1, 0, 2, 1, 0])


def test_the_memory_is_not_copied_at_each_step():
    """A program that reads elsewhere in the memory than where it writes would copy all of it."""
    algo = Onlooker(her=True, batch_size=1, replay_size=1_000_000)
    spec = Spec("Large", 6, (-1.0,), (1.0,))
    fresh = jax.eval_shape(lambda key: with_episodes(fresh_learning(algo, spec, 2, key), 2), jax.random.key(0))
    steps, (leaves, structure) = Transition.like(spec, 2), Flat.of(fresh)
    given = steps, np.zeros(2, bool), np.zeros((2, 6), np.float32), False
    compiled = hindsight._remember_and_act.lower(algo, structure, leaves, *given).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 100_000
