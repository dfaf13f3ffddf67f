"""Films: what the policy is shown, and what is said where there is nothing to film."""

import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Counter

from bisac.collect.filming import filmed_episode
from bisac.envs.task import Task
from bisac.errors import BisacError


class Idle:
    def predict(self, observation, /):
        return observation, None


class Tiles(Counter):
    """Its observation is one of four tiles."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = spaces.Discrete(4)

    def obs(self):
        return 2

    def render(self):
        return np.zeros((2, 2, 3), np.uint8)


class Watching(Idle):
    def __init__(self):
        self.seen = []

    def predict(self, observation, /):
        self.seen.append(observation)
        return np.zeros(2, np.float32), None


class Broken(Counter):
    def render(self):
        raise RuntimeError("the camera is off")


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Counter, r"draws no pictures \(render_mode='rgb_array'\); leave out --video"),
        (Broken, r"cannot be filmed: RuntimeError: the camera is off\. Leave out --video"),
    ],
)
def test_an_environment_that_cannot_be_drawn_is_told(env, sentence):
    with pytest.raises(BisacError, match=sentence):
        filmed_episode(Idle(), Task(env), 0)


def test_a_policy_sees_what_it_saw_in_training():
    policy = Watching()
    _, _, frames = filmed_episode(policy, Task(Tiles), 0)
    assert len(list(frames)) > 1
    assert policy.seen[0].dtype == np.float32, "whole numbers would be taken for tiles"
    np.testing.assert_array_equal(policy.seen[0], [0, 0, 1, 0])
