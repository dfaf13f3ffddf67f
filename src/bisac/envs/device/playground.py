"""MuJoCo Playground's tasks of the DeepMind control suite, on MJX."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bisac.envs.device.extras import imported, quietly
from bisac.envs.device.task import DeviceTask, as_task
from bisac.errors import BisacError

PLAYGROUND_TASKS = (
    "AcrobotSwingup", "AcrobotSwingupSparse", "BallInCup", "CartpoleBalance", "CartpoleBalanceSparse",
    "CartpoleSwingup", "CartpoleSwingupSparse", "CheetahRun", "FingerSpin", "FingerTurnEasy", "FingerTurnHard",
    "FishSwim", "HopperHop", "HopperStand", "HumanoidRun", "HumanoidStand", "HumanoidWalk", "PendulumSwingup",
    "PointMass", "ReacherEasy", "ReacherHard", "SwimmerSwimmer6", "WalkerRun", "WalkerStand", "WalkerWalk",
)  # fmt: skip


def playground_task(
    name: str, task_id: str, env_args: tuple[str, ...], kwargs: dict[str, Any], limit: int | None
) -> DeviceTask:
    """Return one of Playground's tasks; the arguments change its configuration. One sentence where it cannot be."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # its renderer would draw a bar for each of our few pictures
    suite = imported("mujoco_playground", "playground").dm_control_suite
    try:
        config = quietly(lambda: suite.get_default_config(name))
        if "impl" in config and "impl" not in kwargs:
            config.impl = "jax"  # the other one is for NVIDIA's GPUs alone
        env = quietly(lambda: suite.load(name, config=config, config_overrides=kwargs or None))
    except Exception as error:  # models that are fetched from elsewhere, arguments that it does not take
        told = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise BisacError(f"{task_id} cannot be made: {told}.") from error

    def pictures(states: Sequence[Any]) -> Iterator[np.ndarray]:
        yield from env.render(list(states), height=480, width=640)

    steps = limit or int(config.episode_length)
    return quietly(lambda: as_task(env, task_id, env_args, steps, rate=round(1 / float(env.dt)), pictures=pictures))
