"""What a sweep's folder tells: the runs' curves, which of them are complete, and how they were made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bisac.errors import BisacError
from bisac.runs.folder import RunFolder, env_folder
from bisac.runs.log import read_log
from bisac.sweeps.plan import Contestant
from bisac.sweeps.record import Record, read_record


@dataclass(frozen=True)
class Curve:
    """A run's evaluations."""

    env: str
    contestant: str
    seed: int
    budget: int
    """Steps that it was planned for."""
    steps: Float[np.ndarray, "time"]
    seconds: Float[np.ndarray, "time"]
    returns: Float[np.ndarray, "time"]
    config: dict[str, Any]
    """Its config.json; empty if it was never started."""

    def is_of(self, env: str, contestant: str) -> bool:
        """Whether it is one of a contestant's on a task."""
        return (self.env, self.contestant) == (env, contestant)

    @property
    def complete(self) -> bool:
        """Whether it took all the steps that it was planned for."""
        return self.taken >= self.budget

    @property
    def taken(self) -> int:
        """Steps until its last evaluation."""
        return int(self.steps[-1]) if len(self.steps) else 0


@dataclass(frozen=True)
class SweepData:
    """All curves of a sweep, and its record."""

    record: Record
    curves: list[Curve]

    @property
    def envs(self) -> list[str]:
        """The tasks, in the order they were given in."""
        return self.record.envs

    @property
    def contestants(self) -> list[Contestant]:
        """Whoever competes, in the order given."""
        return self.record.contestants

    def of(self, env: str, contestant: str) -> list[Curve]:
        """The runs of a contestant on a task that are complete."""
        return [c for c in self.curves if c.is_of(env, contestant) and c.complete]

    @property
    def incomplete(self) -> list[Curve]:
        """The runs that failed, were stopped, or still run."""
        return [curve for curve in self.curves if not curve.complete]


def read_sweep(folder: Path) -> SweepData:
    """Read every run of a sweep; those that never started count as runs of no steps."""
    record = read_record(folder)
    curves = [_read_curve(record, folder, *run) for run in record.runs]
    if not any(len(curve.steps) for curve in curves):
        raise BisacError(f"no run in {folder} has been evaluated yet; there is nothing to report.")
    return SweepData(record, curves)


def _read_curve(record: Record, folder: Path, env: str, contestant: str, seed: int) -> Curve:
    run_dir = RunFolder(folder / env_folder(env) / contestant / f"seed{seed}")
    rows = [row for row in read_log(run_dir) if row["eval_return"] is not None]
    table = np.array([[row[column] for column in ("step", "wall_time", "eval_return")] for row in rows], float)
    table = table.reshape(-1, 3)
    # From the first evaluation that gave no number on, a run tells nothing: it counts as cut short there.
    steps, seconds, returns = table[np.isfinite(table).all(axis=1).cumprod().astype(bool)].T
    config = run_dir.read_config() if run_dir.config.exists() else {}
    return Curve(env, contestant, seed, int(record.settings["steps"]), steps, seconds, returns, config)
