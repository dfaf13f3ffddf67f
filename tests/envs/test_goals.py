"""What a goal task says of goals: asked at once or one by one, and refused in a sentence where it cannot say it."""

import gymnasium as gym
import numpy as np
import pytest
from goal_envs import GOAL, Wanderer
from gymnasium import spaces
from probe_envs import Shaped

from bisac.algos import SAC
from bisac.collect.collector import Request
from bisac.collect.dispatch import open_collector
from bisac.envs.goals import GoalPlaces, Goals
from bisac.envs.task import Task
from bisac.errors import BisacError

PARTS = {"observation": GOAL, "achieved_goal": GOAL, "desired_goal": GOAL}


def asked_of(env, steps=2, count=5):
    """Judge goals drawn at random, the first of them reached, and half of the steps terminated."""
    goals = Goals(Task(env))
    achieved, desired = np.random.default_rng(0).normal(size=(2, steps, count, 2)).astype(np.float32)
    desired[:, 0] = achieved[:, 0]
    discount = np.tile(np.float32([1, 0]), (steps, count))[:, :count]
    return achieved, desired, discount, *goals.judge(achieved, desired, discount)


class OneByOne(Wanderer):
    """It takes a batch, and says of it what it says of one pair."""

    def compute_reward(self, achieved, desired, info):
        return np.float32(-np.abs(achieved - desired).sum())


class WithoutEnd(Wanderer):
    @property
    def compute_terminated(self):
        raise AttributeError


@pytest.mark.parametrize("kind", [Wanderer, OneByOne, WithoutEnd])
def test_rewards_and_ends_are_those_of_each_pair(kind):
    achieved, desired, discount, reward, after = asked_of(kind)
    np.testing.assert_allclose(reward, -np.abs(achieved - desired).sum(axis=-1), rtol=1e-6)
    assert reward.dtype == after.dtype == np.float32
    expected = discount.copy()
    if kind is not WithoutEnd:
        expected[:, 0] = 0.0
    np.testing.assert_array_equal(after, expected)


def test_places_are_found_whatever_the_parts_are_and_a_wrapper_has_the_last_word():
    class Twice(gym.Wrapper):
        def compute_reward(self, achieved, desired, info):
            return 2.0 * self.env.unwrapped.compute_reward(achieved, desired, info)

    one = spaces.Box(-1.0, 1.0, (1,))
    inner = spaces.Dict(at=spaces.Tuple([spaces.Discrete(3), one]), kind=spaces.MultiDiscrete([2, 4]))

    assert Goals(Task(lambda: goal_task(lambda *_: 0.0, before=inner))).places == GoalPlaces(
        0, 12, 2
    )  # sorted; "before" has 10 numbers
    achieved, desired, _, reward, _ = asked_of(lambda: Twice(Wanderer()))
    np.testing.assert_allclose(reward, -2.0 * np.abs(achieved - desired).sum(axis=-1), rtol=1e-6)


def goal_task(reward=None, **parts):
    env = Shaped(spaces.Dict(PARTS | parts))
    if reward is not None:
        env.compute_reward = reward
    return env


NO_GOALS = (
    "--her is for goal tasks, whose observations are a dictionary of observation, achieved_goal and desired_goal; "
)


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Shaped, NO_GOALS + "Shaped is none."),
        (lambda: Shaped(spaces.Dict(observation=GOAL)), NO_GOALS + "Shaped is none."),
        (goal_task, "needs the method compute_reward(achieved_goal, desired_goal, info), and Shaped has none."),
        (
            lambda: goal_task(lambda *_: 0.0, desired_goal=spaces.Box(0, 1, (3,))),
            "goals that are a Box each, of one shape",
        ),
        (lambda: goal_task(lambda *_: 0.0, desired_goal=spaces.Discrete(3)), "goals that are a Box each, of one shape"),
        (lambda: goal_task(lambda a, d, info: info["x"]), "does not answer goals with a number: KeyError: 'x'."),
        (lambda: goal_task(lambda a, d, info: "good"), "does not answer goals with a number: "),
        (gym.vector.SyncVectorEnv([Wanderer]), "a vector environment has several; give a function that makes one"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of Gymnasium's about spaces
def test_what_has_no_goals_is_refused_in_a_sentence(env, sentence):
    with pytest.raises(BisacError) as refused:
        Goals(Task(env))
    assert sentence in str(refused.value)


def test_rewards_that_are_not_finite_are_refused():
    with pytest.raises(BisacError, match="compute_reward of Shaped gave what is not finite"):
        asked_of(lambda: goal_task(lambda achieved, desired, info: np.full(achieved.shape[:-2], np.nan)))


def test_tasks_on_the_device_have_no_goals():
    request = Request(SAC(her=True).settled(), (0,), 1, 10, 1)
    with pytest.raises(BisacError, match="classic/pendulum has no goals to replace: --her is for Gymnasium"):
        open_collector("classic/pendulum", (), request)
