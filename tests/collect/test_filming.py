"""What is said where there is nothing to film."""

import pytest
from probe_envs import Counter

from bisac.collect.filming import filmed_episode
from bisac.envs.task import Task
from bisac.errors import BisacError


class Idle:
    def predict(self, observation, /):
        return observation, None


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
