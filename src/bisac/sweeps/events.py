"""What a sweep tells while it goes, as typed events; the display, tests and a user's own loop consume the same ones."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from bisac.sweeps.engines.base import EndedProcess
from bisac.sweeps.plan import PlannedRun
from bisac.sweeps.progress import RunProgress


@dataclass(frozen=True)
class RunStarted:
    """A run's process has begun or gone on with its run."""

    run: PlannedRun
    """The run that was started."""


@dataclass(frozen=True)
class RunEnded:
    """A run's process has ended, or could not be started."""

    process: EndedProcess
    """The process, with its run and how it ended."""
    progress: RunProgress
    """How far the run had come by then."""


@dataclass(frozen=True)
class RunLost:
    """What a run's process ran on was lost, a node of a cluster, say; the run waits for room to go on elsewhere."""

    process: EndedProcess
    """The process, with its run and what was lost."""


@dataclass(frozen=True)
class SweepProgressed:
    """How far the whole sweep has come; told about twice a second."""

    runs: Sequence[PlannedRun]
    """All runs of the sweep."""
    told: Mapping[Path, RunProgress]
    """How far each run has come, by its folder."""
    running: AbstractSet[Path]
    """The folders of the runs whose processes are at work."""
    failed: Mapping[Path, str]
    """How the runs ended that ended before they were complete, by their folders."""
    remaining: float | None
    """Seconds until all are complete; None while nothing has been measured."""


@dataclass(frozen=True)
class SweepFinished:
    """The sweep has ended: nothing is left to run, or a signal stopped it. It is the last event."""

    complete: Sequence[PlannedRun]
    """The runs that are complete."""
    failed: Mapping[Path, str]
    """How the runs ended that ended before they were complete, by their folders."""
    stopped_by: int | None
    """The signal that stopped the sweep, if one did."""


SweepEvent = RunStarted | RunEnded | RunLost | SweepProgressed | SweepFinished
"""Whatever a sweep may tell."""
