"""The manifest of a checkpoint: which files belong to it, and what they must contain."""

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bisac.errors import BisacError, reason
from bisac.machine import own_version
from bisac.storage import read_file

FORMAT, VERSION = "bisac-checkpoint", 2
READABLE = (1, 2)
"""Versions that are read; VERSION is the one that is written."""
PIECE_ROWS = 4096
"""Rows of the replay memory in a file: a save rewrites at most so many that it wrote before."""

MANIFEST, STATE, POLICY, BEST, PROGRESS = (
    "manifest.json", "state.safetensors", "policy.safetensors", "best.safetensors", "progress.csv"
)  # fmt: skip
FILES = (STATE, POLICY, BEST, PROGRESS)
FOLDER_NAME = re.compile(r"step-\d{12}")
PIECE_NAME = re.compile(r"\d{12}-\d{12}-\d{12}\.safetensors")
"""First row, row after the last, and the step of the checkpoint that wrote it."""


class DamagedError(BisacError):
    """A checkpoint is not what was written."""


@dataclass(frozen=True)
class Stored:
    """A file as it was written."""

    name: str
    size: int
    sha256: str

    @staticmethod
    def of(name: str, content: bytes) -> "Stored":
        """Return the mark of a file's content."""
        return Stored(name, len(content), hashlib.sha256(content).hexdigest())

    def read(self, folder: Path) -> bytes:
        """Return the file's content, if it is still what was written."""
        try:
            content = read_file(folder / self.name)
        except BisacError as error:
            raise DamagedError(str(error)) from error
        if len(content) != self.size:
            raise DamagedError(f"{folder / self.name} has {len(content):,} bytes instead of {self.size:,}.")
        if Stored.of(self.name, content) != self:
            raise DamagedError(f"{folder / self.name} is damaged: its checksum is wrong.")
        return content


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `end` of all that was ever added to the replay memory, in a file."""

    start: int
    end: int
    file: Stored


@dataclass(frozen=True)
class Checkpoint:
    """What the manifest of a checkpoint says."""

    path: Path
    config: dict[str, Any]
    run: dict[str, Any]
    files: dict[str, Stored]
    pieces: list[Piece]
    version: int = VERSION

    @property
    def step(self) -> int:
        """The environment steps that the run had taken."""
        return self.run["step"]

    @property
    def rows(self) -> int:
        """The rows that were ever added to the replay memory: one a step, after those that it began with."""
        return self.step + self.run["record"].get("remembered", 0)

    def read(self, name: str) -> bytes:
        """Return one of its files; empty where there was nothing to write."""
        return self.files[name].read(self.path) if name in self.files else b""

    def verify(self) -> None:
        """Read every file once; raises where one is not what was written."""
        for file in self.files.values():
            file.read(self.path)
        for piece in self.pieces:
            piece.file.read(self.path.parent / "replay")


def read_manifest(path: Path) -> Checkpoint:
    """Return what a checkpoint folder says it holds."""
    try:
        manifest = json.loads(read_file(path / MANIFEST))
        claimed = manifest.pop("sha256")
    except (BisacError, AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path / MANIFEST} is missing or damaged: {error}.") from error
    if claimed != _digest(manifest):
        raise DamagedError(f"{path / MANIFEST} is damaged: its checksum is wrong.")
    version = manifest.get("version")
    if manifest.get("format") != FORMAT or isinstance(version, bool) or version not in READABLE:
        written_by = manifest.get("written_by", "of version 0.1 or earlier")
        raise BisacError(
            f"{path} has checkpoint format {manifest.get('format')} {version}; this bisac reads {FORMAT} "
            f"{' and '.join(map(str, READABLE))}: resume it with the bisac that wrote it, {written_by}."
        )
    try:
        files = {name: Stored(name, **mark) for name, mark in manifest["files"].items() if name in FILES}
        pieces = [Piece(p["start"], p["end"], Stored(**p["file"])) for p in manifest["replay"]]
        run = _as_of_version_1(manifest["run"]) if version == 1 else dict(manifest["run"])
        checkpoint = Checkpoint(path, dict(manifest["config"]), run, files, pieces, version)
        _check_manifest(checkpoint)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path / MANIFEST} does not describe a checkpoint: {reason(error)}.") from error
    return checkpoint


def _as_of_version_1(run: dict[str, Any]) -> dict[str, Any]:
    """Return what version 1 says of a run in the present words: it knew the host's collector only."""
    collector = {"steps": run["env_steps"], "started": run["episodes_started"], "episodes": run["episodes"]}
    return {name: run[name] for name in ("step", "updates", "spec", "record")} | {"collector": collector}


def manifest_bytes(checkpoint: Checkpoint) -> bytes:
    """Return the content of a checkpoint's manifest."""
    files = {file.name: {"size": file.size, "sha256": file.sha256} for file in checkpoint.files.values()}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": own_version(),
        "config": checkpoint.config,
        "run": checkpoint.run,
        "files": files,
        "replay": [dataclasses.asdict(piece) for piece in checkpoint.pieces],
    }
    return json.dumps(content | {"sha256": _digest(content)}, indent=1).encode()


def _digest(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest's meaning, whatever its white space."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _check_manifest(checkpoint: Checkpoint) -> None:
    """Refuse a manifest that no save wrote: a stranger's file can claim anything under a right checksum."""
    marks = [*checkpoint.files.values(), *(piece.file for piece in checkpoint.pieces)]
    ends = [(piece.start, piece.end) for piece in checkpoint.pieces]
    sound = (
        checkpoint.path.name == f"step-{checkpoint.step:012d}"
        and {STATE, POLICY, PROGRESS} <= checkpoint.files.keys()
        and all(PIECE_NAME.fullmatch(piece.file.name) for piece in checkpoint.pieces)
        and all(isinstance(mark.size, int) and isinstance(mark.sha256, str) for mark in marks)
        and all(0 <= start < end <= start + PIECE_ROWS for start, end in ends)
        and all(left[1] == right[0] for left, right in pairwise(ends))
        and checkpoint.rows >= checkpoint.step
        and (not ends or ends[-1][1] == checkpoint.rows)
    )
    if not sound:
        raise ValueError("its fields contradict each other")
