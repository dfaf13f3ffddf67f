"""The contract: an algorithm is a frozen dataclass of its hyperparameters with a few pure methods.

Frozen means hashable: the same object is the static argument of the compiled step, the schema of the command line,
and the JSON of a run.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from jaxtyping import Array, Bool, Float, Key

from bisac.errors import BisacError
from bisac.nets.actors import Actor
from bisac.types import Metrics, Spec, Transition

State = TypeVar("State")

Settled = TypeVar("Settled", bound="Algorithm[Any]")

Auto = Literal["auto"]
"""In the place of a number that depends on other settings: `Algorithm.settled` puts it there."""


@dataclasses.dataclass(frozen=True)
class Algorithm(ABC, Generic[State]):
    """Hyperparameters, and how to start, act and learn with them."""

    gamma: float = 0.99
    """Discount of future rewards."""
    normalise_observations: bool = False
    """Shift and scale observations by their running mean and standard deviation."""
    normalise_rewards: bool = False
    """Scale rewards by the running standard deviation of the discounted return."""

    def __post_init__(self):
        hints = get_type_hints(type(self))
        for name in (field.name for field in dataclasses.fields(self)):
            if not _fits(value := getattr(self, name), hints[name]):
                raise BisacError(f"--{name.replace('_', '-')} must be {_kind(hints[name])}, got {value!r}.")
        require(self, "in [0, 1]", lambda v: 0.0 <= v <= 1.0, "gamma")

    @final
    def settled(self: Settled) -> Settled:
        """The same settings with numbers in the place of auto; a run begins with this, and records it."""
        return dataclasses.replace(self, **{k: v for k, v in self.automatic().items() if getattr(self, k) == "auto"})

    def automatic(self) -> dict[str, Any]:
        """What auto stands for, by the setting's name, given the other settings; members add their own."""
        return {}

    @abstractmethod
    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """A fresh state; every leaf of it is an array. The settings must be settled."""

    @abstractmethod
    def actor(self, state: State) -> Actor:
        """The policy that explores, and that learning improves."""

    @abstractmethod
    def policy(self, state: State) -> Actor:
        """The policy that is evaluated and saved: the actor, or its mean over its last steps."""

    @abstractmethod
    def usual_envs(self) -> int:
        """Environments that it is trained in unless told otherwise."""

    @abstractmethod
    def step_of(self, update: int, num_envs: int) -> int:
        """The environment step at which an update, counted from 1, takes place."""

    @abstractmethod
    def check_num_envs(self, num_envs: int) -> None:
        """Refuse a number of environments that it cannot learn with."""

    @final
    def act(
        self, state: State, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool
    ) -> Float[Array, "batch act"]:
        """Actions in [-1, 1]: sampled from the actor to explore, else those of the policy that is evaluated."""
        return (self.actor if explore else self.policy)(state).act(obs, key, explore)


@dataclasses.dataclass(frozen=True)
class OffPolicy(Algorithm[State]):
    """What learning from a replay memory needs."""

    batch_size: int = 256
    """Transitions in each update."""
    utd: float = 1.0
    """Updates per environment step (update-to-data ratio); below 1, an update every few steps."""
    learning_starts: int = 1000
    """Environment steps of uniformly random actions before learning starts."""
    replay_size: int = 1_000_000
    """Transitions that the replay memory holds."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "batch_size", "replay_size", "learning_starts")
        require(self, "positive", lambda v: v > 0.0, "utd")

    @abstractmethod
    def begin(self, state: State, warm_up: Transition) -> State:
        """The state as learning starts, given the transitions of the uniformly random steps before it."""

    @abstractmethod
    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """One step of learning from a batch of transitions."""

    @final
    def check_num_envs(self, num_envs: int) -> None:
        """The memory must hold a step of all."""
        if self.replay_size < num_envs:
            raise BisacError(f"--replay-size must be at least the number of environments, {num_envs}.")

    @final
    def step_of(self, update: int, num_envs: int) -> int:
        """When as many updates are due: after the warm-up, at the update-to-data ratio."""
        return math.ceil((self.learning_starts + update / self.utd) / num_envs) * num_envs


class Rollout(NamedTuple):
    """Consecutive steps of several environments, all by one policy."""

    obs: Float[Array, "time env obs"]
    action: Float[Array, "time env act"]
    """As drawn: it may lie outside [-1, 1], where the environment gets the nearest inside."""
    reward: Float[Array, "time env"]
    discount: Float[Array, "time env"]
    """0 where the episode terminated, else 1."""
    next_obs: Float[Array, "time env obs"]
    """The observation the action led to, even where the episode ended and another began."""
    ended: Bool[Array, "time env"]
    """Where the episode ended, by termination or truncation."""


@dataclasses.dataclass(frozen=True)
class OnPolicy(Algorithm[State]):
    """What learning from fresh rollouts needs."""

    rollout: int = 2048
    """Environment steps between updates, summed over the environments."""
    normalise_observations: bool = True
    """Shift and scale observations by their running mean and standard deviation."""
    normalise_rewards: bool = True
    """Scale rewards by the running standard deviation of the discounted return."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "rollout")

    @abstractmethod
    def explore(self, state: State, obs: Float[Array, "env obs"], key: Key[Array, ""]) -> Float[Array, "env act"]:
        """Actions as drawn, not yet cut to [-1, 1]: learning needs to know their probabilities."""

    @abstractmethod
    def update(
        self, state: State, rollout: Rollout, key: Key[Array, ""], remaining: Float[Array, ""]
    ) -> tuple[State, Metrics]:
        """Learn from a rollout; `remaining` falls from 1 to 0 over the run."""

    @final
    def usual_envs(self) -> int:
        """Several: the more, the less a rollout's steps depend on each other."""
        return 8

    @final
    def length(self, num_envs: int) -> int:
        """Steps of each environment in a rollout."""
        return max(1, self.rollout // num_envs)

    @final
    def step_of(self, update: int, num_envs: int) -> int:
        """At the end of each rollout."""
        return update * self.length(num_envs) * num_envs


def require(settings: object, kind: str, holds: Callable[[Any], bool], *names: str) -> None:
    """Refuse a setting that is not what it must be."""
    for name in names:
        value = getattr(settings, name)
        values = value if isinstance(value, tuple) else (value,)
        if not values or not all(holds(v) for v in values):
            raise BisacError(f"--{name.replace('_', '-')} must be {kind}, got {value}.")


Number = TypeVar("Number", int, float)


def number(setting: Number | Auto) -> Number:
    """A setting that is settled."""
    assert setting != "auto", "an algorithm's settings must be settled before it is used: algo.settled()"
    return setting


def _fits(value: Any, hint: Any) -> bool:
    """Whether a setting is of the type that its field declares."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(v, get_args(hint)[0]) for v in value)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _kind(hint: Any) -> str:
    """A type in a user's words."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_kind, get_args(hint)))
    if get_origin(hint) is tuple:
        return "a tuple of whole numbers"
    return {float: "a number", int: "a whole number", bool: "True or False", NoneType: "None"}[hint]
