"""What learning holds between two steps: the agent, what it remembers, and metrics that were not yet told.

All of it is arrays on the device. This module knows algorithms, and neither environments nor files.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, PyTree

from bisac.algos import Algorithm, OffPolicy, OnPolicy, Rollout
from bisac.collect import replay as replay_memory
from bisac.collect.episodes import Episodes, find_episodes
from bisac.collect.replay import Replay
from bisac.collect.scaling import Scaling
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.storage import leaf_names
from bisac.types import Metrics, Spec, Transition


class DivergedError(BisacError):
    """Training reached numbers that are not finite."""


class Learning(eqx.Module):
    """What is learned, remembered and drawn from."""

    agent: PyTree[Array]
    """The state that the algorithm learns."""
    scaling: Scaling
    replay: Replay[Transition] | None
    """The replay memory; None for algorithms that learn from fresh rollouts."""
    key: Key[Array, ""]
    metric_sums: Metrics
    """The sum of each metric over the updates since the last row of the log."""
    metric_count: Int[Array, ""]
    """The number of these updates."""
    sound_count: Int[Array, ""]
    """The number of them until the first whose metrics were not finite."""
    demos: Replay[Transition] | None = None
    """What somebody else gathered, to learn from too; None where nothing is given."""
    episodes: Episodes | None = None
    """Which rows of the memories are of one episode; None where nobody asks."""


class Flat(NamedTuple):
    """A `Learning` as a tuple of arrays: taking the tree apart at each step costs as much as a small update."""

    leaves: tuple[Array, ...]
    structure: Any

    @staticmethod
    def of(learning: Learning) -> "Flat":
        """Take a `Learning` apart."""
        leaves, structure = jax.tree.flatten(learning)
        return Flat(tuple(leaves), structure)

    @property
    def whole(self) -> Learning:
        """The `Learning`, put together again."""
        return jax.tree.unflatten(self.structure, self.leaves)


@partial(jax.jit, static_argnames=("algo", "spec", "num_envs"))
def fresh_learning(algo: Algorithm[Any], spec: Spec, num_envs: int, key: Key[Array, ""]) -> Learning:
    """Return what learning holds before the first step of a run in `num_envs` environments."""
    init_key, run_key = jax.random.split(key)
    agent = algo.init(spec, init_key)
    if isinstance(algo, OffPolicy):
        replay = replay_memory.init(algo.replay_size, Transition.like(spec), num_envs)
        metrics = jax.eval_shape(algo.update, agent, Transition.like(spec, algo.batch_size), init_key)[1]
    else:
        assert isinstance(algo, OnPolicy)
        steps = Transition.like(spec, algo.length(num_envs), num_envs)
        rollout = Rollout(*steps, jnp.zeros(steps.reward.shape, bool))
        replay, metrics = None, jax.eval_shape(algo.update, agent, rollout, init_key, jnp.ones(()))[1]
    if bad := [name for name, value in metrics.items() if value.shape]:
        raise ValueError(
            f"metrics are scalars, and {bad[0]} of {type(algo).__name__} has shape {metrics[bad[0]].shape}"
        )
    scaling = Scaling.init(spec.obs_dim, num_envs, algo.normalise_observations, algo.normalise_rewards)
    sums = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    return Learning(agent, scaling, replay, run_key, sums, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def with_demos(learning: Learning, demos: Transition | None) -> Learning:
    """Return the same with somebody else's transitions to learn from too, if there are any."""
    if demos is None:
        return learning
    held = replay_memory.full_of(demos)
    return eqx.tree_at(lambda t: t.demos, learning, held, is_leaf=lambda node: node is None)


def with_episodes(learning: Learning, num_envs: int) -> Learning:
    """Return the same with the episodes of its memories, of which its own was filled by so many environments."""
    assert learning.replay is not None
    found = find_episodes(learning.replay, learning.demos, num_envs)
    return eqx.tree_at(lambda t: t.episodes, learning, found, is_leaf=lambda node: node is None)


def learning_shapes(algo: Algorithm[Any], spec: Spec, num_envs: int) -> Learning:
    """Return shapes and dtypes of what `fresh_learning` returns."""
    return jax.eval_shape(lambda key: fresh_learning(algo, spec, num_envs, key), jax.random.key(0))


def current_policy(algo: Algorithm[Any], spec: Spec, learning: Learning, step: int | None = None) -> Policy:
    """Return the policy that the agent has come to by this step.

    It shares memory with `learning`: use it before the next step.
    """
    return Policy(spec, algo, learning.scaling.around(algo.policy(learning.agent)), step=step)


def tallied(sums: Metrics, sound: Int[Array, ""], metrics: Metrics) -> tuple[Metrics, Int[Array, ""]]:
    """Return the sums with one more update's metrics, and the count of sound updates: those finite until now."""
    sums = jax.tree.map(jnp.add, sums, metrics)
    finite = jnp.array([jnp.isfinite(total) for total in sums.values()], bool)
    return sums, sound + finite.all().astype(jnp.int32)


def mean_metrics(learning: Learning) -> dict[str, float]:
    """Return each metric's mean over the updates since the tally began; nothing where there was none."""
    sums, count = jax.device_get((learning.metric_sums, learning.metric_count))
    return {name: float(value / count) for name, value in sums.items()} if count else {}


def with_new_tally(learning: Learning) -> Learning:
    """Return the same with the sums and counts of metrics at zero."""
    tally = (learning.metric_sums, learning.metric_count, learning.sound_count)
    zeros = jax.tree.map(jnp.zeros_like, tally)
    return eqx.tree_at(lambda t: (t.metric_sums, t.metric_count, t.sound_count), learning, zeros)


def check_sound(algo: Algorithm[Any], learning: Learning, step: int, updates: int, num_envs: int) -> None:
    """Refuse to go on with losses or parameters that are not finite; the error names the first that is not."""
    sums, count, sound = jax.device_get((learning.metric_sums, learning.metric_count, learning.sound_count))
    if bad := next((name for name, value in sums.items() if not np.isfinite(value)), None):
        update = updates - int(count) + int(sound) + 1
        late = isinstance(algo, OffPolicy) and algo.learn_at == "episode"  # later than it was due
        by = step if late else algo.step_of(update, num_envs)
        raise DivergedError(f"training diverged: {bad} became {sums[bad]} in update {update:,}, by step {by:,}.")
    names = leaf_names(learning.agent)
    if bad := [name for name, finite in zip(names, _finite(learning.agent), strict=True) if not finite]:
        raise DivergedError(f"training diverged: {bad[0]} is not finite at step {step:,}.")


@jax.jit
def _finite(tree: PyTree[Array]) -> Bool[Array, "leaf"]:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)])
