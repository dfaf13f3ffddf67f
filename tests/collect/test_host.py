import gymnasium as gym
import jax
import numpy as np
import pytest
from probe_envs import Counter, Truncated
from small_runs import advanced, host_collector

import bisac
from bisac.algos import SAC
from bisac.collect import memory as memory_check
from bisac.collect import replay as replay_memory
from bisac.collect.learning import mean_metrics
from bisac.collect.memory import check_memory
from bisac.collect.off_policy import learn_and_act
from bisac.envs.host.envs import episode_seed
from bisac.errors import BisacError
from bisac.types import Transition

TINY = dict(hidden=(8,), batch_size=16, learning_starts=12, replay_size=1000)


def gathered(algo, env, num_envs, steps):
    """A collector, its state after so many steps, and the episodes that ended."""
    collector = host_collector(algo, env, num_envs, seed=3)
    return collector, *advanced(collector, collector.start(), steps)


def taken(state):
    """The metrics since they were last taken, and the state with a new tally."""
    learning = state.flat.whole
    return mean_metrics(learning), state.with_new_tally()


@pytest.mark.parametrize("num_envs", [1, 3])
def test_replay_holds_true_transitions(num_envs):
    _, state, episodes = gathered(SAC(**TINY), Counter, num_envs, steps=60)
    replay = state.flat.whole.replay
    held = jax.tree.map(lambda rows: np.asarray(rows)[:60], replay.storage)
    assert int(replay.size) == 60
    endings = 0
    for i in range(num_envs):  # replay each environment's own rows, interleaved in memory
        rows = [leaf[i::num_envs] for leaf in held]
        env, episode = Counter(), 0
        obs, _ = env.reset(seed=episode_seed(3, i, 0))
        for stored_obs, action, reward, discount, stored_next in zip(*rows, strict=True):
            assert stored_obs == obs
            next_obs, expected_reward, terminated, truncated, _ = env.step(action)
            assert stored_next == next_obs  # at an episode's end, the last observation and not the next one's first
            assert reward == np.float32(expected_reward)
            assert discount == 1.0 - terminated
            obs = next_obs
            if terminated or truncated:
                episode += 1
                endings += 1
                obs, _ = env.reset(seed=episode_seed(3, i, episode))
    assert endings == len(episodes) > 10


def test_nothing_recompiles():
    learn_and_act.clear_cache()
    algo = SAC(utd=0.7, **TINY)  # an update at some steps and none at others, in warm-up and after it
    collector, state, _ = gathered(algo, Counter, 1, steps=60)
    advanced(collector, taken(state)[1], 80)
    assert learn_and_act._cache_size() == 1


@pytest.mark.parametrize(("utd", "num_envs"), [(1.0, 1), (0.25, 1), (2.0, 1), (1.0, 3), (0.5, 3)])
def test_updates_follow_the_ratio(utd, num_envs):
    _, state, _ = gathered(SAC(utd=utd, **TINY), Counter, num_envs, steps=60)
    assert state.step == 60
    assert state.updates == int((60 - TINY["learning_starts"]) * utd)
    adam = state.flat.whole.agent.critic.opt_state[0]
    assert int(adam.count) == state.updates


def test_actions_are_uniform_before_learning_starts():
    algo = SAC(hidden=(8,), batch_size=16, learning_starts=600, replay_size=600)
    _, state, _ = gathered(algo, Counter, 1, steps=600)
    actions = np.asarray(state.flat.whole.replay.storage.action)
    assert np.abs(actions).max() <= 1.0
    assert np.histogram(actions, bins=4, range=(-1, 1))[0] == pytest.approx(300, abs=60)
    assert state.updates == 0
    assert taken(state)[0] == {}


def test_metrics_are_means_since_last_taken():
    collector, state, _ = gathered(SAC(temperature=0.3, **TINY), Truncated, 1, steps=40)
    first, state = taken(state)
    assert first["alpha"] == pytest.approx(0.3)
    assert taken(state)[0] == {}
    state, _ = advanced(collector, state, 41)
    assert taken(state)[0]["alpha"] == pytest.approx(0.3)


def test_memory_never_exceeds_its_size():
    algo = SAC(hidden=(8,), batch_size=16, learning_starts=10, replay_size=20)
    _, state, _ = gathered(algo, Counter, 3, steps=90)
    assert state.flat.whole.replay.capacity == 18  # the largest multiple of three environments
    assert int(state.flat.whole.replay.size) == 18


def test_replay_that_does_not_fit_is_refused(monkeypatch):
    algo = SAC(replay_size=1000)
    spec = host_collector(algo, Counter).spec
    needed = replay_memory.bytes_needed(1000, Transition.like(spec))
    assert needed == 1000 * 4 * (1 + 2 + 1 + 1 + 1)
    monkeypatch.setattr(memory_check, "available_memory", lambda: needed - 1)
    with pytest.raises(BisacError, match="choose a smaller --replay-size"):
        check_memory(algo, spec)
    with pytest.raises(BisacError, match="at least the number of environments, 2000"):
        algo.check_num_envs(2000)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_rewards_that_are_normalised_already_have_about_the_same_unit_on_any_scale(scale):
    class Scaled(Counter):
        def step(self, action):
            obs, reward, *rest = super().step(action)
            return obs, scale * (reward + float(action[0])), *rest

    algo = SAC(critic_norm="batch", normalise_rewards=True, **TINY).settled()
    _, state, _ = gathered(algo, Scaled, 1, steps=20)
    learning = state.flat.whole
    raw = np.asarray(learning.replay.storage.reward)[:12]
    low, high = np.percentile(np.clip(raw / float(learning.scaling.returns.std), -10, 10), [5, 95])
    assert float(learning.agent.reward_unit) == pytest.approx((high - low) / 3.29, rel=0.5)


def test_one_simulator_under_several_names_is_refused():
    env = Counter()
    with pytest.raises(BisacError, match="is one environment, which was given several times"):
        bisac.train(lambda: env, algo="sac", num_envs=2, eval_env=Counter, steps=10, verbose=False)
    with pytest.raises(BisacError, match="is one environment, which was given several times"):
        bisac.train(lambda: env, algo="sac", num_envs=1, eval_episodes=1, steps=10, verbose=False)
    with pytest.raises(BisacError, match="is one environment, which was given several times"):
        bisac.train(gym.Wrapper(env), algo="sac", eval_env=env, steps=10, verbose=False)
