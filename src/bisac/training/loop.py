"""The off-policy loop: act, step the environments, remember, learn. One compiled call does all but the stepping."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import psutil
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bisac import replay as replay_memory
from bisac.algos import OffPolicy
from bisac.envs.host import Episode, HostEnvs
from bisac.errors import BisacError
from bisac.policy import Policy
from bisac.replay import Replay
from bisac.storage import leaf_names
from bisac.types import Metrics, Spec, Transition


class DivergedError(BisacError):
    """Training reached numbers that are not finite."""


class Training(eqx.Module):
    """All of a run that lives on the device: what is learned, remembered and drawn from."""

    algo: PyTree[Array]
    replay: Replay[Transition]
    key: Key[Array, ""]
    metric_sums: Metrics
    """Sums over the updates since the last log row."""
    metric_count: Int[Array, ""]
    """Those updates."""
    sound_count: Int[Array, ""]
    """Those of them until the first whose metrics were not finite."""


@dataclass
class Record:
    """What a run has told so far, and what it gathers for the next row of its log."""

    progress: str = ""
    """The content of progress.csv."""
    seconds: float = 0.0
    """Time spent training, however often it was interrupted."""
    best_return: float | None = None
    best_policy: bytes = b""
    """The content of the policy file that gave the best evaluation."""
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """Of the episodes that ended since the last row."""
    inexact_resumes: int = 0
    """How often an environment did not come back as it was."""


@dataclass
class Run:
    """All that a run is: the device's part, the environments, the counters and the record."""

    algo: OffPolicy[Any]
    envs: HostEnvs
    training: Training
    obs: np.ndarray
    """What the next action answers, one row an environment."""
    action: np.ndarray
    """The next action, already drawn."""
    step: int = 0
    """Environment steps taken, summed over environments."""
    updates: int = 0
    record: Record = field(default_factory=Record)


def start(algo: OffPolicy[Any], envs: HostEnvs, seed: int) -> Run:
    """A run about to take its first step."""
    training = fresh_training(algo, envs.spec, envs.count, jax.random.key(seed))
    obs = envs.reset()
    training, action = draw_action(algo, training, obs, algo.learning_starts > 0)
    return Run(algo, envs, training, obs, np.asarray(action))


@partial(jax.jit, static_argnames=("algo", "spec", "width"))
def fresh_training(algo: OffPolicy[Any], spec: Spec, width: int, key: Key[Array, ""]) -> Training:
    """The device's part of a run that has not begun, for `width` environments."""
    init_key, run_key = jax.random.split(key)
    state = algo.init(spec, init_key)
    batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (algo.batch_size, *leaf.shape)), _example(spec))
    _, metrics = jax.eval_shape(algo.update, state, batch, init_key)
    sums = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    replay = replay_memory.init(algo.replay_size, _example(spec), width)
    return Training(state, replay, run_key, sums, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def off_policy_steps(run: Run, steps: int) -> Iterator[list[Episode]]:
    """Train until `steps` environment steps have been taken; yields after each step the episodes that it ended.

    Between two steps `run` is whole: it may be read, saved, or left for good.
    """
    algo, width = run.algo, run.envs.count
    while run.step < steps:
        result = run.envs.step(run.action)
        discount = 1.0 - result.terminated.astype(np.float32)
        # The compiled call takes the host's arrays as they are: moving each by itself would cost more than the step.
        experience: tuple[Any, ...] = (run.obs, run.action, result.reward, discount, result.next_obs)
        run.step += width
        due = max(0, int((run.step - algo.learning_starts) * algo.utd) - run.updates)
        random = run.step < algo.learning_starts
        run.training, action = learn_and_act(algo, run.training, Transition(*experience), result.obs, due, random)
        run.updates += due
        run.obs, run.action = result.obs, np.asarray(action)
        yield result.finished


@partial(jax.jit, static_argnames="algo", donate_argnames="training")
def learn_and_act(
    algo: OffPolicy[Any],
    training: Training,
    transition: Transition,
    obs: Float[Array | np.ndarray, "env obs"],
    updates: int | Int[Array, ""],
    random: bool | Bool[Array, ""],
) -> tuple[Training, Float[Array, "env act"]]:
    """Remember a transition of each environment, update so many times, and draw the next actions."""
    memory = replay_memory.add(training.replay, transition)
    key, learn_key = jax.random.split(training.key)

    def update(index: Int[Array, ""], carry: tuple[PyTree[Array], Metrics, Int[Array, ""]]):
        state, sums, sound = carry
        sample_key, update_key = jax.random.split(jax.random.fold_in(learn_key, index))
        batch = replay_memory.sample(memory, sample_key, algo.batch_size)
        state, metrics = algo.update(state, batch, update_key)
        sums = jax.tree.map(jnp.add, sums, metrics)
        return state, sums, sound + jnp.isfinite(jnp.stack(list(sums.values()))).all().astype(jnp.int32)

    carry = training.algo, training.metric_sums, training.sound_count
    state, sums, sound = jax.lax.fori_loop(0, updates, update, carry)
    learned = Training(state, memory, key, sums, training.metric_count + updates, sound)
    return _draw_action(algo, learned, obs, random)


@partial(jax.jit, static_argnames="algo", donate_argnames="training")
def draw_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """Actions for observations that no step led to: at the start, or where an environment had to begin anew."""
    return _draw_action(algo, training, obs, random)


def _draw_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """Explore: by the policy, or uniformly while `random`."""
    key, policy_key, uniform_key = jax.random.split(training.key, 3)
    by_policy = algo.act(training.algo, jnp.asarray(obs), policy_key, explore=True)
    uniform = jax.random.uniform(uniform_key, by_policy.shape, minval=-1.0, maxval=1.0)
    drawn = jnp.where(random, uniform, by_policy)
    return eqx.tree_at(lambda t: t.key, training, key), drawn


def current_policy(run: Run) -> Policy:
    """The present policy. It shares memory with the run: use it before the next step."""
    return Policy(run.envs.spec, run.algo, run.algo.actor(run.training.algo))


def take_metrics(run: Run) -> dict[str, float]:
    """Means over the updates since they were last taken; empty where there was none."""
    sums, count = jax.device_get((run.training.metric_sums, run.training.metric_count))
    zeros = jax.tree.map(jnp.zeros_like, (run.training.metric_sums, run.training.metric_count, count))
    run.training = eqx.tree_at(lambda t: (t.metric_sums, t.metric_count, t.sound_count), run.training, zeros)
    return {name: float(value / count) for name, value in sums.items()} if count else {}


def check_sound(run: Run) -> None:
    """Refuse to go on with losses or parameters that are not finite; names the first that is not."""
    sums, count, sound = jax.device_get((run.training.metric_sums, run.training.metric_count, run.training.sound_count))
    if bad := next((name for name, value in sums.items() if not np.isfinite(value)), None):
        update = run.updates - int(count) + int(sound) + 1
        raise DivergedError(
            f"training diverged: {bad} became {sums[bad]} in update {update:,}, by step {_step_of(run, update):,}."
        )
    names = leaf_names(run.training.algo)
    if bad := [name for name, finite in zip(names, _finite(run.training.algo), strict=True) if not finite]:
        raise DivergedError(f"training diverged: {bad[0]} is not finite at step {run.step:,}.")
    if not np.isfinite(run.action).all():
        raise DivergedError(f"training diverged: the policy's action is not finite at step {run.step:,}.")


def _step_of(run: Run, update: int) -> int:
    """The environment step at which an update was due."""
    width = run.envs.count
    return math.ceil((run.algo.learning_starts + update / run.algo.utd) / width) * width


@jax.jit
def _finite(tree: PyTree[Array]) -> Bool[Array, "leaf"]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)])


def check_memory(algo: OffPolicy[Any], spec: Spec, num_envs: int) -> None:
    """Refuse a replay memory that the machine cannot hold, or that cannot hold a step, before it is allocated."""
    if algo.replay_size < num_envs:
        raise BisacError(f"--replay-size must be at least the number of environments, {num_envs}.")
    needed, free = replay_memory.bytes_needed(algo.replay_size, _example(spec)), available_memory()
    if needed > free:
        raise BisacError(
            f"a replay memory of {algo.replay_size:,} transitions of {spec.env_id} takes {needed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free; choose a smaller --replay-size."
        )


def available_memory() -> int:
    """Bytes that can still be allocated where JAX puts its arrays."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return min([psutil.virtual_memory().available, *_container_limit()])


def _container_limit() -> list[int]:
    """What a container's limit leaves, where there is one (Linux, cgroup v2)."""
    try:
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text().strip() for name in ("max", "current"))
        return [int(limit) - int(used)]
    except (OSError, ValueError):  # no such files, or a limit of "max"
        return []


def _example(spec: Spec) -> Transition:
    obs, action, scalar = jnp.zeros(spec.obs_dim), jnp.zeros(spec.action_dim), jnp.zeros(())
    return Transition(obs, action, scalar, scalar, obs)
