"""One door to a task, wherever its environments live: training in it, judging a policy on it, filming one.

Whoever asks here need not know the place; a new kind of place is added here and in a collector of its own. A task that
brings its own collector is trained on in Python; what is found by an id, such as `bisac eval` does, is Gymnasium's.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from bisac.collect.collector import Acts, Collector, Evaluation, Request
from bisac.collect.evaluate import HELD_OUT_STREAM, Drawn, Evaluator, Uniform
from bisac.collect.filming import filmed_episode
from bisac.collect.host import HostCollector
from bisac.envs.task import EnvSource, Task
from bisac.errors import BisacError
from bisac.policies.policy import Policy

RANDOM_EPISODES = 20
"""Episodes over which a random policy's return is measured."""


@runtime_checkable
class CollectorSource(Protocol):
    """A task that brings a collector of its own."""

    def collector(self, request: Request) -> Collector:
        """Return the collector that gathers experience for these runs."""
        ...


Source = EnvSource | CollectorSource
"""What can be trained on: an environment's id, a function that makes a Gymnasium environment, such an environment, or a
task of its own."""


def open_collector(source: Source, env_args: tuple[str, ...], request: Request) -> Collector:
    """Return a collector for the task; close it when the runs are over."""
    if isinstance(source, type) and issubclass(source, CollectorSource):
        raise BisacError(f"{source.__name__} is a class; give one of its instances, such as {source.__name__}().")
    if isinstance(source, CollectorSource):
        if env_args or request.backend != "sync":
            raise BisacError(f"{source_name(source)} takes neither environment arguments nor a backend.")
        if request.eval_env is not None:
            raise BisacError(f"{source_name(source)} is evaluated in by itself: leave eval_env out.")
        return source.collector(request)
    own = own_envs(source)
    if own is not None and request.num_envs != own:
        many = "one environment" if own == 1 else f"{own} environments"
        raise BisacError(
            f"{source_name(source)} is {many}, so num_envs must be {own}, not {request.num_envs}; give a function that "
            f"makes such environments to train in as many as you like."
        )
    if own is not None and request.backend != "sync":
        raise BisacError("an environment that is there already is stepped where it is: leave the backend out.")
    return HostCollector(Task(source, env_args), request)


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
    env: EnvSource,
    env_args: tuple[str, ...],
    episodes: int,
    seed: int,
    deterministic: bool = True,
) -> Evaluation:
    """Evaluate a policy on episodes that no training chose its best policy by."""
    with closing(Evaluator(Task(env, env_args), episodes, seed, HELD_OUT_STREAM)) as evaluator:
        policy.check_fits(evaluator.spec)
        return evaluator(policy if deterministic else Drawn(Policy(policy.spec, policy.algo, policy.actor, seed)))


def random_return(env: EnvSource, env_args: tuple[str, ...]) -> float:
    """Return what the random policy gets on average; always the same number."""
    with closing(Evaluator(Task(env, env_args), RANDOM_EPISODES, seed=0)) as evaluator:
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


def film(policy: Acts, env: EnvSource, env_args: tuple[str, ...], seed: int) -> Film:
    """Return an episode of the deterministic policy as pictures."""
    return Film(*filmed_episode(policy, Task(env, env_args), seed))
