"""The report's statistics against rliable's own metrics, naive loops and numbers known by hand."""

import numpy as np
import pytest
from rliable import metrics

from bisac.report import statistics

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 200)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 1), (5, 3), (10, 7)])
def test_interquartile_mean_is_rliables(shape):
    scores = RNG.normal(size=(*shape, 6))
    for point in range(6):
        expected = metrics.aggregate_iqm(scores[..., point])
        assert statistics.interquartile_mean(scores)[point] == pytest.approx(expected)


def test_other_aggregates_are_rliables():
    scores = RNG.normal(size=(5, 4))
    assert statistics.mean(scores).value == pytest.approx(metrics.aggregate_mean(scores))
    assert statistics.median(scores).value == pytest.approx(metrics.aggregate_median(scores))


def test_probability_of_improvement_is_rliables():
    x, y = RNG.normal(size=(5, 4)).round(1), RNG.normal(size=(7, 4)).round(1)  # rounded, so that some are equal
    y[0, 0] = x[0, 0]
    expected = metrics.probability_of_improvement(x, y)
    assert statistics.probability_of_improvement(x, y).value == pytest.approx(expected)


def test_performance_profile_counts():
    scores = np.array([[0.0, 1.0], [0.5, 2.0]])
    profile = statistics.performance_profile(scores, np.array([-1.0, 0.0, 0.5, 1.5, 2.0]))
    np.testing.assert_allclose(profile.values, [1.0, 0.75, 0.5, 0.25, 0.0])


def test_interval_is_that_of_the_mean_where_theory_knows_it():
    """Of 200 normal numbers the 95% interval of the mean is 1.96 standard errors to each side."""
    scores = RNG.normal(size=(200, 1))
    found = statistics.mean(scores)
    assert found.interval is not None
    half = 1.96 * scores.std() / np.sqrt(200)
    np.testing.assert_allclose(found.interval, (scores.mean() - half, scores.mean() + half), atol=0.35 * half)


def test_resampling_is_stratified():
    """Tasks are never mixed: where seeds agree, no interval is left, however much tasks differ."""
    assert statistics.mean(np.array([[0.0, 100.0]] * 5)).interval == (50.0, 50.0)


def test_same_scores_give_the_same_interval_and_leave_the_global_generator_alone():
    scores = RNG.normal(size=(5, 2))
    before = np.random.get_state()[1]
    assert statistics.iqm(scores) == statistics.iqm(scores)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_one_seed_gives_no_interval():
    assert statistics.iqm(np.array([[3.0]])) == statistics.Estimate(3.0, None, 1)
    assert statistics.iqm_difference(np.ones((5, 1)), np.zeros((1, 1))).interval is None
    assert statistics.performance_profile(np.ones((1, 2)), np.zeros(3)).interval is None


@pytest.mark.parametrize(
    ("seeds", "shift", "established"), [(3, 100.0, False), (4, 100.0, True), (5, 0.0, False), (5, -100.0, True)]
)
def test_what_is_established(seeds, shift, established):
    """Four seeds or more a side, and an interval without zero."""
    x = np.arange(seeds, dtype=float)[:, None]
    assert statistics.iqm_difference(x + shift, x).establishes(0.0) is established


def test_running_score_is_the_mean_over_the_tenth_before():
    steps, returns = np.arange(1, 41) * 100.0, RNG.normal(size=40)
    naive = [np.mean([r for s, r in zip(steps, returns, strict=True) if now - 400 < s <= now]) for now in steps]
    np.testing.assert_allclose(statistics.running_score(steps, returns, 4000), naive)


def test_steps_to_reach():
    steps = np.arange(1, 41) * 100.0
    rising = steps / 4000
    # The mean of the last four rises through 0.5 one and a half evaluations after the curve does.
    assert statistics.steps_to_reach(steps, rising, 4000, 0.5) == 2200.0
    assert statistics.steps_to_reach(steps, rising, 4000, 2.0) == np.inf
    lucky = np.where(steps == 100, 10.0, 0.0)
    assert statistics.steps_to_reach(steps, lucky, 4000, 5.0) == np.inf  # one evaluation is no score


def test_curves_at_common_steps():
    grid = np.array([100.0, 200.0, 300.0])
    np.testing.assert_allclose(
        statistics.at_steps(grid, np.array([100.0, 250.0, 300.0]), np.array([0.0, 3.0, 4.0])), [0.0, 2.0, 4.0]
    )
