"""Goal tasks: where in a flat observation the goals stand, and what the task itself says of a goal that was reached.

A goal task observes a dictionary of `observation`, `achieved_goal` and `desired_goal`, and has a method
`compute_reward(achieved_goal, desired_goal, info)`, as gymnasium-robotics has settled it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from bisac.envs.task import Env, Task
from bisac.errors import BisacError
from bisac.layout import places_of

PARTS = ("observation", "achieved_goal", "desired_goal")
"""What a goal task observes; it may observe more."""

PROBES = 3
"""Pairs of goals by which it is found out whether a function takes many at once."""


class GoalPlaces(NamedTuple):
    """Where the goals begin in a flat observation, and how many numbers each has."""

    achieved: int
    desired: int
    size: int


class Goals:
    """What a goal task would have said, had other goals been wanted.

    It asks an environment of this process, wherever those are that are trained in: one made for this, and never
    stepped; or where there is one alone, that one.
    """

    def __init__(self, task: Task):
        if isinstance(task.source, VectorEnv):
            raise BisacError(
                "--her asks one environment for its compute_reward, and a vector environment has several; give a "
                "function that makes one, and num_envs."
            )
        self._env = task.make()
        try:
            self._name = task.name(self._env)
            self.places, self._space = _goals_of(self._env, task.spec(self._env).layout, self._name)
            if not self._env.has_wrapper_attr("compute_reward"):
                raise BisacError(
                    f"--her needs the method compute_reward(achieved_goal, desired_goal, info), and {self._name} has "
                    f"none."
                )
            if not task.is_single:
                self._env.reset(seed=0)  # some can say nothing before
            self._reward = self._asked("compute_reward")
            has_end = self._env.has_wrapper_attr("compute_terminated")
            self._terminated = self._asked("compute_terminated") if has_end else None
        except BaseException:
            self._env.close()
            raise

    def judge(self, achieved: np.ndarray, desired: np.ndarray, discount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rewards and discounts of steps that reached these goals where those were desired, along leading axes.

        What terminated stays terminated. Where the task has a method compute_terminated, so does what that calls so.
        """
        shape = discount.shape
        pairs = [
            np.asarray(goals).reshape(-1, *self._space.shape).astype(self._space.dtype) for goals in (achieved, desired)
        ]
        reward = self._reward(*pairs).astype(np.float32).reshape(shape)
        if not np.isfinite(reward).all():
            raise BisacError(f"compute_reward of {self._name} gave what is not finite; it must be mended.")
        if self._terminated is not None:
            discount = np.where(self._terminated(*pairs).astype(bool).reshape(shape), np.float32(0.0), discount)
        return reward, discount

    def close(self) -> None:
        """Close the environment that was made for this."""
        self._env.close()

    def _asked(self, name: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return one of the task's functions, for two batches of goals: asked at once if it can be, else row by row."""
        function = self._env.get_wrapper_attr(name)

        def at_once(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
            return np.asarray(function(achieved, desired, {}))

        def by_row(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
            return np.array([np.asarray(function(*pair, {})).item() for pair in zip(achieved, desired, strict=True)])

        probes = _probes(self._space)
        try:
            expected = by_row(*probes).astype(np.float64)
        except Exception as error:  # whatever a stranger's function raises
            raise BisacError(
                f"--her: {name} of {self._name} does not answer goals with a number: {type(error).__name__}: {error}."
            ) from error
        try:
            answers = at_once(*probes)
        except Exception:  # it takes no batches, and says so
            return by_row
        takes_batches = answers.shape == expected.shape and np.allclose(answers.astype(np.float64), expected)
        return at_once if takes_batches else by_row


def _goals_of(env: Env, layout: Any, name: str) -> tuple[GoalPlaces, spaces.Box]:
    """Return where the goals stand and what space they are of; refuse a task that has none."""
    places = {} if layout is None else places_of(layout)
    if not set(PARTS) <= set(places):
        raise BisacError(
            f"--her is for goal tasks, whose observations are a dictionary of {', '.join(PARTS[:-1])} and {PARTS[-1]}; "
            f"{name} is none."
        )
    assert isinstance(env, gym.wrappers.FlattenObservation)
    parts = env.env.observation_space
    assert isinstance(parts, spaces.Dict)
    (achieved, size), (desired, _) = (places[part] for part in PARTS[1:])
    space, wanted = parts["achieved_goal"], parts["desired_goal"]
    if not isinstance(space, spaces.Box) or not isinstance(wanted, spaces.Box) or space.shape != wanted.shape:
        raise BisacError(
            f"--her needs goals that are a Box each, of one shape; those of {name} are {space} and {wanted}."
        )
    return GoalPlaces(achieved, desired, size), space


def _probes(space: spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of goals, of which one is reached."""
    drawn = np.random.default_rng(0).normal(size=(2, PROBES, *space.shape))
    drawn[1, 0] = drawn[0, 0]
    achieved, desired = np.clip(drawn, space.low, space.high).astype(space.dtype)
    return achieved, desired
