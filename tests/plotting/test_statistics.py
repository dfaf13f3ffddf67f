"""The statistics of several seeds: against scipy, naive loops, rliable's own numbers and numbers known by hand."""

import numpy as np
import pytest
from scipy import stats

from bisac.plotting import statistics


@pytest.fixture
def rng():
    """Draws of each test's own, whatever ran before it."""
    return np.random.default_rng(0)


# Of rliable 1.2.0: its `metrics` gave the values, and its `library.get_interval_estimates` and
# `create_performance_profile` the intervals, of 50,000 samples after np.random.seed(0).
SCORES = np.array(
    [[1.0, 1.15, 0.86], [0.55, 0.77, 0.5], [1.03, 1.67, 0.75], [0.69, 1.24, 1.18], [1.05, 0.53, 0.99]],
)
OTHERS = np.array(
    [[1.05, 0.03, 0.47], [-0.25, 0.06, -0.22], [0.58, 0.07, 0.84], [0.78, 0.61, -0.56], [0.43, 0.68, 0.76],
     [-0.07, 0.46, 0.21]],
)  # fmt: skip
RLIABLE = {
    "iqm": (0.9211111111, (0.74111111, 1.06666667)),
    "mean": (0.9306666667, (0.786, 1.078)),
    "median": (0.864, (0.75, 1.04)),
    "iqm_difference": (0.5611111111, (0.26966389, 0.85566944)),
    "probability_of_improvement": (0.85, (0.7, 0.96666667)),
}
RLIABLE_PROFILE = ([1.0, 0.93333333, 0.4, 0.06666667], [1.0, 0.8, 0.2, 0.0], [1.0, 1.0, 0.66666667, 0.2])


@pytest.fixture
def few_samples(monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 200)


@pytest.mark.parametrize("name", RLIABLE)
def test_numbers_are_rliables(name, monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 20_000)
    compared = (OTHERS,) if name in ("iqm_difference", "probability_of_improvement") else ()
    found = getattr(statistics, name)(SCORES, *compared)
    value, interval = RLIABLE[name]
    assert found.value == pytest.approx(value)
    assert found.interval == pytest.approx(interval, abs=0.012)
    assert found.seeds == 5


def test_profile_is_rliables(monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 20_000)
    found = statistics.performance_profile(SCORES, np.array([0.0, 0.5, 1.0, 1.5]))
    for mine, rliables in zip((found.values, *found.interval), RLIABLE_PROFILE, strict=True):
        np.testing.assert_allclose(mine, rliables, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (4, 1), (5, 3), (10, 7)])
def test_interquartile_mean_is_scipys_trimmed_mean(shape, rng):
    scores = rng.normal(size=(2, *shape, 6))
    expected = stats.trim_mean(scores.reshape(2, -1, 6), 0.25, axis=1)
    np.testing.assert_allclose(statistics.interquartile_mean(scores), expected)


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_interval_of_one_task_is_scipys_percentile_bootstrap(statistic, rng, monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 20_000)
    scores = rng.gamma(2.0, size=(12, 1))  # skewed, so that the interval is not symmetric
    measure = {"mean": np.mean, "iqm": lambda x, axis: stats.trim_mean(x, 0.25, axis=axis)}[statistic]
    theirs = stats.bootstrap(
        (scores[:, 0],), measure, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    )
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    found = getattr(statistics, statistic)(scores)
    assert found.interval == pytest.approx(tuple(theirs.confidence_interval), abs=0.05 * width)


def test_interval_of_a_difference_is_scipys_where_samples_are_independent(rng):
    x, y = rng.normal(size=(8, 1)), rng.normal(size=(11, 1))

    def difference(x, y, axis):
        return stats.trim_mean(x, 0.25, axis=axis) - stats.trim_mean(y, 0.25, axis=axis)

    theirs = stats.bootstrap((x[:, 0], y[:, 0]), difference, n_resamples=20_000, method="percentile",
                             rng=np.random.default_rng(1)).confidence_interval  # fmt: skip
    found = statistics.iqm_difference(x, y)
    assert found.interval == pytest.approx(tuple(theirs), abs=0.05 * (theirs.high - theirs.low))


def test_probability_of_improvement_is_mann_whitneys(rng):
    x, y = rng.normal(size=(5, 4)).round(1), rng.normal(size=(7, 4)).round(1)  # rounded, so that some are equal
    y[0, 0] = x[0, 0]
    expected = np.mean([stats.mannwhitneyu(x[:, i], y[:, i]).statistic / 35 for i in range(4)])
    assert statistics.probability_of_improvement(x, y).value == pytest.approx(expected)


def test_performance_profile_counts(few_samples):
    scores = np.array([[0.0, 1.0], [0.5, 2.0]])
    profile = statistics.performance_profile(scores, np.array([-1.0, 0.0, 0.5, 1.5, 2.0]))
    np.testing.assert_allclose(profile.values, [1.0, 0.75, 0.5, 0.25, 0.0])


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_band_covers_the_truth_as_often_as_it_says(confidence, few_samples, rng):
    samples = rng.normal(size=(300, 20, 1, 1))
    bands = [statistics.bootstrap(statistics.plain_mean, s, confidence=confidence).interval for s in samples]
    inside = np.mean([low[0] <= 0.0 <= high[0] for low, high in bands])
    assert inside == pytest.approx(confidence, abs=0.07)


def test_resampling_is_stratified(few_samples):
    """Tasks are never mixed: where seeds agree, no interval is left, however much tasks differ."""
    assert statistics.mean(np.array([[0.0, 100.0]] * 5)).interval == (50.0, 50.0)


def test_seeds_are_drawn_for_each_task_by_itself():
    """Were whole seeds drawn, opposite tasks would always cancel."""
    low, high = statistics.mean(np.array([[value, -value] for value in range(5)], float)).interval
    assert low < -0.5 < 0.5 < high


def test_curve_keeps_a_seed_whole(few_samples, rng):
    """The same seeds are drawn at all points: a curve and the same curve shifted have bands shifted as far."""
    returns = rng.normal(size=(6, 1, 1)) + np.array([0.0, 5.0])
    band = statistics.bootstrap(statistics.interquartile_mean, returns)
    for part in (band.values, *band.interval):
        assert part[1] - part[0] == pytest.approx(5.0)


def test_memory_at_a_time_changes_nothing_but_the_draws(monkeypatch):
    whole = statistics.iqm(SCORES)
    monkeypatch.setattr(statistics, "CHUNK", 100)  # six samples at a time
    parts = statistics.iqm(SCORES)
    assert parts.value == whole.value
    assert parts.interval == pytest.approx(whole.interval, abs=0.03)


def test_same_scores_give_the_same_interval_and_leave_the_global_generator_alone(few_samples):
    before = np.random.get_state()[1]
    assert statistics.iqm(SCORES) == statistics.iqm(SCORES)
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


def test_curves_meet_at_the_steps_of_the_one_that_has_the_fewest():
    steps = [np.array([100.0, 250.0, 300.0, 400.0]), np.array([100.0, 200.0, 300.0])]
    grid, values = statistics.on_common_steps(steps, [np.array([0.0, 3.0, 4.0, 9.0]), np.array([1.0, 2.0, 3.0])])
    np.testing.assert_allclose(grid, [100.0, 200.0, 300.0])
    np.testing.assert_allclose(values, [[0.0, 2.0, 4.0], [1.0, 2.0, 3.0]])


def test_nothing_is_made_up_where_a_curve_does_not_reach():
    steps = [np.array([100.0, 500.0]), np.array([100.0, 200.0, 300.0])]
    grid, _ = statistics.on_common_steps(steps, [np.array([0.0, 7.0]), np.array([1.0, 2.0, 3.0])])
    np.testing.assert_allclose(grid, [100.0])
    steps = [np.array([700.0, 1400.0]), np.array([1000.0, 2000.0, 3000.0])]
    grid, values = statistics.on_common_steps(steps, [np.array([0.0, 7.0]), np.array([1.0, 2.0, 3.0])])
    np.testing.assert_allclose(grid, [1400.0])
    np.testing.assert_allclose(values, [[7.0], [1.4]])
    grid, values = statistics.on_common_steps([np.array([1.0]), np.array([2.0])], [np.array([1.0]), np.array([2.0])])
    assert (len(grid), values.shape) == (0, (2, 0))
