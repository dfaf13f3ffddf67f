"""Classic tasks on the device, so that it can be tried without any simulator; Gymnasium draws their states."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from bisac.envs.device.classic.mountain_car import CarState, MountainCar
from bisac.envs.device.classic.pendulum import Pendulum, PendulumState
from bisac.envs.device.task import DeviceTask, as_task
from bisac.errors import BisacError


class Classic(NamedTuple):
    """A classic task, and its twin in Gymnasium."""

    make: Callable[..., Any]
    twin: str
    state_of: Callable[[Any], np.ndarray]
    """A state of ours as the twin has it."""
    args: str
    """The names of its arguments."""


def _pendulum_state(state: PendulumState) -> np.ndarray:
    return np.array([state.angle, state.speed], np.float64)


def _car_state(state: CarState) -> np.ndarray:
    return np.asarray(state.obs)


CLASSIC = {
    "pendulum": Classic(Pendulum, "Pendulum-v1", _pendulum_state, "g"),
    "mountain_car": Classic(MountainCar, "MountainCarContinuous-v0", _car_state, "goal_velocity"),
}
"""The classic tasks, by what follows classic/ in their ids."""


def classic_task(
    name: str, task_id: str, env_args: tuple[str, ...], kwargs: dict[str, Any], limit: int | None
) -> DeviceTask:
    """Return a classic task made with these arguments."""
    kind = CLASSIC[name]
    for key, value in kwargs.items():
        if key != kind.args or isinstance(value, bool) or not isinstance(value, int | float):
            raise BisacError(
                f"{task_id} cannot be made with {key}={value}; it takes {kind.args} and max_episode_steps, numbers."
            )

    def pictures(states: Sequence[Any]) -> Iterator[np.ndarray]:
        with closing(gym.make(kind.twin, render_mode="rgb_array")) as twin:
            twin.reset(seed=0)
            for state in states:
                twin.unwrapped.state = kind.state_of(state)  # pyright: ignore[reportAttributeAccessIssue]
                yield np.asarray(twin.render())

    return as_task(kind.make(**kwargs), task_id, env_args, limit, pictures=pictures)
