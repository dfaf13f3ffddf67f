"""What the commands that train many runs have in common: the settings of each, and where they run."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bisac.errors import BisacError
from bisac.machine import cores
from bisac.runs.settings import Settings, SharedSettings
from bisac.runs.trackers import check_installed
from bisac.sweeps.engines.base import Engine
from bisac.sweeps.engines.local import LocalEngine
from bisac.sweeps.engines.ray import RayEngine


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the runs are trained."""

    engine: Literal["local", "ray"] = "local"
    """Where to run: on this machine, or on a Ray cluster whose nodes share the folder."""
    address: str | None = None
    """The Ray cluster's address, such as auto or ray-head:6379; by default one of this machine alone is started."""
    cores: int = 1
    """Cores that each run is pinned to."""
    jobs: int | None = None
    """Runs at a time on this machine; by default as many as its cores allow."""

    def folder(self, out: Path) -> Path:
        """Return a folder as the runs find it: on a Ray cluster, their processes have working folders of their own."""
        return out.resolve() if self.engine == "ray" else out

    def make_engine(self) -> Engine:
        """Return the engine that runs them."""
        if self.cores < 1 or (self.jobs is not None and self.jobs < 1):
            raise BisacError("--cores and --jobs must be at least 1.")
        if self.engine == "ray":
            if self.jobs is not None:
                raise BisacError("--jobs is for --engine local; on a Ray cluster, --cores decides how many runs fit.")
            return RayEngine(self.address, self.cores)
        if self.address is not None:
            raise BisacError("--address is for --engine ray.")
        return LocalEngine(self.jobs or max(1, cores() // self.cores), self.cores)


def settings_in(out: Path, run: SharedSettings, **own: Any) -> Settings:
    """Return the settings of the runs of a folder, whose name a tracker puts them together by."""
    check_installed(run.track)
    if not run.checkpoint_every:
        raise BisacError(
            "--checkpoint-every must be at least 1 here: what was stopped goes on from its runs' checkpoints."
        )
    group = run.track_group or (None if run.track == "none" else out.resolve().name)
    return Settings(**dataclasses.asdict(dataclasses.replace(run, track_group=group)), **own)
