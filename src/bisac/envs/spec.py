"""Making a Gymnasium environment, and refusing clearly the ones that continuous control cannot use."""

import difflib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from bisac.errors import BisacError
from bisac.types import Spec

Env = gym.Env[Any, Any]
EnvSource = str | Callable[[], Env]
"""An environment's registered id, or a function that makes one."""

PAPER_TASKS = {
    "Swimmer-v5": "MuJoCo",
    "Hopper-v5": "MuJoCo",
    "Walker2d-v5": "MuJoCo",
    "Ant-v5": "MuJoCo",
    "Humanoid-v5": "MuJoCo",
    "HumanoidStandup-v5": "MuJoCo",
    "Pusher-v5": "MuJoCo",
    "InvertedPendulum-v5": "MuJoCo",
    "LunarLanderContinuous-v3": "Box2D",
    "BipedalWalker-v3": "Box2D",
}
"""The paper's tasks in Gymnasium's current versions, and the simulator of each."""


def make_env(source: EnvSource, render_mode: str | None = None) -> Env:
    """One environment with flat observations; a clear error where it cannot be made or used."""
    env = _make_by_id(source, render_mode) if isinstance(source, str) else source()
    _check_action_space(env, env_name(source, env))
    return _with_flat_observations(env, env_name(source, env))


def env_name(source: EnvSource, env: Env) -> str:
    """The environment's id, or the name of its class where it was never registered."""
    if isinstance(source, str):
        return source
    return env.spec.id if env.spec else type(env.unwrapped).__name__


def spec_of(source: EnvSource, env: Env) -> Spec:
    """Sizes and action bounds of an environment that `make_env` made."""
    observations, actions = env.observation_space, env.action_space
    assert isinstance(observations, spaces.Box)
    assert isinstance(actions, spaces.Box)
    low, high = (tuple(float(v) for v in np.ravel(bound)) for bound in (actions.low, actions.high))
    return Spec(env_name(source, env), int(np.prod(observations.shape)), low, high)


def _make_by_id(env_id: str, render_mode: str | None) -> Env:
    try:
        return gym.make(env_id, render_mode=render_mode) if render_mode else gym.make(env_id)
    except gym.error.UnregisteredEnv as error:
        raise BisacError(f"there is no environment '{env_id}'{_suggestion(env_id)}.") from error
    except gym.error.DependencyNotInstalled as error:
        raise BisacError(f"environment '{env_id}' needs a package that is not installed: {error}.") from error
    except (gym.error.Error, ImportError) as error:
        raise BisacError(f"environment '{env_id}' cannot be made: {error}.") from error


def _suggestion(env_id: str) -> str:
    close = difflib.get_close_matches(env_id, gym.registry, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}" if close else "; 'bisac list' names some"


def _check_action_space(env: Env, name: str) -> None:
    actions = env.action_space
    if not isinstance(actions, spaces.Box) or not np.issubdtype(actions.dtype, np.floating):
        raise BisacError(f"'{name}' has the action space {actions}; bisac needs continuous actions (a float Box).")
    if not actions.is_bounded():
        raise BisacError(f"'{name}' has an unbounded action space {actions}; wrap it in gymnasium's RescaleAction.")


def _with_flat_observations(env: Env, name: str) -> Env:
    """Dict, Tuple and multi-dimensional observations flattened in the order of `gymnasium.spaces.flatten`."""
    observations = env.observation_space
    if isinstance(observations, spaces.Box) and (observations.dtype == np.uint8 or len(observations.shape) > 2):
        raise BisacError(f"'{name}' observes images {observations.shape}; bisac learns from vectors of features only.")
    if isinstance(observations, spaces.Box) and len(observations.shape) == 1:
        return env
    if not observations.is_np_flattenable:
        raise BisacError(f"'{name}' has the observation space {observations}, which has no fixed flat size.")
    return gym.wrappers.FlattenObservation(env)
