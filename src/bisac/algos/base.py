"""The contract: an algorithm is a frozen dataclass of its hyperparameters with a few pure methods.

Frozen means hashable: the same object is the static argument of the compiled step, the schema of the command line,
and the JSON of a run.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, final, get_args, get_origin, get_type_hints

from jaxtyping import Array, Float, Key

from bisac.errors import BisacError
from bisac.nets.actors import Actor
from bisac.types import Metrics, Spec, Transition

State = TypeVar("State")


@dataclasses.dataclass(frozen=True)
class Algorithm(ABC, Generic[State]):
    """Hyperparameters, and how to start, act and learn with them."""

    def __post_init__(self):
        for name, hint in get_type_hints(type(self)).items():
            if not _fits(value := getattr(self, name), hint):
                raise BisacError(f"--{name.replace('_', '-')} must be {_kind(hint)}, got {value!r}.")

    @abstractmethod
    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """A fresh state; every leaf of it is an array."""

    @abstractmethod
    def actor(self, state: State) -> Actor:
        """The policy that the state holds."""

    @abstractmethod
    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """One step of learning from a batch of transitions."""

    @final
    def act(
        self, state: State, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool
    ) -> Float[Array, "batch act"]:
        """Actions in [-1, 1]: sampled to explore, else deterministic."""
        return self.actor(state).act(obs, key, explore)


@dataclasses.dataclass(frozen=True)
class OffPolicy(Algorithm[State]):
    """What learning from a replay memory needs."""

    gamma: float = 0.99
    """Discount of future rewards."""
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
        require(self, "in [0, 1]", lambda v: 0.0 <= v <= 1.0, "gamma")
        require(self, "at least 1", lambda v: v >= 1, "batch_size", "replay_size", "learning_starts")
        require(self, "positive", lambda v: v > 0.0, "utd")


def require(settings: object, kind: str, holds: Callable[[Any], bool], *names: str) -> None:
    """Refuse a setting that is not what it must be."""
    for name in names:
        value = getattr(settings, name)
        values = value if isinstance(value, tuple) else (value,)
        if not values or not all(holds(v) for v in values):
            raise BisacError(f"--{name.replace('_', '-')} must be {kind}, got {value}.")


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
    return {float: "a number", int: "a whole number", bool: "True or False"}[hint]
