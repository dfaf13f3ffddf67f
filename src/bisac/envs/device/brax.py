"""Brax's own tasks: those of the paper, on any of Brax's backends of physics."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bisac.envs.device.extras import imported, quietly
from bisac.envs.device.task import DeviceTask, as_task
from bisac.errors import BisacError

BRAX_TASKS = (
    "ant", "halfcheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum", "inverted_pendulum",
    "pusher", "reacher", "swimmer", "walker2d",
)  # fmt: skip
BACKENDS = ("generalized", "mjx", "positional", "spring")
EPISODE = 1000
"""Steps after which Brax's own trainers cut an episode off."""


def brax_task(
    name: str, task_id: str, env_args: tuple[str, ...], kwargs: dict[str, Any], limit: int | None
) -> DeviceTask:
    """Return one of Brax's tasks made with these arguments; one sentence where Brax cannot make it."""
    envs, image = imported("brax.envs", "brax"), imported("brax.io.image", "brax")
    if (backend := kwargs.get("backend", BACKENDS[0])) not in BACKENDS:
        raise BisacError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    try:
        env = quietly(lambda: envs.get_environment(name, **{"backend": BACKENDS[0]} | kwargs))
        quietly(lambda: env.reset)
    except Exception as error:  # whatever Brax makes of arguments that it does not take
        told = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        made_with = f" with {', '.join(env_args)}" if env_args else ""
        raise BisacError(f"{task_id} cannot be made{made_with}: {told}.") from error

    def pictures(states: Sequence[Any]) -> Iterator[np.ndarray]:
        yield from image.render_array(env.sys, [state.pipeline_state for state in states], height=480, width=640)

    return quietly(
        lambda: as_task(env, task_id, env_args, limit or EPISODE, rate=round(1 / float(env.dt)), pictures=pictures)
    )
