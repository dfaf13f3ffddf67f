"""What one update learns from: a batch drawn from memory, each transition over one step or over several."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Key

from bisac.algos import OffPolicy
from bisac.collect import replay as replay_memory
from bisac.collect.episodes import goes_on
from bisac.collect.replay import Replay
from bisac.collect.scaling import Scaling
from bisac.ops.returns import n_step_return
from bisac.types import Transition


def draw_batch(
    algo: OffPolicy[Any],
    memory: Replay[Transition],
    demos: Replay[Transition] | None,
    scaling: Scaling,
    key: Key[Array, ""],
    num_envs: int,
) -> Transition:
    """Return what an update learns from: transitions from memory, and where there are demonstrations, a share of those.

    The memory was filled with a transition of each of `num_envs` environments at a time, the demonstrations one by one.
    """
    if demos is None:
        return draw(memory, scaling, key, algo.batch_size, algo.n_step, algo.gamma, num_envs)
    own_key, demo_key = jax.random.split(key)
    shown = round(algo.demo_fraction * algo.batch_size)
    own = draw(memory, scaling, own_key, algo.batch_size - shown, algo.n_step, algo.gamma, num_envs)
    theirs = draw(demos, scaling, demo_key, shown, algo.n_step, algo.gamma, 1)
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), own, theirs)


def draw(
    memory: Replay[Transition],
    scaling: Scaling,
    key: Key[Array, ""],
    count: int,
    n_step: int,
    gamma: float,
    block: int,
) -> Transition:
    """Return `count` transitions of `n_step` steps, or of fewer where an episode ends, or the memory.

    The memory was filled with a transition of each of `block` environments at a time.
    """
    if n_step == 1:
        return scaling.batch(replay_memory.sample(memory, key, count))
    steps, held = replay_memory.sample_runs(memory, key, count, n_step, block)
    return summed_up(steps, held & follows(steps), scaling, gamma)


def summed_up(steps: Transition, following: Bool[Array, "step batch"], scaling: Scaling, gamma: float) -> Transition:
    """Return the transitions over all of these steps, or over those of them that are `following` one another."""
    # Scaled before they are summed: what is clipped is a step's reward, whatever n is.
    reward, discount, last = n_step_return(scaling.reward(steps.reward), steps.discount, following, gamma)
    next_obs = jnp.take_along_axis(steps.next_obs, last[None, :, None], axis=0)[0]
    return Transition(scaling.obs(steps.obs[0]), steps.action[0], reward, discount, scaling.obs(next_obs))


def follows(steps: Transition) -> Bool[Array, "step batch"]:
    """Return which of the steps go on from the one before; of the first it is said that it does."""
    joined = goes_on(steps.next_obs[:-1], steps.obs[1:])
    return jnp.concatenate([jnp.ones((1, *joined.shape[1:]), bool), joined])
