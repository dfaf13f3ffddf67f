"""The picture of one run's learning curve."""

import io

import matplotlib.image
import pytest

from bisac.plotting.learning_curve import draw_learning_curve

ROWS = [
    {"step": 0.0, "eval_return": -5.0, "eval_return_std": 1.0, "episode_return": None},
    {"step": 100.0, "eval_return": None, "eval_return_std": None, "episode_return": 3.0},
    {"step": 200.0, "eval_return": 7.0, "eval_return_std": 2.0, "episode_return": 4.0},
]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_curve_is_a_picture_however_far_the_run_has_come(count):
    picture = matplotlib.image.imread(io.BytesIO(draw_learning_curve(ROWS[:count], "Hopper-v5, bisac")), format="png")
    assert picture.shape[0] > 300
    assert picture.min() < 0.5  # something is drawn
