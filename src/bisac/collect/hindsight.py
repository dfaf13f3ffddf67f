"""Hindsight Experience Replay (Andrychowicz et al., 2017): learning as if what was reached had been wanted.

In most of each batch the goal is replaced by one that the same episode achieved later, the strategy `future`, and the
task's own compute_reward says what the step is worth then. That is Python of the environment's, so an update takes two
compiled calls and an answer in between: which goals are to be judged, and then the update itself, which draws the same
steps again. A callback out of one compiled call would be shorter, but what it raises would leave nothing to save.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from bisac.algos import OffPolicy
from bisac.collect import replay as replay_memory
from bisac.collect.episodes import steps_left, with_newest
from bisac.collect.learning import Flat, Learning, tallied
from bisac.collect.off_policy import draw_action, remember
from bisac.collect.replay import Replay
from bisac.collect.sampling import follows, summed_up
from bisac.envs.goals import GoalPlaces, Goals
from bisac.types import Transition

REPLACED = 4 / 5
"""The share of each batch whose goals are replaced: four for one that stays, as published."""


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
    num_envs, places = len(transition.reward), goals.places
    asked = [_to_judge(algo, places, num_envs, structure, leaves, index) for index in range(updates)]
    judged = [goals.judge(*jax.device_get(each)) for each in asked]
    for index, (reward, discount) in enumerate(judged):
        leaves = _update(algo, places, num_envs, structure, leaves, index, reward, discount)
    return _remember_and_act(algo, structure, leaves, transition, ended, obs, random)


@partial(jax.jit, static_argnames=("algo", "places", "num_envs", "structure"))
def _to_judge(
    algo: OffPolicy[Any],
    places: GoalPlaces,
    num_envs: int,
    structure: Any,
    leaves: tuple[Array, ...],
    index: int | Int[Array, ""],
) -> tuple[Float[Array, "step asked goal"], Float[Array, "step asked goal"], Float[Array, "step asked"]]:
    """Return what an update's steps achieved, the goals that replace theirs, and their discounts."""
    learning = jax.tree.unflatten(structure, leaves)
    sample_key, _ = _keys(learning, index)
    steps, _, replaced = _draw_steps(algo, places, learning, sample_key, num_envs)
    after = steps.next_obs[:, replaced]
    achieved, desired = (after[..., begin : begin + places.size] for begin in (places.achieved, places.desired))
    return achieved, desired, steps.discount[:, replaced]


@partial(jax.jit, static_argnames=("algo", "places", "num_envs", "structure"), donate_argnames="leaves")
def _update(
    algo: OffPolicy[Any],
    places: GoalPlaces,
    num_envs: int,
    structure: Any,
    leaves: tuple[Array, ...],
    index: int | Int[Array, ""],
    reward: Float[Array | np.ndarray, "step asked"],
    discount: Float[Array | np.ndarray, "step asked"],
) -> tuple[Array, ...]:
    """Update once, from the steps that `_to_judge` drew, now that they were judged."""
    learning = jax.tree.unflatten(structure, leaves)
    sample_key, update_key = _keys(learning, index)
    steps, following, replaced = _draw_steps(algo, places, learning, sample_key, num_envs)
    steps = steps._replace(
        reward=steps.reward.at[:, replaced].set(reward), discount=steps.discount.at[:, replaced].set(discount)
    )
    batch = summed_up(steps, following, learning.scaling, algo.gamma)
    agent, metrics = algo.update(learning.agent, batch, update_key)
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
    """Return the keys that the update of that index, since the last step, samples and learns by."""
    return jax.random.split(jax.random.fold_in(jax.random.split(learning.key)[1], index))


def _draw_steps(
    algo: OffPolicy[Any], places: GoalPlaces, learning: Learning, key: Key[Array, ""], num_envs: int
) -> tuple[Transition, Bool[Array, "step batch"], list[int]]:
    """Return the steps that an update learns from, which of them follow the one before, and whose goals are replaced.

    Where there are demonstrations, theirs are replaced in the same share.
    """
    assert learning.replay is not None
    assert learning.episodes is not None
    shown = 0 if learning.demos is None else round(algo.demo_fraction * algo.batch_size)
    memories = [(learning.replay, learning.episodes.own, algo.batch_size - shown, num_envs)]
    if learning.demos is not None and learning.episodes.demos is not None:
        memories.append((learning.demos, learning.episodes.demos, shown, 1))
    drawn: list[tuple[Transition, Bool[Array, "step part"]]] = []
    replaced: list[int] = []
    first = 0
    for memory, numbers, count, block in memories:
        key, index_key, later_key = jax.random.split(key, 3)
        index = jax.random.randint(index_key, (count,), 0, memory.size)
        steps, held = replay_memory.runs_from(memory, index, algo.n_step, block)
        following, share = held & follows(steps), round(REPLACED * count)
        goal = _later_goals(places, memory, numbers, index[:share], later_key, block)
        drawn.append((_wanting(places, steps, goal), following))
        replaced += range(first, first + share)
        first += count
    return *jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=1), *drawn), replaced


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
