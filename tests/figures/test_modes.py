"""The map of who finds the far peak: its training, its numbers."""

import gymnasium as gym
import jax.numpy as jnp
import numpy as np
import pytest

import bisac.tasks  # noqa: F401  registers bisac/Peaks-v0
from bisac.algos import SAC
from bisac.envs.tasks.peaks import peaks_reward
from bisac.errors import BisacError
from bisac.figures import modes
from bisac.figures.modes import ModesFigure
from bisac.figures.peaks_training import train_on_peaks


def test_the_reward_on_the_device_is_the_tasks():
    task = dict(dims=3, width=0.1, height=1.5, distance=1.0, coupling=0.3)
    env = gym.make("bisac/Peaks-v0", **task)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3)).astype(np.float32)
    given = []
    for action in actions:
        env.reset()
        given.append(env.step(action)[1])
    found = peaks_reward(jnp.asarray(actions), 0.1, 1.5, 1.0, 0.3)
    np.testing.assert_allclose(found, given, rtol=1e-5)


def test_training_climbs_a_peak_that_is_broad_enough():
    """A far peak as broad as the near one and three times as high is found by anyone."""
    algo = SAC(hidden=(16, 16), critic_norm="none", initial_temperature=0.05, critic_lr=3e-3, actor_lr=3e-3,
               batch_size=32, learning_starts=200, replay_size=2000).settled()  # fmt: skip
    cell = jnp.int32(0), jnp.float32(0.4), jnp.float32(2.0)
    assert train_on_peaks(algo, 1, 1600, *cell, 1.0, 0.0) > 1.8


def test_numbers_are_shares_of_the_gain(monkeypatch):
    """Trainings that always end half way up, or at the top in the last seed."""

    def trained(algo, dims, steps, seed, width, height, distance, coupling):
        return height if seed == 2 else (0.6 + height) / 2

    monkeypatch.setattr(modes, "train_on_peaks", trained)
    made = ModesFigure(widths=(0.1, 0.2), heights=(0.8, 1.0, 1.5)).make(lambda text: None)
    assert set(made.numbers) == {"axes", "sac", "forward-sac", "bisac", "mpo"}
    np.testing.assert_allclose(made.numbers["sac"]["gain"], np.full((3, 2), 2 / 3), rtol=1e-5)
    assert made.numbers["mpo"]["return"].shape == (3, 2, 3)
    assert set(made.pictures) == {"png", "pdf"}


def test_a_far_peak_below_the_near_one_is_refused():
    with pytest.raises(BisacError, match=r"heights must be above 0\.6"):
        ModesFigure(heights=(0.5,))
