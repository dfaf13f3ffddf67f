"""Checkpoints on disk: the whole of a run, written so that at every moment a whole one is there.

A checkpoint is a folder `step-N` with a manifest; the replay memory lies beside it in pieces of consecutive rows, so
that a save writes only the rows that are new to it. The two checkpoints that are kept share no file: each is built on
the pieces of the one before the last, and so no single damaged file can cost both. docs/checkpoints.md has the format.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bisac.collect import replay as replay_memory
from bisac.collect.collector import Snapshot
from bisac.collect.replay import Replay
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.runs.checkpoint.contents import facts_of, files_of
from bisac.runs.checkpoint.manifest import (
    FOLDER_NAME,
    MANIFEST,
    PIECE_NAME,
    PIECE_ROWS,
    Checkpoint,
    DamagedError,
    Piece,
    Stored,
    manifest_bytes,
    read_manifest,
)
from bisac.runs.folder import RunFolder
from bisac.runs.record import Record
from bisac.storage import PARTIAL, pack_arrays, sync_folder, write_atomic, write_from
from bisac.types import Transition

KEPT = 2


class Checkpoints:
    """The checkpoints of one run folder. Only the process that trains there may write them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.kept: list[Checkpoint] = []
        """The whole checkpoints, the newest last."""

    def recover(self) -> list[str]:
        """Find the whole checkpoints, and return a sentence for each newer one that is damaged."""
        problems = []
        for path in sorted(self.folder.glob("step-*"), reverse=True):
            if FOLDER_NAME.fullmatch(path.name):
                try:
                    checkpoint = read_manifest(path)
                    checkpoint.verify()
                    self.kept.insert(0, checkpoint)
                except DamagedError as error:
                    if len(self.kept) < KEPT:  # else an older one, which may have been half removed
                        problems.append(str(error))
        return problems

    def hold(self, step: int) -> bool:
        """Return whether the newest checkpoint is that of a step."""
        return bool(self.kept) and self.kept[-1].step == step

    def save(
        self,
        snapshot: Snapshot,
        record: Record,
        config: dict[str, Any],
        policy: Policy,
        together: int | None = None,
    ) -> None:
        """Write a checkpoint beside the others, then drop the oldest, but never that of the step `together`.

        An OSError leaves the others as they were.
        """
        step, replay = snapshot.step, snapshot.learning.replay
        try:
            self.folder.mkdir(exist_ok=True)
            pieces = self._write_pieces(replay, step, record.remembered + step) if replay else []
            checkpoint = self._write_folder(snapshot, record, config, policy, pieces)
        except BaseException:
            self._remove(f"*step-{step:012d}*", f"*-{step:012d}.safetensors*")
            raise
        kept = [*self.kept, checkpoint]
        self.kept = [each for each in kept if each in kept[-KEPT:] or each.step == together]
        self._remove("*step-*", "*.safetensors*")

    def _write_pieces(self, replay: Replay[Transition], step: int, added: int) -> list[Piece]:
        """Return the pieces of the rows that the memory holds; write those that the last checkpoint but one has not.

        `added` is the number of rows that were ever added to it.
        """
        folder = self.folder / "replay"
        folder.mkdir(exist_ok=True)
        reusable = {(p.start, p.end): p for p in (self.kept[0].pieces if len(self.kept) == KEPT else [])}
        oldest, pieces = max(0, added - replay.capacity), []
        for aligned in range(oldest // PIECE_ROWS * PIECE_ROWS, added, PIECE_ROWS):
            start, end = max(aligned, oldest), min(aligned + PIECE_ROWS, added)
            # A piece may begin with rows that the memory has forgotten since; it is as good.
            piece = (
                reusable.get((aligned, end))
                or reusable.get((start, end))
                or self._write_piece(replay, start, end, step)
            )
            pieces.append(piece)
        return pieces

    def _write_piece(self, replay: Replay[Transition], start: int, end: int, step: int) -> Piece:
        name = f"{start:012d}-{end:012d}-{step:012d}.safetensors"
        rows = replay_memory.read_rows(replay, start % replay.capacity, PIECE_ROWS)
        content = pack_arrays(jax.tree.map(lambda leaf: np.asarray(leaf)[: end - start], rows), {})
        write_atomic(self.folder / "replay" / name, content)
        return Piece(start, end, Stored.of(name, content))

    def _write_folder(
        self, snapshot: Snapshot, record: Record, config: dict[str, Any], policy: Policy, pieces: list[Piece]
    ) -> Checkpoint:
        path = self.folder / f"step-{snapshot.step:012d}"
        contents = files_of(snapshot, record, policy)
        files = {name: Stored.of(name, content) for name, content in contents.items() if content}
        checkpoint = Checkpoint(path, config, facts_of(snapshot, record, policy.spec), files, pieces)
        partial = path.with_name(f".{path.name}{PARTIAL}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for name in files:
            write_from(partial / name, 0, contents[name])
        write_from(partial / MANIFEST, 0, manifest_bytes(checkpoint))
        sync_folder(partial)
        if path.exists():  # a damaged one of the same step, or `recover` would have kept it
            shutil.rmtree(path)
        partial.rename(path)
        sync_folder(self.folder)
        return checkpoint

    def _remove(self, folders: str, pieces: str) -> None:
        """Remove the folders and pieces of these names that no kept checkpoint needs; what cannot be, next time."""
        needed = {checkpoint.path.name for checkpoint in self.kept}
        needed |= {piece.file.name for checkpoint in self.kept for piece in checkpoint.pieces}
        for path in self.folder.glob(folders):
            if path.name not in needed and (FOLDER_NAME.fullmatch(path.name) or path.name.endswith(PARTIAL)):
                shutil.rmtree(path, ignore_errors=True)
        for path in (self.folder / "replay").glob(pieces):
            if path.name not in needed and (PIECE_NAME.fullmatch(path.name) or path.name.endswith(PARTIAL)):
                with suppress(OSError):
                    path.unlink()


def common_step(runs: Sequence[Checkpoints]) -> int | None:
    """Return the newest step at which each of the runs has a checkpoint, if there is one."""
    steps = [{kept.step for kept in checkpoints.kept} for checkpoints in runs]
    return max(set.intersection(*steps), default=None)


def find_checkpoints(path: Path) -> list[Checkpoint]:
    """Return the checkpoint whose folder this is, or all that the run in this folder keeps."""
    if not path.exists():
        raise BisacError(f"there is no run folder or checkpoint at {path}.")
    if FOLDER_NAME.fullmatch(path.resolve().name):
        return [read_manifest(path.resolve())]
    checkpoints = Checkpoints(RunFolder(path).checkpoints)
    problems = checkpoints.recover()
    if not checkpoints.kept:
        why = f" {' '.join(problems)}" if problems else ""
        raise BisacError(f"{path} holds no checkpoint; train with --checkpoint-every above 0.{why}")
    return checkpoints.kept
