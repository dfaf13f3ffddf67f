"""All that a run is: what lives on the device, the environments, the counters and the record."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import psutil
from jaxtyping import Array, Bool, Int, Key, PyTree

from bisac.collect import replay as replay_memory
from bisac.algos import Algorithm, OffPolicy, OnPolicy, Rollout
from bisac.envs.host.envs import HostEnvs
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.collect.replay import Replay
from bisac.collect.scaling import Scaling
from bisac.storage import leaf_names
from bisac.types import Metrics, Spec, Transition


class DivergedError(BisacError):
    """Training reached numbers that are not finite."""


class Training(eqx.Module):
    """All of a run that lives on the device: what is learned, remembered and drawn from."""

    algo: PyTree[Array]
    normaliser: Scaling
    replay: Replay[Transition] | None
    """None for what learns from fresh rollouts."""
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


class Flat(NamedTuple):
    """A run's Training as a tuple of arrays: taking the tree apart at each step costs as much as a small update."""

    leaves: tuple[Array, ...]
    structure: Any

    @staticmethod
    def of(training: Training) -> "Flat":
        """Taken apart."""
        leaves, structure = jax.tree.flatten(training)
        return Flat(tuple(leaves), structure)


@dataclass
class Run:
    """All that a run is: the device's part, the environments, the counters and the record."""

    algo: Algorithm[Any]
    envs: HostEnvs
    flat: Flat
    """The device's part, as the compiled step takes it and gives it back."""
    obs: np.ndarray
    """What the next action answers, one row an environment."""
    action: np.ndarray
    """The next action, already drawn; for what learns from fresh rollouts, the last one taken."""
    step: int = 0
    """Environment steps taken, summed over environments."""
    updates: int = 0
    stride: int = 1
    """Steps by which the loop last moved on."""
    record: Record = field(default_factory=Record)

    @property
    def training(self) -> Training:
        """The device's part."""
        return jax.tree.unflatten(self.flat.structure, self.flat.leaves)

    @training.setter
    def training(self, training: Training) -> None:
        self.flat = Flat.of(training)


@partial(jax.jit, static_argnames=("algo", "spec", "width"))
def fresh_training(algo: Algorithm[Any], spec: Spec, width: int, key: Key[Array, ""]) -> Training:
    """The device's part of a run that has not begun, for `width` environments."""
    init_key, run_key = jax.random.split(key)
    state = algo.init(spec, init_key)
    if isinstance(algo, OffPolicy):
        replay = replay_memory.init(algo.replay_size, Transition.like(spec), width)
        metrics = jax.eval_shape(algo.update, state, Transition.like(spec, algo.batch_size), init_key)[1]
    else:
        assert isinstance(algo, OnPolicy)
        steps = Transition.like(spec, algo.length(width), width)
        rollout = Rollout(*steps, jnp.zeros(steps.reward.shape, bool))
        replay, metrics = None, jax.eval_shape(algo.update, state, rollout, init_key, jnp.ones(()))[1]
    normaliser = Scaling.init(spec.obs_dim, width, algo.normalise_observations, algo.normalise_rewards)
    sums = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    return Training(state, normaliser, replay, run_key, sums, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def current_policy(run: Run) -> Policy:
    """The present policy. It shares memory with the run: use it before the next step."""
    training = run.training
    return Policy(run.envs.spec, run.algo, training.normaliser.around(run.algo.policy(training.algo)))


def take_metrics(run: Run) -> dict[str, float]:
    """Means over the updates since they were last taken; empty where there was none."""
    training = run.training
    sums, count = jax.device_get((training.metric_sums, training.metric_count))
    zeros = jax.tree.map(jnp.zeros_like, (training.metric_sums, training.metric_count, count))
    run.training = eqx.tree_at(lambda t: (t.metric_sums, t.metric_count, t.sound_count), training, zeros)
    return {name: float(value / count) for name, value in sums.items()} if count else {}


def check_sound(run: Run) -> None:
    """Refuse to go on with losses or parameters that are not finite; names the first that is not."""
    training = run.training
    sums, count, sound = jax.device_get((training.metric_sums, training.metric_count, training.sound_count))
    if bad := next((name for name, value in sums.items() if not np.isfinite(value)), None):
        update = run.updates - int(count) + int(sound) + 1
        step = run.algo.step_of(update, run.envs.count)
        raise DivergedError(f"training diverged: {bad} became {sums[bad]} in update {update:,}, by step {step:,}.")
    names = leaf_names(training.algo)
    if bad := [name for name, finite in zip(names, _finite(training.algo), strict=True) if not finite]:
        raise DivergedError(f"training diverged: {bad[0]} is not finite at step {run.step:,}.")
    if not np.isfinite(run.action).all():
        raise DivergedError(f"training diverged: the policy's action is not finite at step {run.step:,}.")


@jax.jit
def _finite(tree: PyTree[Array]) -> Bool[Array, "leaf"]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)])


def check_memory(algo: Algorithm[Any], spec: Spec) -> None:
    """Refuse a replay memory that the machine cannot hold, before it is allocated."""
    if not isinstance(algo, OffPolicy):
        return
    needed, free = replay_memory.bytes_needed(algo.replay_size, Transition.like(spec)), available_memory()
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
        limit, used, stat = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current", "stat"))
        held = dict(line.split() for line in stat.splitlines())
        cached = int(held["active_file"]) + int(held["inactive_file"])  # of files, which give way
        return [int(limit) - int(used) + cached]
    except (OSError, ValueError, KeyError):  # no such files, or a limit of "max"
        return []
