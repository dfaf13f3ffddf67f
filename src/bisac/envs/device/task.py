"""A task on the device: an environment of Brax's convention, its sizes, and how long an episode may be.

An environment is pure: `reset(key)` and `step(state, action)` return a state with `.obs`, `.reward` and `.done`, and
neither resets itself nor counts its steps. Time limits are counted here, so that a time-out still bootstraps.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, PyTree

from bisac.errors import BisacError
from bisac.storage import leaf_names
from bisac.types import LARGEST_BOUND, Spec

MOST_STEPS = 2**31 - 1
"""Steps that an episode may have: they are counted in int32."""
MAIN_OBSERVATION = "state"
"""What a policy learns from where observations are a dictionary; the rest of it is for critics or for people."""


@runtime_checkable
class DeviceEnv(Protocol):
    """An environment of Brax's convention. Its states are trees of arrays with `.obs`, `.reward` and `.done`.

    Actions lie in [-1, 1], or between the environment's `action_low` and `action_high`, tuples of numbers. Its
    `max_episode_steps`, if it has one, is after how many steps an episode is cut off; else it is 1,000.
    """

    def reset(self, rng: Any, /) -> Any:
        """Return the first state of an episode, drawn with a key."""
        ...

    def step(self, state: Any, action: Any, /) -> Any:
        """Return the state that an action leads to."""
        ...


Pictures = Callable[[Sequence[Any]], Iterator[np.ndarray]]
"""Draws states of an environment, one after the other."""


@dataclass(frozen=True, eq=False)  # it is what compiled programs are kept by: itself, and no other like it
class DeviceTask:
    """An environment that compiled programs can step, many copies at a time."""

    env: DeviceEnv
    spec: Spec
    """Sizes and action bounds."""
    limit: int
    """Steps after which an episode is cut off, without having terminated."""
    rate: int = 30
    """Pictures a second."""
    pictures: Pictures | None = None
    """How its states are drawn; None where there is no way."""
    notes: tuple[str, ...] = ()
    """What its user should know."""

    def reset(self, keys: Key[Array, "env"]) -> PyTree[Array]:
        """Return the first state of an episode in each copy, each drawn with a key of its own."""
        return jax.vmap(lambda key: _strong(self.env.reset(jax.random.key_data(key))))(keys)

    def step(self, state: PyTree[Array], action: Float[Array, "env act"]) -> PyTree[Array]:
        """Return the state that actions in [-1, 1] lead to in each copy."""
        after = jax.vmap(lambda held, drawn: self.env.step(held, self.spec.to_box(drawn)))(state, action)
        return jax.tree.map(lambda new, old: new.astype(old.dtype), after, state)

    def obs(self, state: PyTree[Array]) -> Float[Array, "*batch obs"]:
        """Return what a policy sees of states."""
        return observed(state).astype(jnp.float32)

    def reward(self, state: PyTree[Array]) -> Float[Array, "*batch"]:
        """Return the rewards of the actions that led to states."""
        return state.reward.astype(jnp.float32)

    def terminated(self, state: PyTree[Array]) -> Bool[Array, "*batch"]:
        """Return where the task itself has ended the episode."""
        return state.done.astype(bool)


def as_task(env: DeviceEnv, name: str, env_args: tuple[str, ...], limit: int | None, **drawn: Any) -> DeviceTask:
    """Return the task of an environment, once it is clear that compiled programs can step it.

    `limit` is after how many steps an episode is cut off; None leaves that to the environment. `drawn` is how its
    states are drawn: `rate` and `pictures` of `DeviceTask`.
    """
    size = getattr(env, "action_size", None)
    low, high = getattr(env, "action_low", None), getattr(env, "action_high", None)
    if size is None and low is None:
        raise BisacError(f"{name} must have action_size, the number of its actions, or action_low and action_high.")
    low, high = _bounds(name, low, high, size)
    try:
        state = jax.eval_shape(lambda: _strong(env.reset(jax.random.PRNGKey(0))))
        after = jax.eval_shape(lambda s: env.step(s, jnp.zeros(len(low))), state)
        obs = jax.eval_shape(observed, state)
    except BisacError:
        raise
    except Exception as error:  # whatever a stranger's environment does when it is traced
        told = (str(error) or type(error).__name__).splitlines()[0]
        raise BisacError(
            f"{name} cannot be compiled: {told.rstrip('.')}. It needs reset(key) and step(state, action) in JAX, whose "
            f"states have .obs, .reward and .done."
        ) from error
    _check_alike(name, state, after)
    if obs.ndim != 1 or not obs.shape[0]:
        raise BisacError(f"{name} observes an array of shape {obs.shape}; bisac learns from vectors of features only.")
    spec = Spec(name, obs.shape[0], low, high, env_args)
    others = sorted(set(state.obs) - {MAIN_OBSERVATION}) if isinstance(state.obs, dict) else []
    note = f"{name} observes a dictionary: the policy learns from '{MAIN_OBSERVATION}', not from {', '.join(others)}."
    steps = limit or int(getattr(env, "max_episode_steps", None) or 1000)
    if not 1 <= steps <= MOST_STEPS:
        raise BisacError(f"{name}: max_episode_steps must be from 1 to {MOST_STEPS}, got {steps}.")
    return DeviceTask(env, spec, steps, notes=(note,) if others else (), **drawn)


def _bounds(name: str, low: Any, high: Any, size: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the box of an environment's actions, from what it says of them; [-1, 1] where that is their number."""
    told = [[one] * int(size or 0) if bound is None else bound for bound, one in ((low, -1.0), (high, 1.0))]
    try:
        lowest, highest = (tuple(np.ravel(np.asarray(bound, np.float64)).tolist()) for bound in told)
    except (TypeError, ValueError):
        lowest, highest = (), ()
    pairs = list(zip(lowest, highest, strict=False))
    bounded = all(-LARGEST_BOUND <= least <= most <= LARGEST_BOUND for least, most in pairs)
    if not pairs or len(lowest) != len(highest) or not bounded:
        raise BisacError(f"{name}: action_low and action_high must be finite numbers, one of each for every action.")
    return lowest, highest


def observed(state: PyTree[Array]) -> Array:
    """Return a state's observation: of a dictionary the main one."""
    if not isinstance(state.obs, dict):
        return state.obs
    if MAIN_OBSERVATION not in state.obs:
        raise BisacError(
            f"the environment observes a dictionary of {', '.join(state.obs)}; bisac learns from its "
            f"'{MAIN_OBSERVATION}', which is not there."
        )
    return state.obs[MAIN_OBSERVATION]


def _strong(state: PyTree[Any]) -> PyTree[Array]:
    """Return a state whose arrays keep their dtypes, whatever they are computed with."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), state)


def _check_alike(name: str, state: PyTree[Any], after: PyTree[Any]) -> None:
    """Refuse an environment whose `step` returns another kind of state than its `reset`."""
    if jax.tree.structure(state) != jax.tree.structure(after):
        raise BisacError(f"{name}: the state that step returns has other parts than the one that reset returns.")
    for place, old, new in zip(leaf_names(state), jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        if old.shape != new.shape or not (old.dtype == new.dtype or np.can_cast(new.dtype, old.dtype)):
            raise BisacError(
                f"{name}: {place} is {old.dtype}{list(old.shape)} in the state that reset returns, and "
                f"{new.dtype}{list(new.shape)} after a step; they must be alike."
            )
