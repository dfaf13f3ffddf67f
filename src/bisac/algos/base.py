"""The contract: an algorithm is a frozen dataclass of its hyperparameters with a few pure methods.

Frozen means hashable: the same object is the static argument of the compiled step, the schema of the command line,
and the JSON of a run. What it learns, the agent's state, is a pytree that goes in and comes out. Nothing here knows
where experience comes from, how it is kept, or how a run is saved.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, Generic, Literal, NamedTuple, TypeVar, final

from jaxtyping import Array, Bool, Float, Key

from bisac.algos.search import among
from bisac.errors import BisacError
from bisac.nets.actors import Actor
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require, require_types

State = TypeVar("State")
"""The pytree of arrays that an algorithm learns: its agent."""

Settled = TypeVar("Settled", bound="Algorithm[Any]")

Auto = Literal["auto"]
"""In the place of a number that depends on other hyperparameters: `Algorithm.settled` puts it there."""

EARLIER = "earlier"
"""In a field's metadata: what a file means that is older than the field, and so does not name it."""


@dataclasses.dataclass(frozen=True)
class Algorithm(ABC, Generic[State]):
    """The hyperparameters of an algorithm, and how an agent starts, acts and learns with them."""

    gamma: float = dataclasses.field(default=0.99, metadata=among(0.9, 0.95, 0.98, 0.99, 0.995, 0.999))
    """Discount of future rewards."""
    normalise_observations: bool = False
    """Shift and scale observations by their running mean and standard deviation."""
    normalise_rewards: bool = False
    """Scale rewards by the running standard deviation of the discounted return."""

    def __post_init__(self):
        require_types(self)
        whole = (field.name for field in dataclasses.fields(self) if isinstance(getattr(self, field.name), int))
        require(self, f"below {2**31:,}", lambda v: v < 2**31, *whole)  # the machine's whole numbers end there
        require(self, "in [0, 1]", lambda v: 0.0 <= v <= 1.0, "gamma")

    @final
    def settled(self: Settled) -> Settled:
        """Return the same algorithm with numbers in the place of auto; a run begins with this, and records it."""
        return dataclasses.replace(self, **{k: v for k, v in self.automatic().items() if getattr(self, k) == "auto"})

    def automatic(self) -> dict[str, Any]:
        """Return what auto stands for, by the hyperparameter's name, given the other hyperparameters."""
        return {}

    @abstractmethod
    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Return a fresh agent for environments of this kind; every leaf of it is an array.

        The algorithm must be settled.
        """

    @abstractmethod
    def actor(self, state: State) -> Actor:
        """Return the agent's actor that explores, and that learning improves."""

    @abstractmethod
    def policy(self, state: State) -> Actor:
        """Return the agent's actor that is evaluated and saved: the exploring one, or its mean over its last steps."""

    @abstractmethod
    def usual_envs(self) -> int:
        """Return the number of environments that an agent is trained in unless told otherwise."""

    @abstractmethod
    def step_of(self, update: int, num_envs: int) -> int:
        """Return the environment step, summed over the environments, at which an update, counted from 1, happens."""

    @abstractmethod
    def check_num_envs(self, num_envs: int) -> None:
        """Refuse a number of environments that these hyperparameters cannot learn with."""

    @final
    def act(
        self, state: State, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool
    ) -> Float[Array, "batch act"]:
        """Return actions in [-1, 1]: drawn from the actor to explore, else the deterministic ones of the policy."""
        return (self.actor if explore else self.policy)(state).act(obs, key, explore)


@dataclasses.dataclass(frozen=True)
class OffPolicy(Algorithm[State]):
    """The hyperparameters of learning from a replay memory, and what such an algorithm adds to the contract."""

    batch_size: int = dataclasses.field(default=256, metadata=among(128, 256, 512))
    """Transitions in each update."""
    utd: float = 1.0
    """Updates per environment step (update-to-data ratio); below 1, an update every few steps."""
    learning_starts: int = 1000
    """Environment steps of uniformly random actions before learning starts."""
    replay_size: int = 1_000_000
    """Transitions that the replay memory holds."""
    n_step: int = 1
    """Rewards that a value is learned from before it rests on the next value: more spread news faster, less exactly."""
    demo_fraction: float = 0.5
    """Share of each batch that is drawn from --demos, where they are given."""
    her: bool = False
    """Replace the goals of four in five transitions by ones that their episode reached later (goal tasks only)."""
    learn_at: Literal["step", "episode"] = "step"
    """When to make the updates that are due: at once, or all of them when an episode has ended (real hardware)."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "batch_size", "replay_size", "learning_starts", "n_step")
        require(self, "positive, and 1,000 at most", lambda v: 0.0 < v <= 1000.0, "utd")
        require(self, "in [0, 1]", lambda v: 0.0 <= v <= 1.0, "demo_fraction")

    @abstractmethod
    def begin(self, state: State, warm_up: Transition) -> State:
        """Return the agent as learning starts, given the transitions of the uniformly random steps before it."""

    @abstractmethod
    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Return the agent after one step of learning from a batch of transitions, and the metrics of that step."""

    @final
    def check_num_envs(self, num_envs: int) -> None:
        """Refuse more environments than the replay memory has transitions: it must hold one of each."""
        if self.replay_size < num_envs:
            raise BisacError(f"--replay-size must be at least the number of environments, {num_envs}.")

    @final
    def step_of(self, update: int, num_envs: int) -> int:
        """Return the first step of all environments at which the update-to-data ratio has made an update due."""
        return math.ceil((self.learning_starts + update / self.utd) / num_envs) * num_envs


class Rollout(NamedTuple):
    """Consecutive steps of several environments, all taken by one policy."""

    obs: Float[Array, "time env obs"]
    """The observations that were acted upon."""
    action: Float[Array, "time env act"]
    """The actions as drawn: they may lie outside [-1, 1], where the environment gets the nearest inside."""
    reward: Float[Array, "time env"]
    """The rewards of the actions."""
    discount: Float[Array, "time env"]
    """0 where the episode terminated, else 1."""
    next_obs: Float[Array, "time env obs"]
    """The observation the action led to, even where the episode ended and another began."""
    ended: Bool[Array, "time env"]
    """Where the episode ended, by termination or truncation."""


@dataclasses.dataclass(frozen=True)
class OnPolicy(Algorithm[State]):
    """The hyperparameters of learning from fresh rollouts, and what such an algorithm adds to the contract."""

    rollout: int = dataclasses.field(default=2048, metadata=among(512, 1024, 2048, 4096))
    """Environment steps between updates, summed over the environments."""
    normalise_observations: bool = True
    """Whether to shift and scale observations by their running mean and standard deviation."""
    normalise_rewards: bool = True
    """Whether to scale rewards by the running standard deviation of the discounted return."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "rollout")

    @abstractmethod
    def explore(self, state: State, obs: Float[Array, "env obs"], key: Key[Array, ""]) -> Float[Array, "env act"]:
        """Return actions as drawn, not yet cut to [-1, 1]: learning needs to know their probabilities."""

    @abstractmethod
    def update(
        self, state: State, rollout: Rollout, key: Key[Array, ""], remaining: Float[Array, ""]
    ) -> tuple[State, Metrics]:
        """Return the agent after learning from a rollout, and the metrics of that.

        `remaining` is the share of the run that is left: it falls from 1 to 0.
        """

    @final
    def usual_envs(self) -> int:
        """Return 8: the more environments, the less a rollout's steps depend on each other."""
        return 8

    @final
    def length(self, num_envs: int) -> int:
        """Return how many steps each environment takes in a rollout."""
        return max(1, self.rollout // num_envs)

    @final
    def step_of(self, update: int, num_envs: int) -> int:
        """Return the step at which the rollout of that number ends, which is when it is learned from."""
        return update * self.length(num_envs) * num_envs


Number = TypeVar("Number", int, float)


def number(hyperparameter: Number | Auto) -> Number:
    """Return a hyperparameter of a settled algorithm, in which no number is auto any longer."""
    assert hyperparameter != "auto", "an algorithm must be settled before it is used: algo.settled()"
    return hyperparameter
