"""Files: atomic and durable writes, and trees of arrays in safetensors. Nothing here can run code when it reads."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from filelock import FileLock, Timeout
from jaxtyping import Array, PyTree

from bisac.errors import BisacError

Tree = TypeVar("Tree")

PARTIAL = ".partial"
"""How the name of a file that is being written ends; one that a crash left behind is worth nothing."""


def write_from(path: Path, offset: int, content: bytes) -> None:
    """Write a file from `offset` on, where it ends then, so that it is on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.ftruncate(descriptor, offset)
        os.lseek(descriptor, offset, os.SEEK_SET)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a rename is not, until its folder is on the disk."""
    if os.name == "nt":  # Windows opens no folder, and keeps its names by itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves either the old one or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        write_from(partial, 0, content)
        os.replace(partial, path)
        sync_folder(path.parent)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a full disk does not say of which file
            error.filename = str(path)
        raise


@contextmanager
def exclusive(folder: Path, busy: str) -> Iterator[None]:
    """Be the only process in a folder, or raise `busy`; one that dies, however it dies, leaves the place free.

    The system's own lock on a file does that; where a file system has none, nothing safe can stand in for it.
    """
    # Not bound to a thread: a run may be begun in one and closed in another.
    lock = FileLock(folder / ".lock", timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = lock.acquire()
    except Timeout as error:
        raise BisacError(busy) from error
    except OSError as error:
        raise BisacError(f"the folder {folder} cannot be written or locked: {error.strerror}.") from error
    with held:
        yield


def read_file(path: Path) -> bytes:
    """Return a file's content, or one sentence why not."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BisacError(f"{path} cannot be read: {error.strerror}.") from error


def pack_arrays(tree: PyTree[Array | np.ndarray], metadata: dict[str, Any]) -> bytes:
    """Return a tree as safetensors: every leaf under its place, with metadata (anything that JSON can hold)."""
    # Under one key, for safetensors orders several at random, and equal runs should give equal files.
    return safetensors.numpy.save(named_arrays(tree), {"bisac": json.dumps(metadata)})


def unpack_metadata(content: bytes, name: str | Path) -> dict[str, Any]:
    """Return the metadata of what `pack_arrays` gave; `name` tells the user which file is meant."""
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = json.loads(header.get("__metadata__", {}).get("bisac", "{}"))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise BisacError(f"{name} cannot be read as a safetensors file: {error}.") from error
    return metadata if isinstance(metadata, dict) else {}


def unpack_arrays(content: bytes, skeleton: Tree, name: str | Path, name_in_file: Callable[[str], str] = str) -> Tree:
    """Return the tree that `pack_arrays` was given, from one of the same structure, shapes and dtypes.

    `name_in_file` says under which name a file of an older version holds the leaf of a name.
    """
    try:
        arrays = safetensors.numpy.load(content)
    except Exception as error:  # whatever a stranger's file makes the parser do
        raise BisacError(f"{name} cannot be read as a safetensors file: {error}.") from error
    leaves, structure = jax.tree_util.tree_flatten_with_path(skeleton)
    found = []
    for place, leaf in leaves:
        array, expected = arrays.get(name_in_file(_name(place))), _stored(leaf)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            raise BisacError(f"{name} does not fit its own settings at {_name(place)}: it is damaged or was edited.")
        found.append(jax.random.wrap_key_data(jnp.asarray(array)) if _is_key(leaf) else jnp.asarray(array))
    return jax.tree_util.tree_unflatten(structure, found)


def named_arrays(tree: PyTree[Array | np.ndarray]) -> dict[str, np.ndarray]:
    """Return leaves as NumPy arrays by their place in the tree; random keys as the integers that they are made of."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {_name(place): np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf) for place, leaf in leaves}


def leaf_names(tree: PyTree[Any]) -> list[str]:
    """Return where each leaf stands in the tree."""
    return [_name(place) for place, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stored(leaf: Any) -> jax.ShapeDtypeStruct:
    """Return shape and dtype of a leaf as it lies in a file."""
    return jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _name(place: tuple[jax.tree_util.KeyEntry, ...]) -> str:
    return jax.tree_util.keystr(place, simple=True, separator=".")
