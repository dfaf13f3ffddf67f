"""What every backend that hosts Gymnasium environments must do alike."""

import os
import re
from contextlib import closing
from copy import deepcopy

import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Counter, LinearQuadratic, Probe, Shaped

from bisac.envs.host.envs import HostEnvs, episode_seed
from bisac.envs.task import Task
from bisac.errors import BisacError


class Echo(Probe):
    """Observes the last action."""

    observation_space = spaces.Box(-10.0, 10.0, (2,))
    action_space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))

    def obs(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        return action, 0.0, False, False, {}


@pytest.fixture(params=["sync", "async"])
def make(request):
    """Environments on each backend, closed after the test."""
    made = []

    def make(source, count, seed):
        made.append(HostEnvs(source if isinstance(source, Task) else Task(source), count, seed, request.param))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def assert_same(one, other):
    """Two steps, bit for bit."""
    for mine, theirs in zip(one[:4], other[:4], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_equal([vars(e) for e in one.finished], [vars(e) for e in other.finished])


def test_actions_are_scaled_to_the_box(make):
    envs = make(Echo, 1, seed=0)
    envs.reset()
    actions = [[-1.0, -1.0], [0.0, 0.5], [1.0, 1.0]]
    received = [envs.step(np.array([action], np.float32)).next_obs[0] for action in actions]
    np.testing.assert_allclose(received, [[-2.0, 0.0], [0.0, 7.5], [2.0, 10.0]])


def test_actions_stay_inside_a_box_that_float32_rounds_outwards():
    bounds = np.array([0.1, 0.4, 1.0, 0.3])
    box = spaces.Box(-bounds, bounds, dtype=np.float64)
    assert (np.abs(np.float32(bounds)) > bounds).any()
    task = Task(lambda: Shaped(action_space=box))
    spec = task.spec(task.make())
    for sign in (-1.0, 1.0):
        action = spec.to_box(np.full(4, sign, np.float32))
        assert (np.abs(action.astype(np.float64)) <= bounds).all()
        np.testing.assert_allclose(action, sign * bounds, rtol=1e-6)


@pytest.mark.parametrize(("size", "steps"), [((3,), 0), ((3,), 1), ((), 1)])
def test_observation_of_another_size_is_told(size, steps):
    class Larger(Counter):
        def obs(self):
            return np.zeros(size if self.time >= steps else 1, np.float32)

    def play(envs):
        envs.reset()
        envs.step(np.zeros((2, 2), np.float32))

    with pytest.raises(BisacError, match=re.escape(f"Larger gave an observation of shape {size}; its observation")):
        play(HostEnvs(Task(Larger), 2, 0))


@pytest.mark.parametrize("count", [1, 3])
def test_steps_equal_those_of_a_plain_loop(make, count):
    envs = make(Counter, count, seed=7)
    obs = envs.reset()
    plain = [Counter() for _ in range(count)]
    episodes = [0] * count
    expected_obs = [env.reset(seed=episode_seed(7, i, 0))[0] for i, env in enumerate(plain)]
    rng = np.random.default_rng(0)
    endings = 0
    for _ in range(40):
        np.testing.assert_array_equal(obs, expected_obs)
        action = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
        result = envs.step(action)
        for i, env in enumerate(plain):
            next_obs, reward, terminated, truncated, _ = env.step(action[i])
            assert result.next_obs[i] == next_obs
            assert result.reward[i] == np.float32(reward)
            assert result.terminated[i] == terminated
            if terminated or truncated:
                episodes[i] += 1
                endings += 1
                next_obs = env.reset(seed=episode_seed(7, i, episodes[i]))[0]
            expected_obs[i] = next_obs
        obs = result.obs
    assert endings > 8 * count


def test_restored_environments_go_on_as_they_were(make):
    envs, again = make(LinearQuadratic, 2, seed=1), make(LinearQuadratic, 2, seed=1)
    obs = envs.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (60, 2, 2)).astype(np.float32)
    for action in actions[:33]:
        obs = envs.step(action).obs
    assert again.restore(envs.steps, envs.started, deepcopy(envs.episodes), obs.copy()) == []
    for action in actions[33:]:
        assert_same(envs.step(action), again.step(action))
    assert envs.started == again.started


def test_environments_that_do_not_repeat_themselves_begin_anew(make):
    class Unseeded(LinearQuadratic):
        def first_state(self):
            return int.from_bytes(os.urandom(2)) / 2**16

    envs, again = make(Unseeded, 2, seed=1), make(Unseeded, 2, seed=1)
    envs.reset()
    obs = envs.step(np.zeros((2, 2), np.float32)).obs
    restored = obs.copy()
    assert again.restore(envs.steps, envs.started, envs.episodes, restored) == [0, 1]
    assert again.started == [2, 2]
    assert [episode.length for episode in again.episodes] == [0, 0]
    assert (restored != obs).all()


@pytest.mark.parametrize(("bad", "what"), [("obs", "observation"), ("reward", "reward")])
def test_what_is_not_finite_is_named(make, bad, what):
    class Breaks(Counter):
        def step(self, action):
            obs, reward, *rest = super().step(action)
            if self.time == 2:
                obs, reward = (obs * np.nan, reward) if bad == "obs" else (obs, np.inf)
            return obs, reward, *rest

    envs = make(Breaks, 2, seed=0)
    envs.reset()
    envs.step(np.zeros((2, 2), np.float32))
    with pytest.raises(BisacError, match=rf"Breaks \(copy 0\) gave an? {what} that is not finite .* step 2"):
        envs.step(np.zeros((2, 2), np.float32))


def test_what_is_not_finite_at_a_reset_is_named(make):
    class Breaks(Probe):
        def first_state(self):
            return np.nan

    with pytest.raises(BisacError, match=r"Breaks \(copy 0\) gave an observation that is not finite at its reset"):
        make(Breaks, 1, seed=0).reset()


def test_backends_give_the_same_trajectories():
    task = Task("Hopper-v5", ("max_episode_steps=40",))
    actions = np.random.default_rng(0).uniform(-1, 1, (100, 3, 3)).astype(np.float32)
    with closing(HostEnvs(task, 3, 5, "sync")) as sync, closing(HostEnvs(task, 3, 5, "async")) as parallel:
        assert sync.spec == parallel.spec
        np.testing.assert_array_equal(sync.reset(), parallel.reset())
        for action in actions:
            assert_same(sync.step(action), parallel.step(action))
        assert sync.started == parallel.started
        assert min(sync.started) > 2
