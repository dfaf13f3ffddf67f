"""One door to a task, wherever its environments live: training in it, judging a policy on it, filming one.

Whoever asks here need not know the place; a new kind of place is added here and in a collector of its own.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import gymnasium as gym
import numpy as np

from bisac.algos import OffPolicy
from bisac.collect.collector import Collector, Evaluation, Request
from bisac.collect.device import DeviceCollector
from bisac.collect.evaluate import HELD_OUT_STREAM, MOST_EPISODES, Evaluator, Exploring, Uniform
from bisac.collect.filming import filmed_episode
from bisac.collect.host import HostCollector
from bisac.collect.playing import filmed, play
from bisac.envs.device.sources import Source, device_task
from bisac.envs.task import EnvSource, Task
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.types import Spec

RANDOM_EPISODES = 20
"""Episodes over which a random policy's return is measured."""


def open_collector(source: Source, env_args: tuple[str, ...], request: Request) -> Collector:
    """Return a collector for the task; close it when the runs are over."""
    if (task := device_task(source, env_args)) is not None:
        if request.backend != "sync":
            raise BisacError(f"{task.spec.env_id} is stepped on the device; leave out --backend {request.backend}.")
        if request.eval_env is not None:
            raise BisacError(f"{task.spec.env_id} is evaluated on the device, in itself: leave eval_env out.")
        if request.demos is not None:
            raise BisacError(f"{task.spec.env_id} takes no demonstrations: they are for Gymnasium environments.")
        if isinstance(request.algo, OffPolicy) and request.algo.her:
            raise BisacError(f"{task.spec.env_id} has no goals to replace: --her is for Gymnasium environments.")
        return DeviceCollector(task, request)
    own = own_envs(source)
    if own is not None and request.num_envs != own:
        many = "one environment" if own == 1 else f"{own} environments"
        raise BisacError(
            f"{source_name(source)} is {many}, so num_envs must be {own}, not {request.num_envs}; give a function that "
            f"makes such environments to train in as many as you like."
        )
    if own is not None and request.backend != "sync":
        raise BisacError("an environment that is there already is stepped where it is: leave the backend out.")
    return HostCollector(host_task(source, env_args), request)


def host_task(source: Source, env_args: tuple[str, ...]) -> Task:
    """Return a task of Gymnasium's, which everything is that is not on the device."""
    return Task(cast(EnvSource, source), env_args)


def spec_of(source: Source, env_args: tuple[str, ...]) -> Spec:
    """Return sizes and action bounds of a task; one sentence where it cannot be made."""
    if (on_device := device_task(source, env_args)) is not None:
        return on_device.spec
    task = host_task(source, env_args)
    with closing(task.make()) as env:
        return task.spec(env)


def own_envs(source: Source) -> int | None:
    """Return how many environments a source is by itself; None where as many are made as are wanted."""
    if isinstance(source, gym.vector.VectorEnv):
        return source.num_envs
    return 1 if isinstance(source, gym.Env) else None


def source_name(source: Source) -> str:
    """Return what a record calls a source: the id, or where the function or class that makes the task is defined."""
    if isinstance(source, str):
        return source
    if isinstance(source, gym.Env | gym.vector.VectorEnv):
        kind = type(source.unwrapped)
        return f"an environment of {kind.__module__}:{kind.__qualname__}"
    whole: Any = source.func if isinstance(source, partial) else source
    named = whole if hasattr(whole, "__qualname__") else type(whole)
    line = f", line {whole.__code__.co_firstlineno}" if named.__qualname__.endswith("<lambda>") else ""
    return f"{named.__module__}:{named.__qualname__}{line}"


def judge(
    policy: Policy,
    env: Source,
    env_args: tuple[str, ...],
    episodes: int,
    seed: int,
    deterministic: bool = True,
) -> Evaluation:
    """Evaluate a policy on episodes that no training chose its best policy by."""
    if episodes > MOST_EPISODES:
        raise BisacError(f"an evaluation has {MOST_EPISODES:,} episodes at most; ask for fewer.")
    if (task := device_task(env, env_args)) is not None:
        policy.check_fits(task.spec)
        return play(task, policy, episodes, seed, HELD_OUT_STREAM, deterministic)
    with closing(Evaluator(host_task(env, env_args), episodes, seed, HELD_OUT_STREAM)) as evaluator:
        policy.check_fits(evaluator.spec)
        return evaluator(policy if deterministic else Exploring(Policy(policy.spec, policy.algo, policy.actor, seed)))


def random_return(env: Source, env_args: tuple[str, ...]) -> float:
    """Return what the random policy gets on average; always the same number."""
    if (task := device_task(env, env_args)) is not None:
        return float(play(task, None, RANDOM_EPISODES, seed=0).returns.mean())
    with closing(Evaluator(host_task(env, env_args), RANDOM_EPISODES, seed=0)) as evaluator:
        return float(evaluator(Uniform(evaluator.spec)).returns.mean())


@dataclass(frozen=True)
class Film:
    """An episode to be shown."""

    name: str
    """The environment's id."""
    rate: int
    """Frames a second."""
    frames: Iterator[np.ndarray]
    """Its pictures, one a step, drawn as they are asked for."""


def film(policy: Policy, env: Source, env_args: tuple[str, ...], seed: int) -> Film:
    """Return an episode of the deterministic policy as pictures."""
    if (task := device_task(env, env_args)) is not None:
        return Film(task.spec.env_id, task.rate, filmed(task, policy, seed))
    return Film(*filmed_episode(policy, host_task(env, env_args), seed))
