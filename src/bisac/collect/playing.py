"""Whole episodes on the device with the deterministic policy: an evaluation in one compiled call, or a film."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from bisac.collect.collector import Evaluation
from bisac.collect.evaluate import EVALUATION_STREAM, HELD_OUT_STREAM
from bisac.collect.filming import choose_renderer, rendering
from bisac.envs.device.task import DeviceTask
from bisac.errors import BisacError
from bisac.nets.actors import Actor
from bisac.policies.policy import Policy

FRAMES = 32
"""States that are drawn at a time: those of an episode would fill the memory as pictures."""


def play(
    task: DeviceTask,
    policy: Policy | None,
    episodes: int,
    seed: int,
    stream: int = EVALUATION_STREAM,
    deterministic: bool = True,
) -> Evaluation:
    """Play episodes of a policy, or of uniformly random actions, the same ones at each call."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), stream), episodes)
    returns, lengths = _episodes(task, policy and policy.actor, keys, not deterministic)
    if not np.isfinite(returns).all():
        raise BisacError(f"{task.spec.env_id} gave a reward that is not finite in an evaluation; it must be mended.")
    return Evaluation(np.asarray(returns, np.float64), np.asarray(lengths))


def filmed(task: DeviceTask, policy: Policy, seed: int) -> Iterator[np.ndarray]:
    """Return the pictures of an episode of the deterministic policy."""
    if task.pictures is None:
        raise BisacError(f"{task.spec.env_id} has no pictures; leave out --video.")
    choose_renderer()
    with rendering():
        frames = _frames(task, policy, seed)
        first = next(frames)  # so that a machine that cannot draw says so before anything is written
    return _followed(first, frames)


@partial(jax.jit, static_argnames=("task", "explore"))
def _episodes(
    task: DeviceTask, actor: Actor | None, keys: Key[Array, "env"], explore: bool
) -> tuple[Float[Array, "env"], Int[Array, "env"]]:
    """Return the return and the length of an episode from each key."""

    def body(carry):
        state, returns, lengths, running, key = carry
        key, draw_key = jax.random.split(key)
        if actor is None:
            action = jax.random.uniform(draw_key, (len(keys), task.spec.action_dim), minval=-1.0, maxval=1.0)
        else:
            action = actor.act(task.obs(state), draw_key, explore)
        state = task.step(state, action)
        returns = returns + jnp.where(running, task.reward(state), 0.0)
        lengths = lengths + running.astype(jnp.int32)
        return state, returns, lengths, running & ~task.terminated(state) & (lengths < task.limit), key

    count = len(keys)
    start = (task.reset(keys), jnp.zeros(count), jnp.zeros(count, jnp.int32), jnp.ones(count, bool), keys[0])
    _, returns, lengths, _, _ = jax.lax.while_loop(lambda carry: carry[3].any(), body, start)
    return returns, lengths


def _frames(task: DeviceTask, policy: Policy, seed: int) -> Iterator[np.ndarray]:
    assert task.pictures is not None
    key = jax.random.fold_in(jax.random.key(seed), HELD_OUT_STREAM)
    state, states = jax.jit(task.reset)(key[None]), []
    step = jax.jit(lambda state: task.step(state, policy.actor.act(task.obs(state), key, explore=False)))
    for length in range(task.limit + 1):
        states.append(jax.tree.map(lambda leaf: np.asarray(leaf[0]), state))
        over = length == task.limit or bool(task.terminated(state)[0])
        if over or len(states) == FRAMES or length == 0:
            yield from task.pictures(states)
            states = []
        if over:
            return
        state = step(state)


def _followed(first: np.ndarray, frames: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    yield first
    yield from frames
