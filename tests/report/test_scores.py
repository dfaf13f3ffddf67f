"""What a run's score is, and when it is reached."""

import numpy as np

from bisac.report.scores import running_score, steps_to_reach

STEPS = np.arange(1, 41) * 100.0


def test_running_score_is_the_mean_over_the_tenth_before():
    returns = np.random.default_rng(0).normal(size=40)
    naive = [np.mean([r for s, r in zip(STEPS, returns, strict=True) if now - 400 < s <= now]) for now in STEPS]
    np.testing.assert_allclose(running_score(STEPS, returns, 4000), naive)


def test_steps_to_reach():
    rising = STEPS / 4000
    # The mean of the last four rises through 0.5 one and a half evaluations after the curve does.
    assert steps_to_reach(STEPS, rising, 4000, 0.5) == 2200.0
    assert steps_to_reach(STEPS, rising, 4000, 2.0) == np.inf
    lucky = np.where(STEPS == 100, 10.0, 0.0)
    assert steps_to_reach(STEPS, lucky, 4000, 5.0) == np.inf  # one evaluation is no score
