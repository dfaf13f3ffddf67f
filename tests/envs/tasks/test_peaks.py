"""Peaks beside a naive formula, and its best return."""

import math

import gymnasium as gym
import numpy as np
import pytest

from bisac.envs.tasks.peaks import Peaks
from bisac.errors import BisacError

VARIANTS = [
    {},
    {"dims": 1},
    {"dims": 5, "coupling": 1.0},
    {"dims": 3, "coupling": 0.4, "shift": 0.3, "height": 2.0, "width": 0.05, "distance": 1.0},
]
NO_PICTURES = "this task has no pictures; leave out render_mode, and --video on the command line."


def naive(task, action, context):
    worths = []
    for a, c in zip(action, context, strict=True):
        place = float(a) - task.shift * float(c)
        near = 0.6 * math.exp(-((place + task.distance / 2) ** 2) / (2 * 0.3**2))
        far = task.height * math.exp(-((place - task.distance / 2) ** 2) / (2 * task.width**2))
        worths.append(max(near, far))
    return (1 - task.coupling) * sum(worths) / len(worths) + task.coupling * min(worths)


@pytest.mark.parametrize("kwargs", VARIANTS)
def test_rewards_are_those_of_a_naive_formula(kwargs):
    task = Peaks(**kwargs)
    rng = np.random.default_rng(0)
    for seed in range(50):
        context, _ = task.reset(seed=seed)
        near_far_or_elsewhere = (-task.best_action(-context), task.best_action(context), rng.uniform(-1, 1, task.dims))
        action = near_far_or_elsewhere[seed % 3].astype(np.float32)
        observed, reward, terminated, truncated, _ = task.step(action)
        assert reward == pytest.approx(naive(task, action, context), abs=1e-12)
        np.testing.assert_array_equal(observed, context)
        assert terminated
        assert not truncated


@pytest.mark.parametrize("kwargs", VARIANTS)
def test_far_peak_is_the_best_there_is(kwargs):
    task = Peaks(**kwargs)
    rng = np.random.default_rng(0)
    contexts, actions = rng.uniform(-1, 1, (2, 100_000, task.dims)).astype(np.float32)
    assert task.reward(actions, contexts).max() <= task.best_return
    best = task.best_action(contexts)
    assert np.abs(best).max() <= 1.0
    np.testing.assert_allclose(task.reward(best, contexts), task.best_return, rtol=1e-9)
    assert task.reward(actions, contexts).mean() < 0.5 * task.best_return


def test_near_peak_is_a_trap_where_all_dimensions_are_coupled():
    """Leaving it in one dimension pays without coupling; with it, only leaving it in all of them does."""
    stay, leave_one, leave_all = np.array([[-0.6, -0.6], [0.6, -0.6], [0.6, 0.6]])
    still = np.zeros(2)
    alone, coupled = Peaks(), Peaks(coupling=1.0)
    assert [alone.reward(a, still) for a in (stay, leave_one, leave_all)] == pytest.approx([0.6, 0.8, 1.0])
    assert [coupled.reward(a, still) for a in (stay, leave_one, leave_all)] == pytest.approx([0.6, 0.6, 1.0])


def test_contexts_come_from_the_seed():
    env, other = (gym.make("bisac/Peaks-v0", dims=4) for _ in range(2))
    np.testing.assert_array_equal(env.reset(seed=5)[0], other.reset(seed=5)[0])
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    assert not np.array_equal(env.reset(seed=6)[0], other.reset(seed=5)[0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"dims": 9}, "dims must be a whole number from 1 to 8, got 9."),
        ({"height": 0.6}, "height must be a number above 0.6, got 0.6."),
        ({"distance": 1.5, "shift": 0.3}, "shift must be a number 0 or more and at most 0.25, got 0.3."),
        ({"coupling": -0.1}, "coupling must be a number 0 or more and at most 1, got -0.1."),
        ({"width": 0}, "width must be a number above 0 and at most 1, got 0."),
        ({"render_mode": "rgb_array"}, NO_PICTURES),
    ],
)
def test_impossible_peaks_are_refused(kwargs, message):
    with pytest.raises(BisacError) as refused:
        Peaks(**kwargs)
    assert str(refused.value) == message
