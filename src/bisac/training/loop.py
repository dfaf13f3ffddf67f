"""The off-policy loop: act, step the environments, remember, learn. One compiled call does all but the stepping."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from bisac.replay import Replay
from bisac.types import Metrics, Spec, Transition


class Training(eqx.Module):
    """All of a run that lives on the device: what is learned, remembered and drawn from."""

    algo: PyTree[Array]
    replay: Replay[Transition]
    key: Key[Array, ""]
    metric_sums: Metrics
    """Sums over the updates since the last log row."""
    metric_count: Int[Array, ""]


@dataclass
class Run:
    """All that a run is: the device's part, the environments, and the counters."""

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


def start(algo: OffPolicy[Any], envs: HostEnvs, seed: int) -> Run:
    """A run about to take its first step."""
    width, spec = len(envs.envs), envs.spec
    init_key, run_key = jax.random.split(jax.random.key(seed))
    state, sums = _init(algo, spec, init_key)
    replay = replay_memory.init(algo.replay_size, _example(spec), width)
    training = Training(state, replay, run_key, sums, jnp.zeros((), jnp.int32))
    obs = envs.reset()
    training, action = first_action(algo, training, obs, algo.learning_starts > 0)
    return Run(algo, envs, training, obs, np.asarray(action))


@partial(jax.jit, static_argnames=("algo", "spec"))
def _init(algo: OffPolicy[Any], spec: Spec, key: Key[Array, ""]) -> tuple[PyTree[Array], Metrics]:
    """A fresh state, and the metrics that its updates will report at zero."""
    state = algo.init(spec, key)
    batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (algo.batch_size, *leaf.shape)), _example(spec))
    _, metrics = jax.eval_shape(algo.update, state, batch, key)
    return state, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)


def off_policy_steps(run: Run, steps: int) -> Iterator[list[Episode]]:
    """Train until `steps` environment steps have been taken; yields after each step the episodes that it ended.

    Between two steps `run` is whole: it may be read, saved, or left for good.
    """
    algo, width = run.algo, len(run.envs.envs)
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

    def update(index: Int[Array, ""], carry: tuple[PyTree[Array], Metrics]) -> tuple[PyTree[Array], Metrics]:
        state, sums = carry
        sample_key, update_key = jax.random.split(jax.random.fold_in(learn_key, index))
        batch = replay_memory.sample(memory, sample_key, algo.batch_size)
        state, metrics = algo.update(state, batch, update_key)
        return state, jax.tree.map(jnp.add, sums, metrics)

    state, sums = jax.lax.fori_loop(0, updates, update, (training.algo, training.metric_sums))
    learned = Training(state, memory, key, sums, training.metric_count + updates)
    return _draw_action(algo, learned, obs, random)


@partial(jax.jit, static_argnames="algo", donate_argnames="training")
def first_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """The actions that a run starts with."""
    return _draw_action(algo, training, obs, random)


def _draw_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """Explore: by the policy, or uniformly while `random`."""
    key, policy_key, uniform_key = jax.random.split(training.key, 3)
    by_policy = algo.act(training.algo, jnp.asarray(obs), policy_key, explore=True)
    uniform = jax.random.uniform(uniform_key, by_policy.shape, minval=-1.0, maxval=1.0)
    drawn = jnp.where(random, uniform, by_policy)
    return Training(training.algo, training.replay, key, training.metric_sums, training.metric_count), drawn


def take_metrics(run: Run) -> dict[str, float]:
    """Means over the updates since they were last taken; empty where there was none."""
    sums, count = jax.device_get((run.training.metric_sums, run.training.metric_count))
    zeros = jax.tree.map(jnp.zeros_like, run.training.metric_sums), jnp.zeros((), jnp.int32)
    run.training = eqx.tree_at(lambda t: (t.metric_sums, t.metric_count), run.training, zeros)
    return {name: float(value / count) for name, value in sums.items()} if count else {}


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
