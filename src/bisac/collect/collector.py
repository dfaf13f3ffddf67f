"""The seam: what gathers experience, and advances learning with it, looks like this to everything above.

A session, its log, its checkpoints and its display know a `Collector`, and nothing of where environments live. It may
carry several runs of one algorithm side by side, which differ in their seeds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, PyTree

from bisac.algos import Algorithm
from bisac.collect.dataset import Dataset
from bisac.collect.learning import Flat, Learning, with_new_tally
from bisac.collect.side_by_side import one_of
from bisac.envs.host.backends import BackendName
from bisac.envs.task import EnvSource
from bisac.policies.policy import Policy
from bisac.types import Spec


@dataclass(frozen=True)
class Request:
    """What a session asks of a collector."""

    algo: Algorithm[Any]
    """The algorithm, its hyperparameters settled."""
    seeds: tuple[int, ...]
    """The seed of each run that the collector carries."""
    num_envs: int
    """Environments that each run steps together."""
    steps: int
    """Environment steps after which the runs end."""
    eval_episodes: int
    """Episodes of each evaluation."""
    backend: BackendName = "sync"
    """Where the host steps its environments; other collectors have no use for it."""
    eval_env: EnvSource | None = None
    """What to evaluate in, for the host; None is the task itself."""
    init: Callable[[Learning, int], Learning] | None = None
    """What makes of fresh learning, in so many environments, one that starts from another run's. Such runs act by the
    policy from the first step on, and `begin_learning` is none of theirs."""
    demos: Dataset | None = None
    """What somebody else gathered, for the host to learn from too."""


class Episode(NamedTuple):
    """A training episode that has ended."""

    total_reward: float
    length: int
    info: Mapping[str, Any] = MappingProxyType({})
    """What the environment told with the last step."""

    @property
    def success(self) -> bool | None:
        """Whether it succeeded; None where the environment does not tell."""
        return success_of(self.info)


class Evaluation(NamedTuple):
    """Undiscounted returns and lengths of an evaluation's episodes."""

    returns: np.ndarray
    lengths: np.ndarray
    successes: np.ndarray | None = None
    """Which of them succeeded; None where the environment does not tell."""

    @property
    def success_rate(self) -> float:
        """The share of episodes that succeeded; not a number where the environment does not tell."""
        return float("nan") if self.successes is None else float(self.successes.mean())


def success_of(info: Mapping[str, Any]) -> bool | None:
    """Return what the info of an episode's last step says of its success, by the names that are in use for it."""
    for name in ("is_success", "success"):
        value = np.asarray(info.get(name))
        if value.size == 1 and value.dtype.kind in "biuf":
            return bool(value.item())
    return None


class Part(NamedTuple):
    """What changes of one run, or of several whose arrays have a leading axis, one entry a run."""

    flat: Flat
    """What learning holds, taken apart into a tuple of arrays."""
    place: Any
    """Where the environments are, as the collector needs to know it."""


class State(NamedTuple):
    """All of the runs that changes while experience is gathered. It is whole between two calls of `advance`."""

    parts: tuple[Part, ...]
    """The runs, as many in each part as in any other."""
    step: int = 0
    """Environment steps that each run has taken, summed over its environments."""
    updates: int = 0
    """Updates of the agent so far."""

    @property
    def flat(self) -> Flat:
        """What learning holds, of a run by itself."""
        return self.parts[0].flat

    @property
    def place(self) -> Any:
        """Where the environments are, of a run by itself."""
        return self.parts[0].place

    def with_new_tally(self) -> "State":
        """Return the same with the sums and counts of metrics at zero."""
        return self._replace(
            parts=tuple(part._replace(flat=Flat.of(with_new_tally(part.flat.whole))) for part in self.parts)
        )


class Snapshot(NamedTuple):
    """One run between two steps, as a checkpoint keeps it."""

    learning: Learning
    place: PyTree[Array | np.ndarray]
    """The collector's own arrays."""
    facts: Mapping[str, Any]
    """What the collector has to remember that is no array, as JSON can hold it."""
    step: int
    updates: int


@runtime_checkable
class Acts(Protocol):
    """Whatever answers a batch of observations with actions in the environment's own units."""

    def predict(self, observation: np.ndarray, /) -> tuple[np.ndarray, None]:
        """Return an action for each observation."""
        ...


class Collector(ABC):
    """Gathers experience for a run, or for several side by side, and lets the agent learn from it."""

    spec: Spec
    """Sizes and action bounds of the task."""
    request: Request
    """What the session asked for."""
    takes_turns: bool = False
    """Whether evaluations are played in the very environment that is trained in."""
    notes: tuple[str, ...] = ()
    """What the user should know of the task before it is trained on."""

    @abstractmethod
    def start(self) -> State:
        """Return the state of runs that are about to take their first step."""

    @abstractmethod
    def advance(self, state: State, until: int) -> tuple[State, list[list[Episode]]]:
        """Take steps, learn from them, and return the new state with each run's episodes that ended.

        It takes at least one step of all environments. It returns when `until` steps have been taken at the latest, or
        as soon after as it can, and may return before, so that its caller hears signals. An exception leaves `state`
        as good as it was, and `snapshot` with it.
        """

    @abstractmethod
    def evaluate(self, policy: Policy, run: int) -> Evaluation:
        """Play the evaluation's episodes of a run, the same ones at each call."""

    def at_rest(self, state: State) -> bool:  # noqa: ARG002
        """Return whether this is a moment for what takes long: an evaluation, a checkpoint. It waits for the next."""
        return True

    def rejoined(self, state: State) -> State:
        """Return the state in which to go on after an evaluation, which may have used the same environments."""
        return state

    @abstractmethod
    def snapshot(self, state: State, run: int) -> Snapshot:
        """Return one of the runs as a checkpoint keeps it."""

    @abstractmethod
    def shapes(self, facts: Mapping[str, Any]) -> tuple[Learning, PyTree[Any]]:
        """Return shapes and dtypes of the arrays in a snapshot of one run that has these facts."""

    @abstractmethod
    def restore(self, snapshots: Sequence[Snapshot]) -> tuple[State, list[int]]:
        """Return the state that the runs' snapshots were taken of, all at one step.

        With it, for each run, how many environments did not come back as they were, and begin a new episode.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the environments back."""

    @final
    def learning(self, state: State, run: int, remembered: bool = True) -> Learning:
        """Return what learning holds for one of the runs. It shares memory with the state: use it before `advance`.

        Without what is `remembered`, the replay memory is left out: of several runs it would have to be copied.
        """
        size = len(self.request.seeds) // len(state.parts)
        whole = state.parts[run // size].flat.whole
        if not remembered:
            whole = eqx.tree_at(lambda t: t.replay, whole, None, is_leaf=lambda x: x is None)
        return one_of(whole, run % size, size)
