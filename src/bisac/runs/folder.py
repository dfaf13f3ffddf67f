"""The folder of a run: what lies where, and that nobody's earlier run is lost."""

import json
import os
import platform
import shutil
import sys
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any

from bisac.errors import BisacError
from bisac.machine import cores
from bisac.policies.card import CARD, is_card
from bisac.policies.export import exported_files
from bisac.storage import exclusive, read_file, write_atomic

RECORDED_VERSIONS = ("bisac", "jax", "jaxlib", "equinox", "optax", "gymnasium", "mujoco", "numpy")

KINDS = {"env": str, "algo": str, "hyperparameters": dict, "run": dict, "versions": dict, "command": list}
"""What config.json holds, as JSON's kinds."""


class RunFolder:
    """The paths inside a run's folder."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.progress = self.path / "progress.csv"
        self.policy = self.path / "policy.safetensors"
        self.best = self.path / "best.safetensors"
        self.curve = self.path / "learning_curve.png"
        self.demos = self.path / "demos.safetensors"
        self.tracking = self.path / "tracking.json"
        self.videos = self.path / "videos"
        self.checkpoints = self.path / "checkpoints"

    def held(self) -> AbstractContextManager[None]:
        """Be the only process that trains in this folder."""
        return exclusive(self.path, f"another process is training in {self.path}; wait for it, or choose another.")

    @property
    def holds_a_run(self) -> bool:
        """Whether there is a run in it; one whose config.json was lost goes on from its checkpoints."""
        return self.config.exists() or self.checkpoints.is_dir()

    def check_free(self, overwrite: bool) -> None:
        """Refuse a folder that holds a run already, unless that is to be overwritten."""
        if self.holds_a_run and not overwrite:
            raise BisacError(
                f"{self.path} holds a run already; 'bisac resume' continues it; choose another --out, or "
                f"--overwrite to lose that run."
            )

    def write_config(self, config: dict[str, Any]) -> None:
        """Record what the run is made of, with versions and the command."""
        write_atomic(self.config, (json.dumps(config | provenance(), indent=2) + "\n").encode())

    def read_config(self) -> dict[str, Any]:
        """Return what `write_config` recorded."""
        if not self.config.exists():
            raise BisacError(f"{self.path} is not a run folder: it has no config.json.")
        try:
            config = json.loads(read_file(self.config))
        except (ValueError, RecursionError) as error:
            raise BisacError(f"{self.config} is damaged: {error}.") from error
        if not isinstance(config, dict):
            raise BisacError(f"{self.config} is damaged: it is not a JSON object.")
        for name, kind in KINDS.items():
            if not isinstance(config.get(name, kind()), kind):
                raise BisacError(f"{self.config} is damaged: {name} is not what a run records.")
        return config

    def clear(self) -> None:
        """Remove a run's own files, if there are any, and nothing else that a user may have put beside them."""
        if not self.holds_a_run:
            return
        own = [
            self.progress,
            self.policy,
            self.best,
            self.curve,
            self.demos,
            self.tracking,
            *self.path.glob("events.out.*"),
        ]
        own += [file for policy in (self.policy, self.best) for file in exported_files(policy.with_suffix(""))]
        card = self.path / CARD
        for folder in (self.videos, self.checkpoints):
            shutil.rmtree(folder, ignore_errors=True)
        for path in own + ([card] if is_card(card) else []) + [self.config]:  # last: until then it is a run's folder
            path.unlink(missing_ok=True)


def default_path(env_id: str, algo: str, seed: int) -> Path:
    """Return where a run goes unless told otherwise: seedK, or seedK-2 and so on where that holds a run already."""
    folder = Path("runs") / env_folder(env_id) / algo
    names = (f"seed{seed}" if n == 1 else f"seed{seed}-{n}" for n in count(1))
    return next(folder / name for name in names if not RunFolder(folder / name).holds_a_run)


def env_folder(env_id: str) -> str:
    """Return an environment's id as the name of a folder."""
    return env_id.replace("/", "-").replace(":", "-")


def provenance() -> dict[str, Any]:
    """Return what a reader needs to reproduce a run: versions, machine, command."""
    return {
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in RECORDED_VERSIONS},
        "platform": platform.platform(),
        "cores": cores(),
        "command": [_program(sys.argv[0]), *sys.argv[1:]],
    }


def _program(path: str) -> str:
    """Return `bisac`, wherever it is installed and however it was started; else the user's script."""
    ours = Path(path).name == "bisac" or Path(path).parts[-2:] == ("bisac", "__main__.py")
    return "bisac" if ours else path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
