"""What a checkpoint's files hold: a run's snapshot and record, packed, and read again.

Checkpoints of version 1 called some things by other names: they are read under those.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from bisac.algos import Algorithm
from bisac.collect import replay as replay_memory
from bisac.collect.collector import Collector, Snapshot
from bisac.collect.learning import Learning, learning_shapes
from bisac.collect.scaling import Scaling
from bisac.errors import BisacError, reason
from bisac.policies.policy import Policy
from bisac.runs.checkpoint.manifest import (
    BEST,
    PIECE_ROWS,
    POLICY,
    PROGRESS,
    STATE,
    Checkpoint,
    DamagedError,
    Piece,
)
from bisac.runs.config import from_config
from bisac.runs.record import Record
from bisac.storage import pack_arrays, unpack_arrays
from bisac.types import Spec, Transition

NAMES_OF_VERSION_1 = {
    "learning.agent": "training.algo",
    "learning.scaling": "training.normaliser",
    "learning": "training",
    "place.obs": "obs",
    "place.actions": "actions",
    "place.action": "action",
}
"""What version 1 called the parts of a run's arrays, the longer names first."""


class Learned(NamedTuple):
    """What of a run needs no environment: what it learned, and what it remembers."""

    algo: Algorithm[Any]
    spec: Spec
    agent: PyTree[Array]
    """The state that the algorithm learned."""
    scaling: Scaling
    memory: Transition | None
    """The rows of the replay memory, as NumPy arrays, the oldest first; None where they were not wanted, and for what
    learns from fresh rollouts."""


def files_of(snapshot: Snapshot, record: Record, policy: Policy) -> dict[str, bytes]:
    """Return the contents of a checkpoint's files, but for the manifest and the replay memory's rows."""
    return {
        STATE: pack_arrays(_arrays(snapshot.learning, snapshot.place), {}),
        POLICY: policy.to_bytes(),
        BEST: record.best_policy,
        PROGRESS: record.progress.encode(),
    }


def facts_of(snapshot: Snapshot, record: Record, spec: Spec) -> dict[str, Any]:
    """Return what the manifest says of a run: all that is no array."""
    told = {name: v for name, v in dataclasses.asdict(record).items() if name not in ("progress", "best_policy")}
    return {
        "step": snapshot.step,
        "updates": snapshot.updates,
        "spec": dataclasses.asdict(spec),
        "collector": dict(snapshot.facts),
        "record": told,
    }


def load(checkpoint: Checkpoint, collector: Collector) -> tuple[Snapshot, Record]:
    """Return the run that a checkpoint holds, for the collector to restore."""
    with fitting(checkpoint):
        saved, spec = checkpoint.run, collector.spec
        then = Spec.from_json(saved["spec"])
        if then != (spec if then.layout else dataclasses.replace(spec, layout=None)):  # earlier versions have none
            raise BisacError(f"{spec.env_id} is not what it was when the run was saved: {then} then, {spec} now.")
        facts = saved["collector"]
        shapes, place = collector.shapes(facts)
        arrays = _read_arrays(checkpoint, _arrays(shapes, place))
        learning = arrays["learning"]
        if shapes.replay is not None:
            storage = _read_pieces(checkpoint, shapes.replay.storage)
            learning = eqx.tree_at(lambda t: t.replay.storage, learning, storage, is_leaf=lambda x: x is None)
        progress, best_policy = checkpoint.read(PROGRESS).decode(), checkpoint.read(BEST)
        record = Record(**saved["record"], progress=progress, best_policy=best_policy)
        return Snapshot(learning, arrays["place"], facts, saved["step"], saved["updates"]), record


def load_learned(checkpoint: Checkpoint, with_memory: bool = True) -> Learned:
    """Return what a checkpoint's run had learned, and if wanted what it remembers, which may take gigabytes."""
    algo, settings = from_config(checkpoint.config)
    with fitting(checkpoint):
        spec = Spec.from_json(checkpoint.run["spec"])
        shapes = learning_shapes(algo, spec, settings.num_envs or 1)
        learning = _read_arrays(checkpoint, {"learning": _bare(shapes)})["learning"]
        memory = None
        if with_memory and shapes.replay is not None:
            storage, capacity = shapes.replay.storage, shapes.replay.capacity
            pieces = [_read_piece(checkpoint, piece, storage) for piece in checkpoint.pieces]
            memory = jax.tree.map(lambda *rows: np.concatenate(rows)[-capacity:], *pieces)
        return Learned(algo, spec, learning.agent, learning.scaling, memory)


@contextmanager
def fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """Make one sentence of whatever a stranger's manifest does to arrays and environments."""
    try:
        yield
    except BisacError:
        raise
    except Exception as error:
        raise DamagedError(f"{checkpoint.path} does not fit its own settings: {reason(error)}.") from error


def _arrays(learning: Learning, place: PyTree[Any]) -> dict[str, Any]:
    """Return what state.safetensors holds: all arrays but the replay memory's rows."""
    return {"learning": _bare(learning), "place": place}


def _bare(learning: Learning) -> Learning:
    """Return the same without memory and demonstrations, which lie in files of their own, nor their episodes."""
    own = eqx.tree_at(lambda t: (t.demos, t.episodes), learning, (None, None), is_leaf=lambda node: node is None)
    return own if own.replay is None else eqx.tree_at(lambda t: t.replay.storage, own, None)


def _read_arrays(checkpoint: Checkpoint, skeleton: dict[str, Any]) -> dict[str, Any]:
    name_in_file = _name_of_version_1 if checkpoint.version == 1 else str
    return unpack_arrays(checkpoint.read(STATE), skeleton, checkpoint.path / STATE, name_in_file)


def _name_of_version_1(name: str) -> str:
    prefix = next(new for new in NAMES_OF_VERSION_1 if name == new or name.startswith(f"{new}."))
    return NAMES_OF_VERSION_1[prefix] + name.removeprefix(prefix)


def _read_pieces(checkpoint: Checkpoint, shapes: Transition) -> Transition:
    """Return the replay memory's rows, brought onto the device piece by piece."""
    capacity = jax.tree.leaves(shapes)[0].shape[0]
    first = checkpoint.pieces[0].start if checkpoint.pieces else checkpoint.rows
    if first > max(0, checkpoint.rows - capacity):
        raise ValueError("rows of the replay memory are missing")
    storage = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    for piece in checkpoint.pieces:
        rows = _read_piece(checkpoint, piece, shapes)
        padded = jax.tree.map(lambda leaf: np.resize(leaf, (PIECE_ROWS, *leaf.shape[1:])), rows)
        storage = replay_memory.write_rows(storage, piece.start % capacity, padded, piece.end - piece.start)
    return storage


def _read_piece(checkpoint: Checkpoint, piece: Piece, shapes: Transition) -> Transition:
    """Return the rows of a piece."""
    count, folder = piece.end - piece.start, checkpoint.path.parent / "replay"
    skeleton = jax.tree.map(lambda leaf: np.empty((count, *leaf.shape[1:]), leaf.dtype), shapes)
    return unpack_arrays(piece.file.read(folder), skeleton, folder / piece.file.name)
