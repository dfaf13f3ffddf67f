"""Where runs lie on disk and how they are found: the one place that knows a sweep's layout and looks for run folders.

It must not know what is done with the runs that it finds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from bisac.errors import BisacError
from bisac.runs.folder import RunFolder, env_folder
from bisac.runs.log import LEADING, read_log

LOG = "sweep.log"
"""The file in a run's folder that holds what the run's process says."""


@dataclass(frozen=True)
class Evaluations:
    """What a run folder tells of its run: how it was made, and how well its policy did over time."""

    config: dict[str, Any]
    """The content of config.json; empty for a run that was never started."""
    steps: Float[np.ndarray, "time"]
    """Environment steps before each evaluation."""
    seconds: Float[np.ndarray, "time"]
    """Wall-clock time until each evaluation."""
    returns: Float[np.ndarray, "time"]
    """Mean return of each evaluation."""
    success_rate: float | None = None
    """Share of the last evaluation's episodes that succeeded; None where the task does not tell."""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def taken(self) -> int:
        """Steps until the last evaluation."""
        return int(self.steps[-1]) if len(self) else 0


def run_folder(sweep: Path, env: str, contestant: str, seed: int) -> Path:
    """Return where a sweep has the run of a task, a contestant and a seed."""
    return sweep / env_folder(env) / contestant / f"seed{seed}"


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Return the folders of the runs at the given paths and at any depth below them, each once."""
    found = set()
    for path in paths:
        below = {config.parent for config in path.rglob("config.json") if RunFolder(config.parent).progress.exists()}
        if not below:
            raise BisacError(f"there is no run folder at {path} or below it.")
        found |= below
    return sorted(found)


def read_evaluations(folder: Path) -> Evaluations:
    """Read a run's folder, which another process may be writing; a folder that is not there has no evaluations."""
    found = RunFolder(folder)
    rows = [row for row in read_log(found) if row["eval_return"] is not None]
    table = np.array([[row[name] for name in LEADING[:3]] for row in rows], float).reshape(-1, 3)
    # From the first evaluation that gave no number on, a run tells nothing: it counts as cut short there.
    steps, seconds, returns = table[np.isfinite(table).all(axis=1).cumprod().astype(bool)].T
    success_rate = rows[len(steps) - 1].get("eval_success_rate") if len(steps) else None
    return Evaluations(found.read_config() if found.config.exists() else {}, steps, seconds, returns, success_rate)
