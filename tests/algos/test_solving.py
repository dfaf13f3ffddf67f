"""Algorithms of each kind solve a real task within a stated budget. Slow, and so small: narrow networks, one seed."""

import pytest

import bisac
from bisac.runs.log import read_progress

NARROW = dict(hidden=(64, 64), batch_size=128, replay_size=10_000)
SWING_UP = {
    "sac": NARROW | {"critic_norm": "none"},
    "bisac": NARROW,
}


def best_return(folder):
    return max(row["eval_return"] for row in read_progress((folder / "progress.csv").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("contestant", SWING_UP)
def test_pendulum_swings_up(contestant, tmp_path):
    """A random policy gets about -1200, a good one about -150."""
    bisac.train(
        "Pendulum-v1",
        contestant.split()[0],
        6000,
        out=tmp_path / "run",
        eval_every=3000,
        eval_episodes=5,
        verbose=False,
        **SWING_UP[contestant],
    )
    assert best_return(tmp_path / "run") > -250.0


@pytest.mark.slow
@pytest.mark.parametrize(("algo", "steps"), [("ppo", 25_000)])
def test_pole_stays_up(algo, steps, tmp_path):
    """A random policy holds the pole for about 6 steps; 1000 are the limit."""
    bisac.train(
        "InvertedPendulum-v5", algo, steps, out=tmp_path / "run", eval_every=steps // 3, eval_episodes=3, verbose=False
    )
    assert best_return(tmp_path / "run") > 900.0
