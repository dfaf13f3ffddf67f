import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Counter, Probe

from bisac.envs.host import HostEnvs, episode_seed
from bisac.envs.spec import PAPER_TASKS, make_env, spec_of
from bisac.errors import BisacError


class Shaped(Probe):
    """An environment with the given spaces."""

    def __init__(self, observation_space=None, action_space=None):
        self.observation_space = observation_space or Probe.observation_space
        self.action_space = action_space or Probe.action_space
        self.received = []

    def obs(self):
        return self.observation_space.sample()

    def step(self, action):
        self.received.append(action)
        return self.obs(), 0.0, False, False, {}


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_task_of_the_paper_can_be_stepped(task):
    envs = HostEnvs(task, 1, seed=0)
    assert envs.reset().shape == (1, envs.spec.obs_dim)
    result = envs.step(np.zeros((1, envs.spec.action_dim), np.float32))
    assert result.next_obs.dtype == np.float32
    envs.close()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Hoper-v5", "did you mean Hopper-v5"),
        ("no_such_package:Env-v0", "no_such_package"),
        ("CartPole-v1", "continuous actions"),
        (lambda: Shaped(action_space=spaces.Box(-np.inf, np.inf, (2,))), "unbounded action space"),
        (lambda: Shaped(action_space=spaces.Box(0, 5, (2,), np.int64)), "continuous actions"),
        (lambda: Shaped(observation_space=spaces.Box(0, 255, (8, 8, 3), np.uint8)), "observes images"),
        (lambda: Shaped(observation_space=spaces.Sequence(spaces.Box(-1, 1, (2,)))), "no fixed flat size"),
    ],
)
def test_unusable_environments_are_refused(source, message):
    with pytest.raises(BisacError, match=message):
        make_env(source)


def test_dict_observations_are_flattened_in_gymnasiums_order():
    space = spaces.Dict({"b": spaces.Box(-1, 1, (2, 2)), "a": spaces.Box(-1, 1, (3,))})
    env = make_env(lambda: Shaped(observation_space=space))
    assert spec_of("x", env).obs_dim == 7
    raw = space.sample()
    flat = env.observation(raw)  # pyright: ignore
    np.testing.assert_array_equal(flat, spaces.flatten(space, raw))


def test_actions_are_scaled_to_the_box():
    box = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32))
    envs = HostEnvs(lambda: Shaped(action_space=box), 1, seed=0)
    envs.reset()
    for action in ([-1.0, -1.0], [0.0, 0.5], [1.0, 1.0]):
        envs.step(np.array([action], np.float32))
    np.testing.assert_allclose(envs.envs[0].unwrapped.received, [[-2.0, 0.0], [0.0, 7.5], [2.0, 10.0]])


@pytest.mark.parametrize("count", [1, 3])
def test_steps_equal_those_of_a_plain_loop(count):
    envs = HostEnvs(Counter, count, seed=7)
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


@pytest.mark.parametrize(("bad", "what"), [("obs", "observation"), ("reward", "reward")])
def test_what_is_not_finite_is_named(bad, what):
    class Breaks(Counter):
        def step(self, action):
            obs, reward, *rest = super().step(action)
            if self.time == 2:
                obs, reward = (obs * np.nan, reward) if bad == "obs" else (obs, np.inf)
            return obs, reward, *rest

    envs = HostEnvs(Breaks, 2, seed=0)
    envs.reset()
    envs.step(np.zeros((2, 2), np.float32))
    with pytest.raises(BisacError, match=rf"Breaks \(copy 0\) gave an? {what} that is not finite .* step 2"):
        envs.step(np.zeros((2, 2), np.float32))


def test_registered_environments_of_a_user_work():
    gym.register("UserCounter-v0", entry_point="probe_envs:Counter", max_episode_steps=3)
    try:
        assert HostEnvs("UserCounter-v0", 1, seed=0).spec.env_id == "UserCounter-v0"
    finally:
        gym.registry.pop("UserCounter-v0")
