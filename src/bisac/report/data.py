"""What a sweep's folder tells a report: its record, and every run's evaluations. It must not judge them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bisac.errors import BisacError
from bisac.plotting.looks import Look, assign_looks
from bisac.sweeps.contestants import Contestant
from bisac.sweeps.folders import Evaluations, read_evaluations, run_folder
from bisac.sweeps.record import SweepRecord, read_record


@dataclass(frozen=True)
class SweptRun:
    """A run of a sweep, as far as it has come."""

    env: str
    """The task's id."""
    contestant: str
    """The name of the contestant whose run it is."""
    seed: int
    """The run's seed."""
    budget: int
    """Steps that the run was planned for."""
    evaluations: Evaluations
    """What the run's folder tells; nothing if it was never started."""

    def is_of(self, env: str, contestant: str) -> bool:
        """Whether it is one of a contestant's runs on a task."""
        return (self.env, self.contestant) == (env, contestant)

    @property
    def complete(self) -> bool:
        """Whether it took all the steps that it was planned for."""
        return self.evaluations.taken >= self.budget


@dataclass(frozen=True)
class SweepData:
    """What a report is made of: all runs of a sweep, and the sweep's record."""

    record: SweepRecord
    """What sweep.json holds."""
    runs: list[SweptRun]
    """Every run that was ever planned, complete or not."""

    @property
    def envs(self) -> list[str]:
        """The tasks, in the order they were given in."""
        return self.record.envs

    @property
    def contestants(self) -> list[Contestant]:
        """Whoever competes, in the order they were given in."""
        return self.record.contestants

    @cached_property
    def looks(self) -> dict[str, Look]:
        """The label, colour and line of each contestant, by its name."""
        return assign_looks((contestant.algo, *contestant.words) for contestant in self.contestants)

    def of(self, env: str, contestant: str) -> list[SweptRun]:
        """Return the runs of a contestant on a task that are complete."""
        return [run for run in self.runs if run.is_of(env, contestant) and run.complete]

    @property
    def incomplete(self) -> list[SweptRun]:
        """The runs that failed, were stopped, or still run."""
        return [run for run in self.runs if not run.complete]


def read_sweep(folder: Path) -> SweepData:
    """Read every run of a sweep; those that never started count as runs of no steps."""
    record = read_record(folder)
    budget = int(record.settings["steps"])
    runs = [
        SweptRun(env, contestant, seed, budget, read_evaluations(run_folder(folder, env, contestant, seed)))
        for env, contestant, seed in record.runs
    ]
    if not any(len(run.evaluations) for run in runs):
        raise BisacError(f"no run in {folder} has been evaluated yet; there is nothing to report.")
    return SweepData(record, runs)
