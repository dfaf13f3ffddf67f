"""PointGoal beside a naive loop, and its best return."""

import gymnasium as gym
import numpy as np
import pytest

from bisac.envs.tasks.goal import PointGoal


def test_points_move_and_are_rewarded_as_in_a_naive_loop():
    task, rng = PointGoal(dims=3, speed=0.5, radius=1.0), np.random.default_rng(1)
    observed, _ = task.reset(seed=4)
    place, goal, rewards = [0.0] * 3, observed["desired_goal"], set()
    for _ in range(50):
        action = rng.uniform(-1, 1, 3).astype(np.float32)
        place = [min(1.0, max(-1.0, x + 0.5 * float(a))) for x, a in zip(place, action, strict=True)]
        observed, reward, terminated, truncated, info = task.step(action)
        for part, value in {"observation": place, "achieved_goal": place, "desired_goal": goal}.items():
            np.testing.assert_allclose(observed[part], value, atol=1e-5)
        near = sum((x - g) ** 2 for x, g in zip(place, goal, strict=True)) ** 0.5 <= 1.0
        assert (reward, info["is_success"]) == (0.0 if near else -1.0, near)
        assert not terminated
        assert not truncated
        rewards.add(reward)
    assert rewards == {0.0, -1.0}


@pytest.mark.parametrize("kwargs", [{}, {"dims": 4, "speed": 0.3}])
def test_the_oracle_arrives_as_soon_as_can_be_and_random_actions_hardly_ever(kwargs):
    env, rng = gym.make("bisac/PointGoal-v0", **kwargs), np.random.default_rng(0)
    task = env.unwrapped
    for policy in (task.best_action, lambda _: rng.uniform(-1, 1, task.dims).astype(np.float32)):
        totals, successes = [], []
        for seed in range(20):
            observed, _ = env.reset(seed=seed)
            goal, total, ended = observed["desired_goal"], 0.0, False
            while not ended:
                observed, reward, terminated, truncated, info = env.step(policy(observed))
                total, ended = total + reward, terminated or truncated
            totals.append(total)
            successes.append(info["is_success"])
            if policy == task.best_action:
                # No sooner than the farthest dimension allows, nor later than when every one of them has arrived.
                soonest = np.ceil(max(0.0, np.abs(goal).max() - task.radius) / task.speed - 1e-6)
                assert -np.ceil(np.abs(goal).max() / task.speed) <= total <= -soonest + 1
        assert np.mean(successes) == (1.0 if policy == task.best_action else pytest.approx(0.0, abs=0.1))
