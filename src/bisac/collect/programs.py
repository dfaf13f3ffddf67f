"""The device's compiled programs: many steps of all environments, learning in between, in one call."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bisac.algos import OffPolicy, OnPolicy, Rollout
from bisac.collect.learning import Learning
from bisac.collect.off_policy import draw_action, learn
from bisac.collect.on_policy import explore, learn_from_rollout
from bisac.collect.side_by_side import for_each, with_counters, without_counters
from bisac.collect.stepping import Place, step_all
from bisac.envs.device.task import DeviceTask
from bisac.types import Transition

CHUNK = 128
"""The most steps of all environments in one call: between two calls a run hears signals."""


class Happened(NamedTuple):
    """What the steps of a call brought, for the log; arrays have a row a step."""

    ended: Bool[Array, "time *run env"]
    length: Int[Array, "time *run env"]
    total_reward: Float[Array, "time *run env"]
    sound: Bool[Array, "*run"]
    """Whether all observations and rewards were finite."""


@partial(jax.jit, static_argnames=("task", "algo"), donate_argnames=("learning", "place"))
def learn_in_steps(
    task: DeviceTask,
    algo: OffPolicy[Any],
    learning: Learning,
    place: Place,
    dues: Int[Array, "chunk"],
    randoms: Bool[Array, "chunk"],
    count: int | Int[Array, ""],
) -> tuple[Learning, Place, Happened]:
    """Take the first `count` of CHUNK steps of all environments: act, step, remember, update.

    `dues` are the updates after each step, and `randoms` whether its actions are drawn uniformly.
    """
    runs = place.started.shape[:-1]

    def body(index: Int[Array, ""], carry: tuple[Learning, Place, Happened]) -> tuple[Learning, Place, Happened]:
        learning, place, happened = carry
        act, update = partial(_act, algo, randoms[index]), partial(_update, algo, dues[index])
        obs = task.obs(place.env)
        learning, action = for_each(act, learning, obs) if runs else act(learning, obs)
        place, stepped = step_all(task, place, action)
        seen = stepped.transition, stepped.ended
        learning = for_each(update, learning, *seen) if runs else update(learning, *seen)
        told = Happened(
            happened.ended.at[index].set(stepped.ended),
            happened.length.at[index].set(stepped.length),
            happened.total_reward.at[index].set(stepped.total_reward),
            happened.sound & _sound(stepped.transition, runs),
        )
        return learning, place, told

    shape = (CHUNK, *place.started.shape)
    nothing = Happened(jnp.zeros(shape, bool), jnp.zeros(shape, jnp.int32), jnp.zeros(shape), jnp.ones(runs, bool))
    learning = without_counters(learning) if runs else learning
    learning, place, happened = jax.lax.fori_loop(0, count, body, (learning, place, nothing))
    return with_counters(learning, *runs) if runs else learning, place, happened


@partial(jax.jit, static_argnames=("task", "algo"), donate_argnames=("learning", "place"))
def learn_from_steps(
    task: DeviceTask, algo: OnPolicy[Any], learning: Learning, place: Place, remaining: float | Float[Array, ""]
) -> tuple[Learning, Place, Happened]:
    """Gather a rollout by the policy of its beginning, and learn from it; `remaining` is the rest of the run."""
    runs, num_envs = place.started.shape[:-1], place.started.shape[-1]

    def body(place: Place, index: Int[Array, ""]):
        draw = partial(_explore, algo, index)
        obs = task.obs(place.env)
        action = for_each(draw, learning, obs)[1] if runs else draw(learning, obs)[1]
        place, stepped = step_all(task, place, jnp.clip(action, -1.0, 1.0))
        rollout = Rollout(*stepped.transition._replace(action=action), stepped.ended)
        return place, (rollout, stepped.length, stepped.total_reward, _sound(stepped.transition, runs))

    learning = without_counters(learning) if runs else learning
    place, (rollout, length, total_reward, sound) = jax.lax.scan(body, place, jnp.arange(algo.length(num_envs)))
    happened = Happened(rollout.ended, length, total_reward, sound.all(axis=0))
    if not runs:
        return learn_from_rollout(algo, learning, rollout, remaining), place, happened
    own = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), rollout)  # one rollout a run
    learned = for_each(lambda held, seen: learn_from_rollout(algo, held, seen, remaining), learning, own)
    return with_counters(learned, *runs), place, happened


def _act(algo: OffPolicy[Any], random: Bool[Array, ""], learning: Learning, obs: Float[Array, "env obs"]):
    return draw_action(algo, learning, obs, random)


def _update(
    algo: OffPolicy[Any], due: Int[Array, ""], learning: Learning, transition: Transition, ended: Bool[Array, "env"]
) -> Learning:
    return learn(algo, learning, transition, ended, due)


def _explore(algo: OnPolicy[Any], index: Int[Array, ""], learning: Learning, obs: Float[Array, "env obs"]):
    return learning, explore(algo, learning.agent, learning.scaling, obs, learning.key, index)


def _sound(transition: Transition, runs: tuple[int, ...]) -> Bool[Array, "*run"]:
    """Return whether a step's observations and rewards were finite, for each run where there are several."""
    finite = jnp.isfinite(transition.next_obs).all(axis=-1) & jnp.isfinite(transition.reward)
    return finite.reshape(*runs, -1).all(axis=-1)
