import jax
import numpy as np
import pytest
from probe_envs import Counter, Truncated

from bisac.algos import SAC
from bisac.collect import replay as replay_memory
from bisac.collect.loop import learn_and_act, off_policy_steps, start
from bisac.envs.host.envs import HostEnvs, episode_seed
from bisac.envs.task import Task
from bisac.errors import BisacError
from bisac.runs import run as runs
from bisac.runs.run import check_memory, take_metrics
from bisac.types import Transition

TINY = dict(hidden=(8,), batch_size=16, learning_starts=12, replay_size=1000)


def finished_run(algo, env, count, steps):
    run = start(algo.settled(), HostEnvs(Task(env), count, seed=3), seed=3)
    episodes = [episode for finished in off_policy_steps(run, steps) for episode in finished]
    return run, episodes


@pytest.mark.parametrize("count", [1, 3])
def test_replay_holds_true_transitions(count):
    run, episodes = finished_run(SAC(**TINY), Counter, count, steps=60)
    held = jax.tree.map(lambda rows: np.asarray(rows)[:60], run.training.replay.storage)
    assert int(run.training.replay.size) == 60
    endings = 0
    for i in range(count):  # replay each environment's own rows, interleaved in memory
        rows = [leaf[i::count] for leaf in held]
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
    run, _ = finished_run(algo, Counter, 1, steps=60)
    take_metrics(run)
    for _ in off_policy_steps(run, 80):
        pass
    assert learn_and_act._cache_size() == 1


@pytest.mark.parametrize(("utd", "count"), [(1.0, 1), (0.25, 1), (2.0, 1), (1.0, 3), (0.5, 3)])
def test_updates_follow_the_ratio(utd, count):
    run, _ = finished_run(SAC(utd=utd, **TINY), Counter, count, steps=60)
    assert run.step == 60
    assert run.updates == int((60 - TINY["learning_starts"]) * utd)
    adam = run.training.algo.critic.opt_state[0]
    assert int(adam.count) == run.updates


def test_actions_are_uniform_before_learning_starts():
    run, _ = finished_run(SAC(hidden=(8,), batch_size=16, learning_starts=600, replay_size=600), Counter, 1, steps=600)
    actions = np.asarray(run.training.replay.storage.action)
    assert np.abs(actions).max() <= 1.0
    assert np.histogram(actions, bins=4, range=(-1, 1))[0] == pytest.approx(300, abs=60)
    assert run.updates == 0
    assert take_metrics(run) == {}


def test_metrics_are_means_since_last_taken():
    run, _ = finished_run(SAC(temperature=0.3, **TINY), Truncated, 1, steps=40)
    first = take_metrics(run)
    assert first["alpha"] == pytest.approx(0.3)
    assert take_metrics(run) == {}
    for _ in off_policy_steps(run, 41):
        pass
    assert take_metrics(run)["alpha"] == pytest.approx(0.3)


def test_memory_never_exceeds_its_size():
    algo = SAC(hidden=(8,), batch_size=16, learning_starts=10, replay_size=20)
    run, _ = finished_run(algo, Counter, 3, steps=90)
    assert run.training.replay.capacity == 18  # the largest multiple of three environments
    assert int(run.training.replay.size) == 18


def test_replay_that_does_not_fit_is_refused(monkeypatch):
    algo = SAC(replay_size=1000)
    needed = replay_memory.bytes_needed(1000, Transition.like(HostEnvs(Task(Counter), 1, 0).spec))
    assert needed == 1000 * 4 * (1 + 2 + 1 + 1 + 1)
    monkeypatch.setattr(runs, "available_memory", lambda: needed - 1)
    with pytest.raises(BisacError, match="choose a smaller --replay-size"):
        check_memory(algo, HostEnvs(Task(Counter), 1, 0).spec)
    with pytest.raises(BisacError, match="at least the number of environments, 2000"):
        algo.check_num_envs(2000)
