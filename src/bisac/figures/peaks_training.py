"""Training on one-step peaks as one compiled program, for figures that need hundreds of small runs."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bisac.algos import OffPolicy
from bisac.collect.learning import Learning, fresh_learning
from bisac.collect.off_policy import draw_action, learn
from bisac.envs.tasks.peaks import peaks_reward
from bisac.types import Spec, Transition

ENVS = 8
"""Environments stepped together."""
JUDGED = 256
"""Contexts at which the trained policy is judged."""


@partial(jax.jit, static_argnames=("algo", "dims", "steps", "distance", "coupling"))
def train_on_peaks(
    algo: OffPolicy[Any],
    dims: int,
    steps: int,
    seed: Int[Array, ""],
    width: Float[Array, ""],
    height: Float[Array, ""],
    distance: float,
    coupling: float,
) -> Float[Array, ""]:
    """Return what the deterministic policy brings on average after so many steps of `bisac/Peaks-v0`.

    The context varies and says nothing (shift 0). `algo` must be settled, and remember at least `steps` steps.
    """
    spec = Spec("bisac/Peaks-v0", dims, (-1.0,) * dims, (1.0,) * dims)
    context_key, learning_key, judge_key = jax.random.split(jax.random.key(seed), 3)

    def contexts(key: Key[Array, ""], count: int) -> Float[Array, "count obs"]:
        return jax.random.uniform(key, (count, dims), minval=-1.0, maxval=1.0)

    def step(carry: tuple[Learning, Key[Array, ""]], _: None, random: bool):
        learning, key = carry
        key, now_key = jax.random.split(key)
        obs = contexts(now_key, ENVS)
        learning, action = draw_action(algo, learning, obs, random)
        reward = peaks_reward(action, width, height, distance, coupling)
        over = Transition(obs, action, reward, jnp.zeros(ENVS), obs)
        return (learn(algo, learning, over, jnp.ones(ENVS, bool), 0 if random else ENVS), key), None

    first = algo.learning_starts // ENVS
    carry = fresh_learning(algo, spec, ENVS, learning_key), context_key
    (learning, key), _ = jax.lax.scan(partial(step, random=True), carry, None, length=first)
    assert learning.replay is not None
    warm_up = Transition(*(rows[: first * ENVS] for rows in learning.replay.storage))
    learning = eqx.tree_at(lambda state: state.agent, learning, algo.begin(learning.agent, warm_up))
    carry = learning, key
    (learning, _), _ = jax.lax.scan(partial(step, random=False), carry, None, length=(steps - first * ENVS) // ENVS)
    judged = learning.scaling.obs(contexts(judge_key, JUDGED))
    action = algo.act(learning.agent, judged, judge_key, explore=False)
    return peaks_reward(action, width, height, distance, coupling).mean()
