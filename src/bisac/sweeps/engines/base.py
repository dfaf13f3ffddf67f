"""The contract of an engine: how a sweep starts the processes of its runs, and hears of their end."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from bisac.sweeps.plan import PlannedRun


@dataclass(frozen=True)
class EndedProcess:
    """How a run's process ended, or why there was none."""

    run: PlannedRun
    """The run whose process it was."""
    code: int | None
    """The process's exit code; None if it had none, or that is lost."""
    problem: str = ""
    """Why there is no exit code."""
    lost: bool = False
    """Whether what it ran on was lost, by no fault of its own: the run is to go on elsewhere."""

    def each(self) -> Iterator["EndedProcess"]:
        """Give the same for each run that the process trained."""
        return (replace(self, run=run) for run in self.run.all)

    @property
    def stopped(self) -> bool:
        """Whether a signal ended it, which it heard (and saved itself) or did not live to hear."""
        signals = (signal.SIGINT, signal.SIGTERM)
        return self.code in (*(128 + number for number in signals), *(-number for number in signals))

    @property
    def reason(self) -> str:
        """How it ended, in words."""
        return self.problem or f"exit code {self.code}"


@runtime_checkable
class Engine(Protocol):
    """Whatever runs the processes of planned runs."""

    @property
    def slots(self) -> int:
        """Runs that it has room for at a time; none while a cluster has no node that is large enough."""
        ...

    def room(self) -> bool:
        """Whether it takes another run now."""
        ...

    def start(self, run: PlannedRun) -> None:
        """Begin a run or go on with it, in a process of its own; an OSError tells why there is none."""

    def ended(self) -> list[EndedProcess]:
        """Return the processes that have ended since the last call."""
        ...

    def stop(self, number: int, run: PlannedRun | None = None) -> None:
        """Pass a signal on to every process, or to that of one run: save and end."""

    def close(self) -> None:
        """End whatever still runs, at once."""
