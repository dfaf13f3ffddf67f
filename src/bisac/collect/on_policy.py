"""Learning from fresh rollouts, compiled: draw an action, learn from a rollout. Nothing here knows an environment."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree

from bisac.algos import OnPolicy, Rollout
from bisac.collect.learning import Learning, tallied
from bisac.collect.scaling import Scaling


@partial(jax.jit, static_argnames="algo")
def explore(
    algo: OnPolicy[Any],
    agent: PyTree[Array],
    scaling: Scaling,
    obs: Float[Array | np.ndarray, "env obs"],
    key: Key[Array, ""],
    index: int | Int[Array, ""],
) -> Float[Array, "env act"]:
    """Draw the actions of step `index` of the rollout that begins with this key, not yet cut to [-1, 1]."""
    return algo.explore(agent, scaling.obs(jnp.asarray(obs)), jax.random.fold_in(key, index))


@partial(jax.jit, static_argnames="algo", donate_argnames="learning")
def learn_from_rollout(
    algo: OnPolicy[Any], learning: Learning, rollout: Rollout, remaining: float | Float[Array, ""]
) -> Learning:
    """Update once, by observations normalised as they were when acted upon; `remaining` is the rest of the run."""
    # The first indices of fold_in are the rollout's actions.
    key, update_key = (jax.random.fold_in(learning.key, rollout.reward.shape[0] + i) for i in range(2))
    scaling = learning.scaling.observe(rollout.obs, rollout.reward, rollout.ended, algo.gamma)
    seen = rollout._replace(
        obs=learning.scaling.obs(rollout.obs),
        next_obs=learning.scaling.obs(rollout.next_obs),
        reward=scaling.reward(rollout.reward),
    )
    agent, metrics = algo.update(learning.agent, seen, update_key, jnp.asarray(remaining))
    sums, sound = tallied(learning.metric_sums, learning.sound_count, metrics)
    return Learning(agent, scaling, None, key, sums, learning.metric_count + 1, sound)
