"""Which tasks live on the device, by id and by object, and how each is made."""

from typing import Any, NamedTuple, cast

import gymnasium as gym

from bisac.envs.device.brax import BRAX_TASKS, brax_task
from bisac.envs.device.classic import CLASSIC, classic_task
from bisac.envs.device.playground import PLAYGROUND_TASKS, playground_task
from bisac.envs.device.task import DeviceEnv, DeviceTask, as_task
from bisac.envs.task import EnvSource, parse_args
from bisac.errors import BisacError, did_you_mean

Source = EnvSource | DeviceEnv
"""What can be trained on: a task's id, a function that makes a Gymnasium environment, or one of Brax's convention."""


class Family(NamedTuple):
    """Tasks of one kind, as `bisac list` shows them."""

    make: Any
    names: tuple[str, ...]
    """What may follow the prefix in an id."""
    needs: str
    """The extra that must be installed; empty where none must."""
    args: str
    """The names of the arguments."""


FAMILIES = {
    "classic": Family(classic_task, tuple(CLASSIC), "", "g (pendulum), goal_velocity (mountain_car)"),
    "brax": Family(brax_task, BRAX_TASKS, "brax", "backend (generalized, mjx, positional, spring), and Brax's own"),
    "playground": Family(playground_task, PLAYGROUND_TASKS, "playground", "those of the task's configuration"),
}
"""The tasks on the device, by what their ids begin with. All of them take max_episode_steps."""


def is_on_device(task_id: str) -> bool:
    """Return whether an id names a task on the device."""
    return "/" in task_id and task_id.partition("/")[0] in FAMILIES


def device_task(source: Source, env_args: tuple[str, ...]) -> DeviceTask | None:
    """Return a task on the device; None for what is not there. One sentence where it cannot be made."""
    if isinstance(source, str):
        if not is_on_device(source):
            return None
    else:
        kind: Any = source if isinstance(source, type) else type(source)
        if issubclass(kind, gym.Env | gym.vector.VectorEnv) or not issubclass(kind, DeviceEnv):
            return None
        if kind is source:
            raise BisacError(f"{kind.__name__} is a class; give one of its instances, such as {kind.__name__}().")
    kwargs = parse_args(env_args)
    limit = kwargs.pop("max_episode_steps", None)
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise BisacError(f"max_episode_steps must be a whole number above 0, got {limit!r}.")
    if not isinstance(source, str):
        if kwargs:
            raise BisacError(
                f"an environment that was made already takes max_episode_steps and no other argument, got "
                f"{', '.join(kwargs)}."
            )
        return as_task(cast(DeviceEnv, source), type(source).__name__, env_args, limit)
    prefix, _, name = source.partition("/")
    family = FAMILIES[prefix]
    if name not in family.names:
        tasks = [f"{prefix}/{other}" for other in family.names]
        hint = did_you_mean(source, tasks, "; 'bisac list' names them")
        raise BisacError(f"there is no task '{source}'{hint}")
    return family.make(name, source, env_args, kwargs, limit)
