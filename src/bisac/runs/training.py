"""A run as its user's own loop sees it: an iterator of events, with the policy, the agent and the step at hand."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, SupportsFloat

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.runs.events import Event, EventStream, Finished, Outcome, Started
from bisac.runs.session import Session
from bisac.runs.start import Attach


class Training:
    """A run under way: iterate over it to let it go on, and stop when you like.

    A loop that is left, by `break` or by an exception, leaves the run saved, and its folder free, at once. A run is
    iterated over once; `bisac.reopen` goes on with one that was left.
    """

    def __init__(
        self,
        begin: Callable[[Attach], EventStream],
        show: Callable[[Event], None],
        end_show: Callable[[], None] = lambda: None,
    ):
        self._session: Session | None = None
        self._folder: Path | None = None
        self._outcome: Outcome | None = None
        self._used = self._closed = False
        self._show, self._end_show = show, end_show
        self._events = begin(self._attach)

    def __iter__(self) -> Iterator[Event]:
        """Let the run go on, and yield what happens."""
        if self._used:
            raise BisacError(
                f"this run was iterated over already; bisac.reopen({str(self._folder)!r}) goes on with it."
            )
        self._used = True
        try:
            for event in self._events:
                if isinstance(event, Started):
                    self._folder = event.folders[0].path
                elif isinstance(event, Finished):
                    self._outcome = event.outcomes[0]
                self._show(event)
                yield event
        finally:
            self.close()
            self._end_show()
        if self._outcome is not None:
            self._outcome.pass_on_signal()

    def finish(self) -> Policy:
        """Let the run go on to its end, and return the final policy."""
        for _ in self:
            pass
        assert self._outcome is not None, "a run ends with an exception or finished"
        return self._outcome.policy

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Save the run where it is, and let go of its folder; nothing where it is over."""
        self._used = self._closed = True
        self._events.close()

    @property
    def policy(self) -> Policy:
        """The policy as it is now; it stays so while the run goes on."""
        if self._session is None and self._outcome is not None:  # it was over before it was opened
            return self._outcome.policy
        now = self._begun.policy()
        return Policy(now.spec, now.algo, _kept(now.actor), step=now.step)

    @property
    def agent(self) -> PyTree[Array]:
        """All that the algorithm has learned, as it is now: networks, optimisers, the temperature."""
        session = self._begun
        return _kept(session.collector.learning(session.state, 0).agent)

    @property
    def step(self) -> int:
        """Environment steps taken so far."""
        return self._session.state.step if self._session else 0

    @property
    def folder(self) -> Path:
        """The run's folder."""
        if self._folder is None:
            raise BisacError("the run has no folder yet: iterate over it first.")
        return self._folder

    def log(self, values: Mapping[str, SupportsFloat]) -> None:
        """Log numbers of your own: the next row has the mean of what was logged under each name since the last one.

        A name becomes a column of progress.csv and a scalar of TensorBoard's.
        """
        if self._closed:
            raise BisacError("this run is over, or was left: nothing more can be logged.")
        self._begun.log(values)

    def _attach(self, session: Session) -> None:
        self._session = session

    @property
    def _begun(self) -> Session:
        if self._session is None:
            raise BisacError("the run has not begun: iterate over it first.")
        return self._session


def _kept(tree: Any) -> Any:
    """Return a copy: the run's own arrays are given away with its next step."""
    return jax.tree.map(jnp.copy, tree)
