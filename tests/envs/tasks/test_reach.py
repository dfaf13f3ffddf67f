"""GatedReach beside a naive loop, and its best return."""

import gymnasium as gym
import numpy as np
import pytest

from bisac.envs.tasks.reach import GatedReach
from bisac.errors import BisacError


def episode(env, seed, policy):
    obs, _ = env.reset(seed=seed)
    start, total, steps, ended = obs, 0.0, 0, False
    while not ended:
        obs, reward, terminated, truncated, _ = env.step(policy(obs))
        total, steps, ended = total + reward, steps + 1, terminated or truncated
    return start, total, steps


@pytest.mark.parametrize("kwargs", [{}, {"dims": 4, "speed": 0.3, "crossed": True}, {"dims": 1, "weak": 0.0}])
def test_oracle_has_the_best_return_and_random_commands_far_less(kwargs):
    env = gym.make("bisac/GatedReach-v0", **kwargs)
    task = env.unwrapped
    assert isinstance(task, GatedReach)
    rng = np.random.default_rng(0)
    random, best = [], []
    for seed in range(10):
        start, total, steps = episode(env, seed, task.best_action)
        assert steps == 100
        assert total == pytest.approx(task.best_return(start), abs=1e-3)
        best.append(total)
        random.append(episode(env, seed, lambda obs: rng.uniform(-1, 1, obs.shape).astype(np.float32))[1])
        assert random[-1] < best[-1]
    assert np.mean(random) < 5 * np.mean(best) < 0


def test_points_move_as_in_a_naive_loop():
    task = GatedReach(dims=3, speed=0.5)
    rng = np.random.default_rng(1)
    start, _ = task.reset(seed=4)
    place = [float(x) for x in start]
    for _ in range(50):
        command = rng.uniform(-1, 1, 3).astype(np.float32)
        for i in range(3):
            place[i] = min(1.0, max(-1.0, place[i] + 0.5 * float(task.gate.response(command[i : i + 1])[0])))
        obs, reward, terminated, truncated, _ = task.step(command)
        np.testing.assert_allclose(obs, place, atol=1e-6)
        assert reward == pytest.approx(-sum(abs(x) for x in place) / 3, abs=1e-6)
        assert not terminated
        assert not truncated


def test_no_commands_beat_the_best_return():
    """All ways to spend three steps, on a grid of commands that holds the detents."""
    task = GatedReach(dims=1, speed=0.3)
    grid = np.linspace(-1, 1, 41)  # 0.8 is among them
    moves = 0.3 * task.gate.response(grid)
    start, _ = task.reset(seed=2)
    first = np.clip(start[0] + moves, -1, 1)
    second = np.clip(first[:, None] + moves, -1, 1)
    third = np.clip(second[..., None] + moves, -1, 1)
    brought = -(np.abs(first)[:, None, None] + np.abs(second)[..., None] + np.abs(third))
    best = task.best_return(start, steps=3)
    assert best - 0.1 < brought.max() <= best + 1e-9  # the grid cannot stop at 0 exactly


def test_seed_and_actions_repeat_an_episode():
    one, other = GatedReach(), GatedReach()
    commands = np.random.default_rng(3).uniform(-1, 1, (20, 2)).astype(np.float32)
    for task in (one, other):
        task.reset(seed=9)
    for command in commands:
        np.testing.assert_array_equal(one.step(command)[0], other.step(command)[0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"dims": 5}, "dims must be a whole number from 1 to 4, got 5."),
        ({"speed": 0}, "speed must be a number above 0 and at most 1, got 0."),
        ({"width": 0.5}, "width must be a number above 0 and at most 0.2, got 0.5."),
    ],
)
def test_impossible_reaches_are_refused(kwargs, message):
    with pytest.raises(BisacError) as refused:
        GatedReach(**kwargs)
    assert str(refused.value) == message
