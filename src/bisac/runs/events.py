"""What a run tells while it goes: typed events, in the order in which things happen.

The display, sweeps, trackers and a user's own loop all consume the same events. Where a session carries several runs,
`run` says which one is meant, counted from 0; whatever is told has been written before.
"""

import signal
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bisac.collect.collector import Evaluation
from bisac.policies.policy import Policy
from bisac.runs.folder import RunFolder
from bisac.runs.log import Row


class Started(NamedTuple):
    """The runs are about to take their first step, or to go on."""

    folders: tuple[RunFolder, ...]
    """The folder of each run; `.path` is where it lies."""
    step: int
    """Steps that were taken before."""
    steps: int
    """Steps after which the runs end."""


class Advanced(NamedTuple):
    """Steps were taken."""

    step: int
    """Steps taken so far by each run."""


class EpisodeEnded(NamedTuple):
    """A training episode ended."""

    run: int
    """Which of the runs, counted from 0."""
    step: int
    """Steps that the run has taken."""
    episode_return: float
    """The sum of the episode's rewards."""
    episode_length: int
    """The episode's steps."""
    info: Mapping[str, Any] = MappingProxyType({})
    """What the environment told with the last step: the statistics of wrappers, whether it succeeded, and so on."""


class Evaluated(NamedTuple):
    """The deterministic policy was evaluated."""

    run: int
    """Which of the runs, counted from 0."""
    step: int
    """Steps that the run has taken."""
    returns: np.ndarray
    """The return of each episode."""
    lengths: np.ndarray
    """The steps of each episode."""
    successes: np.ndarray | None = None
    """Which episodes succeeded; None where the environment does not tell."""

    @property
    def success_rate(self) -> float:
        """The share of episodes that succeeded; not a number where the environment does not tell."""
        return Evaluation(self.returns, self.lengths, self.successes).success_rate


class Logged(NamedTuple):
    """A row was added to the log."""

    run: int
    """Which of the runs, counted from 0."""
    row: Row
    """The values by column; None where there is nothing to tell yet."""


class Saved(NamedTuple):
    """A checkpoint was written."""

    run: int
    """Which of the runs, counted from 0."""
    step: int
    """Steps that the run has taken."""
    path: Path
    """The checkpoint's folder."""


class Tracked(NamedTuple):
    """A tracker is told of the run, from its first row on."""

    run: int
    tracker: str
    where: str
    """Where to look: an address, or a folder."""


class Warned(NamedTuple):
    """Something went wrong that does not end the run."""

    text: str
    """A sentence that says what."""


class Outcome(NamedTuple):
    """What is left of a run when it stops."""

    policy: Policy
    """The policy at the end."""
    folder: RunFolder
    """The run's folder; `.path` is where it lies."""
    rows: list[Row]
    """The rows of its log."""
    stopped_by: int | None
    """The signal that stopped it early, if one did."""
    resumable: bool
    """Whether there is a checkpoint to go on from."""

    def pass_on_signal(self) -> None:
        """Raise what the signal that ended the run early asks for, now that everything is saved."""
        if self.stopped_by == signal.SIGINT:
            raise KeyboardInterrupt
        if self.stopped_by is not None:
            raise SystemExit(128 + self.stopped_by)


class Finished(NamedTuple):
    """The runs are over, at their end or by a signal; nothing follows."""

    outcomes: tuple[Outcome, ...]
    """What is left of each run."""


Event = Started | Advanced | EpisodeEnded | Evaluated | Logged | Saved | Tracked | Warned | Finished


class EventStream:
    """The events of runs under way: iterate over it to let them go on.

    A loop that is left, by `break` or by an exception, leaves the runs saved and the folders free at once, whether the
    stream has a name or not.
    """

    def __init__(self, events: Generator[Event, None, None]):
        self._events = events

    def __iter__(self) -> Iterator[Event]:
        """Let the runs go on, and yield what happens."""
        try:
            yield from self._events
        finally:
            self.close()

    def close(self) -> None:
        """Save the runs where they are, and let go of their folders; nothing where they are over."""
        self._events.close()

    def __enter__(self) -> "EventStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
