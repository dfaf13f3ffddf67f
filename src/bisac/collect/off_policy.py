"""Learning from a replay memory, compiled: remember, update, act. Every collector uses these, wherever it steps.

Nothing here knows an environment: transitions come in, actions go out.
"""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from bisac.algos import OffPolicy
from bisac.collect import replay as replay_memory
from bisac.collect.learning import Flat, Learning, tallied
from bisac.collect.sampling import draw_batch
from bisac.types import Metrics, Transition


def updates_due(algo: OffPolicy[Any], step: int, updates: int) -> int:
    """Return how many updates are due after `step` environment steps, of which `updates` have been made."""
    # By whole numbers: 0.29 is 29 updates in 100 steps, and 1/3 is one in three, however floats round.
    ratio = Fraction(algo.utd).limit_denominator(10**9)
    return max(0, (step - algo.learning_starts) * ratio.numerator // ratio.denominator - updates)


def begin_learning(algo: OffPolicy[Any], learning: Learning, newest: Transition | None = None) -> Learning:
    """Let the algorithm see the random steps that it starts from: those remembered, then the newest, if any.

    It must be called once, before the first update.
    """
    assert learning.replay is not None
    held = int(learning.replay.size)
    warm_up: list[Any] = [np.asarray(rows)[:held] for rows in learning.replay.storage]
    if newest is not None:
        warm_up = [np.concatenate(pair) for pair in zip(warm_up, newest, strict=True)]
    return show(algo, learning, Transition(*warm_up))


def show(algo: OffPolicy[Any], learning: Learning, warm_up: Transition) -> Learning:
    """Return what learning holds once the algorithm has seen the steps that it starts from, as it will learn them."""
    scaled = learning.scaling.batch(Transition(*map(jnp.asarray, warm_up)))
    return eqx.tree_at(lambda t: t.agent, learning, jax.jit(algo.begin)(learning.agent, scaled))


def remember(
    algo: OffPolicy[Any], learning: Learning, transition: Transition, ended: Bool[Array | np.ndarray, "env"]
) -> Learning:
    """Remember a transition of each environment."""
    assert learning.replay is not None
    memory = replay_memory.add(learning.replay, transition)
    obs_seen, reward, ends = (jnp.asarray(leaf)[None] for leaf in (transition.obs, transition.reward, ended))
    scaling = learning.scaling.observe(obs_seen, reward, ends, algo.gamma)
    return replace(learning, replay=memory, scaling=scaling)


def learn(
    algo: OffPolicy[Any],
    learning: Learning,
    transition: Transition,
    ended: Bool[Array | np.ndarray, "env"],
    updates: int | Int[Array, ""],
) -> Learning:
    """Remember a transition of each environment, then update so many times from what is remembered."""
    learning = remember(algo, learning, transition, ended)
    memory, scaling = learning.replay, learning.scaling
    assert memory is not None
    key, learn_key = jax.random.split(learning.key)
    num_envs = transition.reward.shape[0]

    def update(index: Int[Array, ""], carry: tuple[PyTree[Array], Metrics, Int[Array, ""]]):
        agent, sums, sound = carry
        sample_key, update_key = jax.random.split(jax.random.fold_in(learn_key, index))
        batch = draw_batch(algo, memory, learning.demos, scaling, sample_key, num_envs)
        agent, metrics = algo.update(agent, batch, update_key)
        return agent, *tallied(sums, sound, metrics)

    carry = learning.agent, learning.metric_sums, learning.sound_count
    agent, sums, sound = jax.lax.fori_loop(0, updates, update, carry)
    return Learning(agent, scaling, memory, key, sums, learning.metric_count + updates, sound, learning.demos)


def draw_action(
    algo: OffPolicy[Any], learning: Learning, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Learning, Float[Array, "env act"]]:
    """Draw the actions that explore: by the policy, or uniformly while `random`."""
    key, policy_key, uniform_key = jax.random.split(learning.key, 3)
    by_policy = algo.act(learning.agent, learning.scaling.obs(jnp.asarray(obs)), policy_key, explore=True)
    uniform = jax.random.uniform(uniform_key, by_policy.shape, minval=-1.0, maxval=1.0)
    drawn = jnp.where(random, uniform, by_policy)
    return eqx.tree_at(lambda t: t.key, learning, key), drawn


@partial(jax.jit, static_argnames=("algo", "structure"), donate_argnames="leaves")
def learn_and_act(
    algo: OffPolicy[Any],
    structure: Any,
    leaves: tuple[Array, ...],
    transition: Transition,
    ended: Bool[Array | np.ndarray, "env"],
    obs: Float[Array | np.ndarray, "env obs"],
    updates: int | Int[Array, ""],
    random: bool | Bool[Array, ""],
) -> tuple[tuple[Array, ...], Float[Array, "env act"]]:
    """Do in one compiled call all that a step needs but the stepping: remember, update, draw the next actions."""
    learned = learn(algo, jax.tree.unflatten(structure, leaves), transition, ended, updates)
    learned, action = draw_action(algo, learned, obs, random)
    return Flat.of(learned).leaves, action


first_action = jax.jit(draw_action, static_argnames="algo", donate_argnames="learning")
"""`draw_action`, compiled, for an observation that no step led to: at the start, or where an environment began anew."""
