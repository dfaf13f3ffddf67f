"""Algorithms of each kind solve a real task within a stated budget. Slow, and so small: narrow networks, one seed."""

import pytest

import bisac
from bisac.runs.log import read_progress


def best_return(folder):
    return max(row["eval_return"] for row in read_progress((folder / "progress.csv").read_text()))


@pytest.mark.slow
def test_pendulum_swings_up(tmp_path):
    """A random policy gets about -1200, a good one about -150."""
    small = dict(hidden=(64, 64), batch_size=128, replay_size=10_000)
    often = dict(eval_every=3000, eval_episodes=5)
    bisac.train("Pendulum-v1", "bisac", 6000, out=tmp_path / "run", verbose=False, **often, **small)
    assert best_return(tmp_path / "run") > -250.0


@pytest.mark.slow
def test_pole_stays_up(tmp_path):
    """A random policy holds the pole for about 6 steps; 1000 are the limit."""
    often = dict(eval_every=25_000 // 3, eval_episodes=3)
    bisac.train("InvertedPendulum-v5", "ppo", 25_000, out=tmp_path / "run", verbose=False, **often)
    assert best_return(tmp_path / "run") > 900.0
