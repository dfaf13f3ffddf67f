"""Runs that learn in hindsight: killed within an episode, failed by their environment, and resumed to the bit."""

from contextlib import contextmanager

import gymnasium as gym
import numpy as np
import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.cli.train import parse_train
from bisac.envs.tasks.goal import PointGoal
from bisac.replay import from_arrays
from bisac.runs import run

TASK, ARGS = "bisac/PointGoal-v0", dict(dims=1, speed=0.5, max_episode_steps=7)
SHORTER = dict(steps=80, eval_every=1000, num_envs=2, env_args=ARGS)
SETTINGS = SMALL | SHORT | SHORTER | dict(algo="ddpg", critic_norm="none", her=True, demo_fraction=0.3)


@contextmanager
def failing_after(count):
    """What is trained inside is told its goals' rewards so many times, for two updates of a step each, and no more."""
    told = iter(range(1 + count))  # once when a run begins
    answer = PointGoal.compute_reward

    def compute_reward(self, achieved_goal, desired_goal, info):
        if achieved_goal.ndim > 1 and next(told, None) is None:
            raise RuntimeError("out of order")
        return answer(self, achieved_goal, desired_goal, info)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PointGoal, "compute_reward", compute_reward)
        with pytest.raises(RuntimeError, match="out of order"):
            yield


@pytest.fixture(scope="module")
def demos():
    """Episodes of the best policy, flat as the memory has them."""
    env, rows = gym.wrappers.FlattenObservation(gym.make(TASK, **ARGS)), []
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        for _ in range(7):
            action = np.clip((obs[1:2] - obs[:1]) / 0.5, -1, 1)
            after, reward, terminated, *_ = env.step(action)
            rows.append((obs, action, reward, after, terminated))
            obs = after
    return from_arrays(*(np.stack(column) for column in zip(*rows, strict=True)))


def test_a_resume_is_exact(tmp_path, demos, monkeypatch):
    monkeypatch.setattr(run, "draw_learning_curve", lambda *_: b"")  # it would take a third of the time
    policy = bisac.train(TASK, demos=demos, out=tmp_path / "straight", **SETTINGS)
    assert policy.spec.env_args == ("dims=1", "speed=0.5", "max_episode_steps=7")
    torn = tmp_path / "torn"
    with dying_at(50):  # the checkpoint of step 40 is within the third episode of 7 steps in 2 environments
        bisac.train(TASK, demos=demos, out=torn, **SETTINGS)
    state = max((torn / "checkpoints").glob("step-*")) / "state.safetensors"
    assert b"episodes" not in state.read_bytes()
    with failing_after(25):  # within a step: half of what its updates need has been answered
        bisac.resume(torn, verbose=False)
    assert max((torn / "checkpoints").glob("step-*")).name == "step-000000000064", "saved as it was before that step"
    bisac.resume(torn, verbose=False)
    assert fingerprint(torn) == fingerprint(tmp_path / "straight")


def test_runs_that_cannot_learn_in_hindsight_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(bisac.BisacError, match=r"--her is for goal tasks, .*; Counter is none"):
        bisac.train(Counter, out=tmp_path / "run", **SETTINGS | dict(env_args=None))
    with pytest.raises(bisac.BisacError, match="PPO has no hyperparameter 'her'"):
        bisac.train(TASK, algo="ppo", her=True, out=tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()


def test_flags():
    command, _ = parse_train(["bisac/PointGoal-v0", "--her", "--algo", "td3"])
    assert command.hyperparameters.her is True
