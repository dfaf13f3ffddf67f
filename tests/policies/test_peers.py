"""Stable-Baselines3's own evaluate_policy with our policies, on tasks whose observations are no vectors."""

import gymnasium as gym
import numpy as np
import pytest
from policies import POLICIES, fresh

import bisac
from bisac.envs.task import Task

pytestmark = pytest.mark.peers


class Delivery(gym.Env):
    """Push a point to a goal; episodes are of different lengths and start from places that are known beforehand."""

    observation_space = gym.spaces.Dict(
        position=gym.spaces.Box(-9.0, 9.0, (2,)), goal=gym.spaces.Box(-1.0, 1.0, (1, 2)), gear=gym.spaces.Discrete(3)
    )
    action_space = gym.spaces.Box(np.float32([-2.0, -1.0]), np.float32([2.0, 3.0]))

    def __init__(self):
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        self.episode += 1
        self.time, self.position = 0, np.array([0.1 * self.episode, -0.3], np.float32)
        return self.seen(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.time += 1
        self.position = np.clip(self.position + 0.1 * (1 + self.time % 3) * action, -9, 9).astype(np.float32)
        reward = -float(np.abs(self.position - 0.5).sum())
        return self.seen(), reward, False, self.time == 5 + self.episode, {}

    def seen(self):
        return {"position": self.position, "goal": np.full((1, 2), 0.5, np.float32), "gear": self.time % 3}


def naive(policy, env, episodes):
    """Returns and lengths of a plain loop over observations, one by one and flattened by Gymnasium."""
    found = []
    for _ in range(episodes):
        (obs, _), total, length, over = env.reset(), 0.0, 0, False
        while not over:
            action, _ = policy.predict(gym.spaces.flatten(env.observation_space, obs), deterministic=True)
            obs, reward, terminated, truncated, _ = env.step(action)
            total, length, over = total + reward, length + 1, terminated or truncated
        found.append((pytest.approx(total, rel=1e-5), length))
    return found


@pytest.mark.parametrize("kind", ["sac", "ppo"])
def test_evaluate_policy_takes_our_policy_on_a_dict_task(kind, tmp_path):
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    task = Task(Delivery)
    fresh(POLICIES[kind], task.spec(task.make())).save(tmp_path / "policy.safetensors")
    policy = bisac.load(tmp_path / "policy.safetensors")
    one = evaluate_policy(policy, Monitor(Delivery()), n_eval_episodes=4, return_episode_rewards=True)
    assert list(zip(*one, strict=True)) == naive(policy, Delivery(), 4)
    several = DummyVecEnv([lambda: Monitor(Delivery()) for _ in range(3)])
    three = evaluate_policy(policy, several, n_eval_episodes=6, return_episode_rewards=True)
    expected = [outcome for outcome in naive(policy, Delivery(), 2) for _ in range(3)]  # each plays the first two
    assert list(zip(*three, strict=True)) == expected
    assert evaluate_policy(policy, Monitor(Delivery()), n_eval_episodes=2, deterministic=False)[1] > 0
