"""Making a Gymnasium environment, and refusing clearly the ones that continuous control cannot use."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from bisac.envs.host.worker import quieten_mujoco
from bisac.errors import BisacError, did_you_mean
from bisac.layout import layout_of
from bisac.types import LARGEST_BOUND, Spec

Env = gym.Env[Any, Any]
EnvSource = str | Callable[[], Env] | Env | VectorEnv[Any, Any, Any]
"""An environment's registered id, a function that makes one, or what is there already: one, or a vector of them."""

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


class Lent(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that belongs to somebody else, who will close it."""

    def close(self) -> None:
        """Leave it open."""


@dataclass(frozen=True)
class Task:
    """What to learn: an environment, and the arguments it is made with."""

    source: EnvSource
    args: tuple[str, ...] = ()
    """The arguments, each key=value, as typed; a value is JSON where it can be read as that, else a string."""

    def __post_init__(self):
        if self.args and not isinstance(self.source, str):
            raise BisacError("environment arguments are for an id; a function, or an environment, has its own.")
        parse_args(self.args)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments as Python's; the last of a key counts."""
        return parse_args(self.args)

    @property
    def is_single(self) -> bool:
        """Whether there is one environment alone, of which no second can be made."""
        return isinstance(self.source, gym.Env)

    def make(self, render_mode: str | None = None) -> Env:
        """Return one environment with flat observations; a clear error where it cannot be made or used."""
        if isinstance(self.source, VectorEnv):
            raise BisacError(
                "a vector environment is only trained in; give eval_env= an id, a function that makes an environment, "
                "or one environment, to evaluate in."
            )
        if isinstance(self.source, str):
            env = self._make_by_id(self.source, render_mode)
        else:
            env = Lent(self.source) if isinstance(self.source, gym.Env) else self.source()
        check_action_space(env.action_space, self.name(env))
        check_observation_space(env.observation_space, self.name(env))
        return _with_flat_observations(env)

    def name(self, env: Env) -> str:
        """Return the environment's id, or the name of its class where it was never registered."""
        if isinstance(self.source, str):
            return self.source
        return env.spec.id if env.spec else type(env.unwrapped).__name__

    def spec(self, env: Env) -> Spec:
        """Return sizes and action bounds of an environment that `make` made."""
        observations, actions = env.observation_space, env.action_space
        assert isinstance(observations, spaces.Box)
        assert isinstance(actions, spaces.Box)
        low, high = (tuple(float(v) for v in np.ravel(bound)) for bound in (actions.low, actions.high))
        inner = env.env.observation_space if isinstance(env, gym.wrappers.FlattenObservation) else None
        layout = None if inner is None else layout_of(inner)
        return Spec(self.name(env), int(np.prod(observations.shape)), low, high, self.args, layout)

    def recipe(self, env: Env) -> tuple[Callable[[], Env], bool, bool]:
        """Return how another process makes one like `env`; whether it must be flattened; whether it is MuJoCo's."""
        of_mujoco = _is_of_mujoco(env.spec)
        if isinstance(self.source, str) and env.spec:
            return partial(gym.make, env.spec), False, of_mujoco  # the spec has the arguments and the flattening
        assert callable(self.source)
        return self.source, isinstance(env, gym.wrappers.FlattenObservation), of_mujoco

    def _make_by_id(self, env_id: str, render_mode: str | None) -> Env:
        if env_id.startswith("dm_control/"):
            _register_dm_control()
        try:
            kwargs: dict[str, Any] = self.kwargs | ({"render_mode": render_mode} if render_mode else {})
            if _is_of_mujoco(gym.registry.get(env_id)):
                quieten_mujoco()
            return gym.make(env_id, **kwargs)
        except gym.error.UnregisteredEnv as error:
            raise BisacError(f"there is no environment '{env_id}'{_suggestion(env_id)}") from error
        except gym.error.DependencyNotInstalled as error:
            raise BisacError(f"environment '{env_id}' needs a package that is not installed: {error}.") from error
        except (gym.error.Error, ImportError) as error:
            raise BisacError(f"environment '{env_id}' cannot be made: {error}.") from error
        except Exception as error:  # whatever an environment makes of arguments that it does not take
            if not self.args:
                raise
            cause = str(error.__cause__ or error).rstrip(".")
            raise BisacError(f"environment '{env_id}' cannot be made with {', '.join(self.args)}: {cause}.") from error


def parse_args(args: tuple[str, ...]) -> dict[str, Any]:
    """Return arguments that were typed as key=value as Python's; the last of a key counts."""
    for arg in args:
        if not arg.partition("=")[0].strip() or "=" not in arg:
            raise BisacError(f"an environment's argument must be key=value, got '{arg}'.")
    return {key.strip(): _value(text) for key, _, text in (arg.partition("=") for arg in args)}


def to_args(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return Python's arguments as a `Task` has them."""
    try:
        return tuple(f"{key}={json.dumps(value)}" for key, value in kwargs.items())
    except (TypeError, ValueError) as error:
        raise BisacError(
            f"environment arguments are numbers, strings, booleans and lists of them ({error}); for others give a "
            f"function that makes the environment."
        ) from error


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _register_dm_control() -> None:
    try:
        import dm_control  # noqa: F401  # pyright: ignore[reportMissingImports]
        import shimmy  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise BisacError(
            "the DeepMind control suite is not installed; in bisac's folder: pip install '.[dm-control]'."
        ) from error


def _is_of_mujoco(spec: EnvSpec | None) -> bool:
    """Return whether it is one of Gymnasium's own MuJoCo tasks."""
    return spec is not None and ".mujoco." in str(spec.entry_point)


def _suggestion(env_id: str) -> str:
    near = did_you_mean(env_id, gym.registry, "; 'bisac list' names some")
    # A policy knows the id alone, and not the package that registers it.
    return near if ":" in env_id else f"{near} One of another package is named with it, as in 'my_package:{env_id}'."


def check_action_space(actions: spaces.Space[Any], name: str) -> spaces.Box:
    """Return the action space of the environment of that name; refuse what continuous control cannot use."""
    if not isinstance(actions, spaces.Box) or not np.issubdtype(actions.dtype, np.floating):
        raise BisacError(f"'{name}' has the action space {actions}; bisac needs continuous actions (a float Box).")
    if not actions.is_bounded():
        raise BisacError(f"'{name}' has an unbounded action space {actions}; wrap it in gymnasium's RescaleAction.")
    if max(np.abs(actions.low).max(), np.abs(actions.high).max()) > LARGEST_BOUND:
        raise BisacError(f"'{name}' has an action space too wide for float32, {actions}; wrap it in RescaleAction.")
    return actions


def check_observation_space(observations: spaces.Space[Any], name: str) -> None:
    """Refuse images, and what has no fixed size."""
    if not observations.is_np_flattenable:
        raise BisacError(
            f"'{name}' has the observation space {observations}, which has no fixed size; wrap it into one that has, "
            f"and give bisac.train the function that makes it."
        )
    shape = observations.shape or ()
    if isinstance(observations, spaces.Box) and (
        len(shape) > 2 or (len(shape) == 2 and observations.dtype == np.uint8)
    ):
        raise BisacError(f"'{name}' observes images {observations.shape}; bisac learns from vectors of features only.")


def _with_flat_observations(env: Env) -> Env:
    """Return the environment with observations flattened in the order of `gymnasium.spaces.flatten`."""
    observations = env.observation_space
    if isinstance(observations, spaces.Box) and len(observations.shape) == 1:
        return env
    return gym.wrappers.FlattenObservation(env)
