"""How far the runs of a sweep have come, read from their own folders, and how long the rest of them takes.

Nothing else remembers what a run has come to, so a sweep can be stopped in any way and gone on with on any machine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bisac.errors import BisacError
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.sweeps.folders import LOG
from bisac.sweeps.plan import PlannedRun


@dataclass(frozen=True)
class RunProgress:
    """How far a run has come, as its folder tells."""

    step: int
    """Environment steps taken until the last row of its log."""
    seconds: float
    """Wall-clock time that those took."""
    eval_return: float | None
    """The return of its last evaluation; None before the first."""
    rate: float | None
    """Steps a second over the last rows of its log; None before the first."""
    complete: bool
    """Whether it took all of its steps and left its policy, or is a copy of a run's numbers alone."""


def progress_of(run: PlannedRun) -> RunProgress:
    """Read how far a run has come from its folder, which another process may be writing.

    One whose log is damaged counts as not begun: its process writes the log anew from the run's checkpoint.
    """
    nothing = RunProgress(0, 0.0, None, None, False)
    try:
        rows = read_log(RunFolder(run.folder))
    except BisacError:
        return nothing
    if not rows:
        return nothing
    step, seconds = int(rows[-1]["step"] or 0), rows[-1]["wall_time"] or 0.0
    earlier = rows[-6] if len(rows) > 5 else {"step": 0.0, "wall_time": 0.0}
    steps, elapsed = step - (earlier["step"] or 0.0), seconds - (earlier["wall_time"] or 0.0)
    complete = step >= run.settings.steps and (RunFolder(run.folder).policy.exists() or _only_record_kept(run.folder))
    return RunProgress(step, seconds, rows[-1]["eval_return"], steps / elapsed if elapsed > 0 else None, complete)


def _only_record_kept(folder: Path) -> bool:
    """Whether a run's folder is a copy of its numbers alone: what it has come to, and nothing to go on with."""
    return not ((folder / LOG).exists() or RunFolder(folder).checkpoints.exists())


def remaining_seconds(runs: Iterable[PlannedRun], told: Mapping[Path, RunProgress], slots: int) -> float | None:
    """Return the time until all runs are complete, from what steps have cost so far; None while none was measured."""
    runs = list(runs)
    measured = [run for run in runs if told[run.folder].step]
    if not measured:
        return None

    def cost(run: PlannedRun) -> float:
        like = [other for other in measured if (other.env, other.contestant) == (run.env, run.contestant)]
        like = like or [other for other in measured if other.env == run.env] or measured
        return sum(told[o.folder].seconds for o in like) / sum(told[o.folder].step for o in like)

    left = [cost(run) * (run.settings.steps - told[run.folder].step) for run in runs if not told[run.folder].complete]
    return max(sum(left) / max(1, slots), *left) if left else 0.0
