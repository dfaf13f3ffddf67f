"""Files: atomic writes, and trees of arrays in safetensors. Nothing here can run code when it reads."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import Array, PyTree

from bisac.errors import BisacError

Tree = TypeVar("Tree")


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves either the old one or the new one."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def save_arrays(path: Path, tree: PyTree[Array | np.ndarray], metadata: dict[str, Any]) -> None:
    """Write every leaf of a tree under its place in it, with metadata (anything that JSON can hold)."""
    # Under one key, for safetensors orders several at random, and equal runs should give equal files.
    write_atomic(path, safetensors.numpy.save(named_arrays(tree), {"bisac": json.dumps(metadata)}))


def load_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a file that `save_arrays` wrote."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            metadata = json.loads((file.metadata() or {}).get("bisac", "{}"))
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise BisacError(f"{path} cannot be read as a safetensors file: {error}.") from error
    return metadata if isinstance(metadata, dict) else {}


def load_arrays(path: Path, skeleton: Tree) -> Tree:
    """The tree that `save_arrays` wrote, given one of the same structure, shapes and dtypes."""
    try:
        arrays = safetensors.numpy.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise BisacError(f"{path} cannot be read as a safetensors file: {error}.") from error
    leaves, structure = jax.tree_util.tree_flatten_with_path(skeleton)
    found = []
    for place, leaf in leaves:
        array = arrays.get(_name(place))
        if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise BisacError(f"{path} does not fit its own settings at {_name(place)}: it is damaged or was edited.")
        found.append(jax.numpy.asarray(array))
    return jax.tree_util.tree_unflatten(structure, found)


def named_arrays(tree: PyTree[Array | np.ndarray]) -> dict[str, np.ndarray]:
    """Leaves as NumPy arrays by their place in the tree."""
    return {_name(place): np.asarray(leaf) for place, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _name(place: tuple[jax.tree_util.KeyEntry, ...]) -> str:
    return jax.tree_util.keystr(place, simple=True, separator=".")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
