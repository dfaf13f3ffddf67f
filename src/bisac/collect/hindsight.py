"""Hindsight Experience Replay (Andrychowicz et al., 2017): learning as if what was reached had been wanted.

In most of each batch the goal is replaced by one that the same episode achieved later, the strategy `future`, and the
task's own compute_reward says what the step is worth then. That is Python of the environment's, so an update takes two
compiled calls, one that draws steps and one that learns from them, and an answer in between. A callback out of a single
compiled call would be shorter, but what it raises would leave nothing to save.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from bisac.algos import OffPolicy
from bisac.collect import replay as replay_memory
from bisac.collect.episodes import steps_left, with_newest
from bisac.collect.learning import Flat, Learning, tallied
from bisac.collect.off_policy import draw_action, remember, show
from bisac.collect.replay import Replay
from bisac.collect.sampling import follows, summed_up
from bisac.envs.goals import GoalPlaces, Goals
from bisac.types import Transition

REPLACED = 4 / 5
"""The share of each batch whose goals are replaced: four for one that stays, as published."""


class Drawn(NamedTuple):
    """The steps that an update learns from, along two axes."""

    steps: Transition
    following: Bool[Array, "step batch"]
    """Which of them follow the one before."""
    replaced: Bool[Array, "step batch"]
    """In which of them the goal is another than it was."""


def begin_in_hindsight(goals: Goals, algo: OffPolicy[Any], learning: Learning, newest: Transition) -> Learning:
    """Let the algorithm see the random steps that it starts from, as `begin_learning` does, but as it will learn them.

    The rewards of random steps alone tell nothing of those to come: they are all alike, or all but a lucky one.
    """
    drawn = _judged(goals, algo, Flat.of(learning), 0, len(newest.reward))
    return show(algo, learning, jax.tree.map(lambda leaf: leaf[0], drawn.steps))


def learn_in_hindsight(
    goals: Goals,
    algo: OffPolicy[Any],
    structure: Any,
    leaves: tuple[Array, ...],
    transition: Transition,
    ended: Bool[np.ndarray, "env"],
    obs: Float[np.ndarray, "env obs"],
    updates: int,
    random: bool,
) -> tuple[tuple[Array, ...], Float[Array, "env act"]]:
    """Do all that a step needs but the stepping, as `learn_and_act` does: update, remember, draw the next actions.

    The updates learn from what was remembered before this step: until all that they need has been answered, nothing is
    changed, so that an environment that fails there leaves a run that can be saved.
    """
    before, num_envs = Flat(leaves, structure), len(transition.reward)
    drawn = [_judged(goals, algo, before, index, num_envs) for index in range(updates)]
    for index, each in enumerate(drawn):
        leaves = _update(algo, structure, leaves, index, each)
    return _remember_and_act(algo, structure, leaves, transition, ended, obs, random)


def _judged(goals: Goals, algo: OffPolicy[Any], flat: Flat, index: int, num_envs: int) -> Drawn:
    """Return what the update of that index learns from, with what the task says of the goals that were replaced."""
    drawn = _draw(algo, goals.places, num_envs, flat.structure, flat.leaves, index)
    steps, places, there = drawn.steps, goals.places, np.asarray(drawn.replaced)
    after, reward, discount = (np.array(leaf) for leaf in (steps.next_obs, steps.reward, steps.discount))
    achieved, desired = (after[there, begin : begin + places.size] for begin in (places.achieved, places.desired))
    reward[there], discount[there] = goals.judge(achieved, desired, discount[there])
    return drawn._replace(steps=steps._replace(reward=reward, discount=discount))


@partial(jax.jit, static_argnames=("algo", "places", "num_envs", "structure"))
def _draw(
    algo: OffPolicy[Any],
    places: GoalPlaces,
    num_envs: int,
    structure: Any,
    leaves: tuple[Array, ...],
    index: int | Int[Array, ""],
) -> Drawn:
    """Draw the steps of an update from memory, and from the demonstrations if there are any, and replace goals."""
    learning: Learning = jax.tree.unflatten(structure, leaves)
    key = _keys(learning, index)[0]
    assert learning.replay is not None
    assert learning.episodes is not None
    shown = 0 if learning.demos is None else round(algo.demo_fraction * algo.batch_size)
    memories = [(learning.replay, learning.episodes.own, num_envs, algo.batch_size - shown)]
    if learning.demos is not None and learning.episodes.demos is not None:
        memories.append((learning.demos, learning.episodes.demos, 1, shown))
    parts: list[Drawn] = []
    for memory, numbers, block, count in memories:
        key, index_key, later_key = jax.random.split(key, 3)
        rows, share = jax.random.randint(index_key, (count,), 0, memory.size), round(REPLACED * count)
        steps, held = replay_memory.runs_from(memory, rows, algo.n_step, block)
        goal = _later_goals(places, memory, numbers, rows[:share], later_key, block)
        replaced = jnp.broadcast_to(jnp.arange(count) < share, held.shape)
        parts.append(Drawn(_wanting(places, steps, goal), held & follows(steps), replaced))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), *parts)


def _later_goals(
    places: GoalPlaces,
    memory: Replay[Transition],
    numbers: Int[Array, "row"],
    index: Int[Array, "share"],
    key: Key[Array, ""],
    block: int,
) -> Float[Array, "share goal"]:
    """Return what the episode of each of these steps achieved by it or by a later one, any as likely as the others."""
    later = jax.random.randint(key, index.shape, 0, steps_left(numbers, memory, index, block) + 1)
    reached = memory.storage.next_obs[(index + later * block) % memory.capacity]
    return reached[:, places.achieved : places.achieved + places.size]


def _wanting(places: GoalPlaces, steps: Transition, goal: Float[Array, "share goal"]) -> Transition:
    """Return the steps with these goals in the place of the first ones' own."""
    own = slice(None), slice(len(goal)), slice(places.desired, places.desired + places.size)
    obs, next_obs = (seen.at[own].set(goal[None]) for seen in (steps.obs, steps.next_obs))
    return steps._replace(obs=obs, next_obs=next_obs)


@partial(jax.jit, static_argnames=("algo", "structure"), donate_argnames="leaves")
def _update(
    algo: OffPolicy[Any], structure: Any, leaves: tuple[Array, ...], index: int | Int[Array, ""], drawn: Drawn
) -> tuple[Array, ...]:
    """Update once, from these steps."""
    learning = jax.tree.unflatten(structure, leaves)
    batch = summed_up(drawn.steps, drawn.following, learning.scaling, algo.gamma)
    agent, metrics = algo.update(learning.agent, batch, _keys(learning, index)[1])
    sums, sound = tallied(learning.metric_sums, learning.sound_count, metrics)
    count = learning.metric_count + 1
    return Flat.of(replace(learning, agent=agent, metric_sums=sums, metric_count=count, sound_count=sound)).leaves


@partial(jax.jit, static_argnames=("algo", "structure"), donate_argnames="leaves")
def _remember_and_act(
    algo: OffPolicy[Any],
    structure: Any,
    leaves: tuple[Array, ...],
    transition: Transition,
    ended: Bool[Array | np.ndarray, "env"],
    obs: Float[Array | np.ndarray, "env obs"],
    random: bool | Bool[Array, ""],
) -> tuple[tuple[Array, ...], Float[Array, "env act"]]:
    """Remember a transition of each environment, and which episode it is of, then draw the next actions."""
    learning: Learning = jax.tree.unflatten(structure, leaves)
    assert learning.replay is not None
    assert learning.episodes is not None
    episodes = with_newest(learning.episodes, learning.replay.position, transition)
    learning = replace(learning, episodes=episodes, key=jax.random.split(learning.key)[0])
    learning, action = draw_action(algo, remember(algo, learning, transition, ended), obs, random)
    return Flat.of(learning).leaves, action


def _keys(learning: Learning, index: int | Int[Array, ""]) -> Key[Array, "2"]:
    """Return the keys that the update of that index, since the last step, draws and learns by."""
    return jax.random.split(jax.random.fold_in(jax.random.split(learning.key)[1], index))
