"""Observations of any space become the vectors that Gymnasium's own flattening gives, one by one and in batches."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import concatenate, create_empty_array

from bisac.layout import flattened, is_flat, layout_from_json, layout_of

SPACES = [
    spaces.Box(-1.0, 1.0, (3, 2)),
    spaces.Box(0, 255, (4,), np.uint8),
    spaces.Discrete(4, start=-2),
    spaces.MultiDiscrete([3, 2, 5], start=[1, 0, -4]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiBinary((2, 3)),
    spaces.Dict(observation=spaces.Box(-9.0, 9.0, (5,)), goal=spaces.Box(-1.0, 1.0, ()), mode=spaces.Discrete(3)),
    spaces.Tuple([spaces.Discrete(2), spaces.Dict(z=spaces.MultiBinary(2), a=spaces.Tuple([spaces.Discrete(3)]))]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_as_gymnasium_flattens(space):
    space.seed(1)
    layout = layout_from_json(json.loads(json.dumps(layout_of(space))))
    assert layout == layout_of(space)
    hash(layout)
    samples = [space.sample() for _ in range(6)]
    expected = np.stack([spaces.flatten(space, sample) for sample in samples]).astype(np.float32)
    size = spaces.flatdim(space)
    for sample, flat in zip(samples, expected, strict=True):
        assert is_flat(layout, flat, size)
        assert not is_flat(layout, sample, size) or np.shape(sample) == (size,)
        np.testing.assert_array_equal(flattened(layout, sample), flat)
        if isinstance(space, spaces.MultiDiscrete):  # which Gymnasium flattens to whole numbers
            assert is_flat(layout, spaces.flatten(space, sample), size)
    batch = concatenate(space, samples, create_empty_array(space, 6))
    np.testing.assert_array_equal(flattened(layout, batch), expected)
    assert flattened(layout, batch).dtype == np.float32


def test_what_only_gymnasium_can_flatten_has_no_layout():
    assert layout_of(spaces.Text(5)) is None
    assert layout_of(spaces.Dict(a=spaces.Sequence(spaces.Discrete(2)))) is None


@pytest.mark.parametrize(
    ("space", "bad", "sentence"),
    [
        (SPACES[6], {"observation": np.zeros(5), "goal": 0.0}, "a dictionary of observation, goal, mode"),
        (SPACES[6], {"observation": np.zeros(4), "goal": 0.0, "mode": 1}, r"shape \(4,\) instead of \(5,\)"),
        (SPACES[6], {"observation": np.zeros((2, 5)), "goal": 0.0, "mode": 1}, "not of one batch"),
        (SPACES[6], {"observation": np.zeros(5), "goal": 0.0, "mode": 3}, "outside 0 to 2"),
        (SPACES[7], (1,), "a tuple of 2 parts"),
    ],
)
def test_what_does_not_fit_is_told(space, bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        flattened(layout_of(space), bad)
