"""Checkpoints: the whole of a run on disk, written so that at every moment a whole one is there.

A checkpoint is a folder `step-N` with a manifest; the replay memory lies beside it in pieces of consecutive rows, so
that a save writes only the rows that are new to it. The two checkpoints that are kept share no file: each is built on
the pieces of the one before the last, and so no single damaged file can cost both. docs/checkpoints.md has the format.
"""

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from bisac.collect import replay as replay_memory
from bisac.algos import Algorithm
from bisac.envs.host.envs import Episode, HostEnvs
from bisac.errors import BisacError
from bisac.collect.replay import Replay
from bisac.collect.scaling import Scaling
from bisac.storage import PARTIAL, pack_arrays, sync_folder, unpack_arrays, write_atomic, write_from
from bisac.collect.loop import draw_next
from bisac.runs.checkpoint.manifest import (
    BEST,
    FOLDER_NAME,
    MANIFEST,
    PIECE_NAME,
    PIECE_ROWS,
    POLICY,
    PROGRESS,
    STATE,
    Checkpoint,
    DamagedError,
    Piece,
    Stored,
    manifest_bytes,
    read_manifest,
)
from bisac.runs.run import Flat, Record, Run, Training, current_policy, fresh_training
from bisac.runs.settings import from_config
from bisac.types import Spec, Transition

KEPT = 2


class Checkpoints:
    """The checkpoints of one run folder. Only the process that trains there may write them."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.kept: list[Checkpoint] = []
        """Whole ones, the newest last."""

    def recover(self) -> list[str]:
        """Find the whole checkpoints; returns a sentence for each that is damaged."""
        problems = []
        for path in sorted(self.folder.glob("step-*"), reverse=True):
            if FOLDER_NAME.fullmatch(path.name) and len(self.kept) < KEPT:
                try:
                    checkpoint = read_manifest(path)
                    checkpoint.verify()
                    self.kept.insert(0, checkpoint)
                except DamagedError as error:
                    problems.append(str(error))
        return problems

    def save(self, run: Run, config: dict[str, Any]) -> None:
        """Write a checkpoint beside the others, then drop the oldest. An OSError leaves the others as they were."""
        if self.kept and self.kept[-1].step == run.step:
            return
        try:
            self.folder.mkdir(exist_ok=True)
            pieces = self._write_pieces(run.training.replay, run.step) if run.training.replay else []
            checkpoint = self._write_folder(run, config, pieces)
        except BaseException:
            self._remove(f"*step-{run.step:012d}*", f"*-{run.step:012d}.safetensors*")
            raise
        self.kept = [*self.kept, checkpoint][-KEPT:]
        self._remove("*step-*", "*.safetensors*")

    def _write_pieces(self, replay: Replay[Transition], step: int) -> list[Piece]:
        """The pieces of the rows that the memory holds, writing those that the last checkpoint but one has not."""
        folder = self.folder / "replay"
        folder.mkdir(exist_ok=True)
        reusable = {(p.start, p.end): p for p in (self.kept[0].pieces if len(self.kept) == KEPT else [])}
        oldest, pieces = max(0, step - replay.capacity), []
        for aligned in range(oldest // PIECE_ROWS * PIECE_ROWS, step, PIECE_ROWS):
            start, end = max(aligned, oldest), min(aligned + PIECE_ROWS, step)
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

    def _write_folder(self, run: Run, config: dict[str, Any], pieces: list[Piece]) -> Checkpoint:
        path = self.folder / f"step-{run.step:012d}"
        contents = _contents(run)
        files = {name: Stored.of(name, content) for name, content in contents.items() if content}
        checkpoint = Checkpoint(path, config, _run_json(run), files, pieces)
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


def load(checkpoint: Checkpoint, algo: Algorithm[Any], envs: HostEnvs) -> tuple[Run, list[int]]:
    """The run that a checkpoint holds, and the environments that did not come back as they were."""
    with _fitting(checkpoint):
        return _load(checkpoint, algo, envs)


class Learned(NamedTuple):
    """What of a run needs no environment: what it learned, and what it remembers."""

    algo: Algorithm[Any]
    spec: Spec
    state: PyTree[Array]
    """The algorithm's."""
    normaliser: Scaling
    memory: Transition | None
    """The rows of the replay memory, as NumPy arrays, the oldest first; None for what learns from fresh rollouts."""


def load_learned(checkpoint: Checkpoint) -> Learned:
    """What a checkpoint's run had learned."""
    algo, settings = from_config(checkpoint.config)
    with _fitting(checkpoint):
        spec = Spec.from_json(checkpoint.run["spec"])
        state, fresh = _read_state(checkpoint, algo, spec, settings.width)
        memory = None
        if fresh.replay is not None:
            shapes, capacity = fresh.replay.storage, fresh.replay.capacity
            pieces = [_read_piece(checkpoint, piece, shapes) for piece in checkpoint.pieces]
            memory = jax.tree.map(lambda *rows: np.concatenate(rows)[-capacity:], *pieces)
        return Learned(algo, spec, state["training"].algo, state["training"].normaliser, memory)


@contextmanager
def _fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """One sentence for whatever a stranger's manifest makes of the arrays and the environment."""
    try:
        yield
    except BisacError:
        raise
    except Exception as error:
        raise DamagedError(f"{checkpoint.path} does not fit its own settings: {error!r}.") from error


def _load(checkpoint: Checkpoint, algo: Algorithm[Any], envs: HostEnvs) -> tuple[Run, list[int]]:
    saved, spec = checkpoint.run, envs.spec
    if (then := Spec.from_json(saved["spec"])) != spec:
        raise BisacError(f"{spec.env_id} is not what it was when the run was saved: {then} then, {spec} now.")
    state, fresh = _read_state(checkpoint, algo, spec, envs.count)
    training = state["training"]
    if fresh.replay is not None:
        storage = _read_pieces(checkpoint, fresh.replay.storage)
        training = eqx.tree_at(lambda t: t.replay.storage, training, storage, is_leaf=lambda x: x is None)
    episodes = [
        Episode(episode["seed"], list(np.asarray(actions)), episode["total_reward"])
        for episode, actions in zip(saved["episodes"], state["actions"], strict=True)
    ]
    progress, best_policy = checkpoint.read(PROGRESS).decode(), checkpoint.read(BEST)
    record = Record(**saved["record"], progress=progress, best_policy=best_policy)
    obs, action = np.array(state["obs"]), np.asarray(state["action"])  # the former may be written, below
    run = Run(algo, envs, Flat.of(training), obs, action, saved["step"], saved["updates"], record=record)
    strayed = envs.restore(saved["env_steps"], saved["episodes_started"], episodes, run.obs)
    if strayed:
        record.inexact_resumes += 1
        draw_next(run)
    return run, strayed


def _read_state(
    checkpoint: Checkpoint, algo: Algorithm[Any], spec: Spec, width: int
) -> tuple[dict[str, Any], Training]:
    """What state.safetensors holds, and the shapes of the whole."""
    fresh = jax.eval_shape(lambda key: fresh_training(algo, spec, width, key), jax.random.key(0))
    skeleton = _state_tree(
        fresh,
        np.empty((width, spec.obs_dim), np.float32),
        np.empty((width, spec.action_dim), np.float32),
        [np.empty((episode["length"], spec.action_dim), np.float32) for episode in checkpoint.run["episodes"]],
    )
    return unpack_arrays(checkpoint.read(STATE), skeleton, checkpoint.path / STATE), fresh


def _read_pieces(checkpoint: Checkpoint, shapes: Transition) -> Transition:
    """The replay memory's rows, brought onto the device piece by piece."""
    capacity = jax.tree.leaves(shapes)[0].shape[0]
    first = checkpoint.pieces[0].start if checkpoint.pieces else checkpoint.step
    if first > max(0, checkpoint.step - capacity):
        raise ValueError("rows of the replay memory are missing")
    storage = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    for piece in checkpoint.pieces:
        rows = _read_piece(checkpoint, piece, shapes)
        padded = jax.tree.map(lambda leaf: np.resize(leaf, (PIECE_ROWS, *leaf.shape[1:])), rows)
        storage = replay_memory.write_rows(storage, piece.start % capacity, padded, piece.end - piece.start)
    return storage


def _read_piece(checkpoint: Checkpoint, piece: Piece, shapes: Transition) -> Transition:
    """The rows of a piece."""
    count, folder = piece.end - piece.start, checkpoint.path.parent / "replay"
    skeleton = jax.tree.map(lambda leaf: np.empty((count, *leaf.shape[1:]), leaf.dtype), shapes)
    return unpack_arrays(piece.file.read(folder), skeleton, folder / piece.file.name)


def _state_tree(training: Training, obs: Any, action: Any, actions: list[Any]) -> dict[str, Any]:
    """What state.safetensors holds: all arrays but the replay memory's rows."""
    bare = training if training.replay is None else eqx.tree_at(lambda t: t.replay.storage, training, None)
    return {"training": bare, "obs": obs, "action": action, "actions": actions}


def _contents(run: Run) -> dict[str, bytes]:
    """The files of a checkpoint."""
    spec = run.envs.spec
    actions = [np.reshape(np.asarray(e.actions, np.float32), (-1, spec.action_dim)) for e in run.envs.episodes]
    return {
        STATE: pack_arrays(_state_tree(run.training, run.obs, run.action, actions), {}),
        POLICY: current_policy(run).to_bytes(),
        BEST: run.record.best_policy,
        PROGRESS: run.record.progress.encode(),
    }


def _run_json(run: Run) -> dict[str, Any]:
    """What of a run is no array."""
    record = dataclasses.asdict(run.record)
    return {
        "step": run.step,
        "updates": run.updates,
        "spec": dataclasses.asdict(run.envs.spec),
        "env_steps": run.envs.steps,
        "episodes_started": run.envs.started,
        "episodes": [{"seed": e.seed, "length": e.length, "total_reward": e.total_reward} for e in run.envs.episodes],
        "record": {name: value for name, value in record.items() if name not in ("progress", "best_policy")},
    }
