"""Any task with gated actuators, and the two that are registered."""

from dataclasses import fields
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from bisac.envs.host.worker import quieten_mujoco
from bisac.envs.tasks.gate import Gate
from bisac.errors import BisacError

Env = gym.Env[Any, Any]


class Gated(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """A task whose actuators go through a gate.

    It takes commands in [-1, 1] for each dimension; the gate's response -1 is the least action of the task's own box,
    1 the largest, 0 the middle. The whole box is within reach, so the best return is that of the task itself.
    """

    def __init__(self, env: Env, gate: Gate):
        gym.utils.RecordConstructorArgs.__init__(self, gate=gate)
        gym.ActionWrapper.__init__(self, env)
        box = env.action_space
        if not isinstance(box, spaces.Box) or not np.issubdtype(box.dtype, np.floating) or not box.is_bounded():
            raise BisacError(f"only a bounded Box of float actions can be gated, got {box}.")
        self.gate = gate
        self.action_space = spaces.Box(-1.0, 1.0, box.shape, np.float32)
        self._low, self._high, self._type = box.low, box.high, box.dtype
        self._middle, self._reach = box.low / 2.0 + box.high / 2.0, box.high / 2.0 - box.low / 2.0

    def action(self, action: np.ndarray) -> np.ndarray:
        """Return the task's own action that a command brings about."""
        wanted = self._middle + self._reach * self.gate.response(np.asarray(action))
        return np.minimum(np.maximum(wanted.astype(self._type), self._low), self._high)

    def command(self, action: np.ndarray) -> np.ndarray:
        """Return a command that brings about an action of the task's own box."""
        return self.gate.command((action - self._middle) / self._reach).astype(np.float32)


def gated(
    env: Env,
    *,
    centre: float = Gate.centre,
    width: float = Gate.width,
    weak: float = Gate.weak,
    crossed: bool = Gate.crossed,
) -> Gated:
    """Return the task with gated actuators: they answer commands weakly, and fully only in narrow bands.

    Args:
        env: The task; it has a bounded Box of float actions.
        centre: The size of the commands, in [-1, 1], that bring about the least and the largest action.
        width: How far from the centre such a band ends, on either side.
        weak: The largest response elsewhere, as a fraction of the full one.
        crossed: Whether the bands are on the other side: large positive commands give the least action.
    """
    return Gated(env, Gate(centre, width, weak, crossed))


class RegisteredGated(Gated):
    """A gated task that an id of ours stands for."""

    @property
    def spec(self) -> EnvSpec | None:
        """The id's spec, without the wrapper: whoever makes it again calls `gated_task`, and that wraps already."""
        return self.env.spec


def gated_task(task: str, **kwargs: Any) -> Gated:
    """Return a Gymnasium task with gated actuators; `kwargs` are the gate's arguments, and the task's own.

    Returns of bisac/GatedPendulum-v0: random commands -1,227 (1,000 episodes). The best is that of Pendulum-v1: a
    scripted swing-up has -152, without the detents -391 (200 episodes). SAC -590, -600, -400 in three seeds after 8,000
    steps with `--critic-norm none --hidden 64 64 --initial-temperature 0.5 --gamma 0.9 --num-envs 4`, -714 and -453 in
    two after 24,000; -307, -212, -188 after 8,000 with `--hidden 128 128`.

    Returns of bisac/GatedHopper-v0: random commands 29 (1,000 episodes). The best is that of Hopper-v5. SAC 292 after
    40,000 steps with `--hidden 128 128 --env-arg width=0.05`, one seed.
    """
    gate = Gate(**{field.name: kwargs.pop(field.name) for field in fields(Gate) if field.name in kwargs})
    if ".mujoco." in str(gym.spec(task).entry_point):
        quieten_mujoco()
    env = gym.make(task, max_episode_steps=-1, disable_env_checker=True, **kwargs)  # the gated id has both of its own
    return RegisteredGated(env, gate)
