"""Data sets as users have them: files of NumPy's or HDF5, and the local data sets of Minari. No pickle is loaded."""

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from bisac.collect.dataset import Dataset, from_arrays
from bisac.errors import BisacError

NAMES = {
    "observation": ("observation", "observations", "obs"),
    "action": ("action", "actions"),
    "reward": ("reward", "rewards"),
    "next_observation": ("next_observation", "next_observations", "next_obs"),
    "terminated": ("terminated", "terminations", "terminals"),
}
"""What files call the parts of a transition, the name we give it first."""


def read_dataset(where: str) -> Dataset:
    """Return the data set in FILE.npz, in FILE.hdf5, or of this id among the local ones of Minari."""
    path = Path(where)
    readers: dict[str, Callable[[Path], Dataset]] = {".npz": _npz, ".hdf5": _hdf5, ".h5": _hdf5}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        if path.exists():
            raise BisacError(f"{where} must be a file .npz, .hdf5 or .h5, or the id of a Minari data set.")
        return _minari(where)
    if not path.is_file():
        raise BisacError(f"there is no data set at {where}.")
    return reader(path)


def _npz(path: Path) -> Dataset:
    try:
        with closing(np.load(path, allow_pickle=False)) as file:
            return _named(file, path)
    except BisacError:
        raise
    except Exception as error:  # whatever a stranger's file makes the parser do
        if str(error).startswith("Object arrays"):
            raise BisacError(f"{path} holds Python objects, which are never loaded; save arrays of numbers.") from error
        why = "it is no archive" if "pickle" in str(error) else str(error).rstrip(".")
        raise BisacError(f"{path} cannot be read as a file of NumPy's: {why}.") from error


def _hdf5(path: Path) -> Dataset:
    try:
        import h5py
    except ImportError as error:
        raise BisacError(f"{path} needs h5py: in bisac's folder, pip install '.[data]'.") from error
    try:
        with h5py.File(path, "r") as file:
            return _named({name: part for name, part in file.items() if isinstance(part, h5py.Dataset)}, path)
    except BisacError:
        raise
    except Exception as error:
        raise BisacError(f"{path} cannot be read as an HDF5 file: {error}.") from error


def _named(file: Mapping[str, Any], path: Path) -> Dataset:
    """Return the data set whose arrays stand in a file under one of their names."""
    parts: dict[str, Any] = {}
    for part, names in NAMES.items():
        name = next((name for name in names if name in file), None)
        if name is None:
            raise BisacError(f"{path} has no array {part}; it has {', '.join(sorted(file)) or 'none'}.")
        parts[part] = np.asarray(file[name])
    return from_arrays(**parts, name=str(path))


def _minari(where: str) -> Dataset:
    try:
        import minari
    except ImportError as error:
        raise BisacError(
            f"there is no file {where}; if it is a Minari data set, install what reads it: in bisac's "
            f"folder, pip install '.[data]'."
        ) from error
    try:
        episodes = list(minari.load_dataset(where).iterate_episodes())
    except Exception as error:  # Minari's own, of many kinds
        raise BisacError(
            f"there is neither a file nor a local Minari data set {where} ({error}); 'minari download {where}' fetches "
            f"what Minari has."
        ) from error
    for name in ("observations", "actions"):
        if any(not isinstance(getattr(episode, name), np.ndarray) for episode in episodes):
            raise BisacError(f"{where} has {name} of several parts; flatten them, and give arrays instead.")

    def joined(part: Callable[[Any], np.ndarray]) -> np.ndarray:
        return np.concatenate([part(episode) for episode in episodes]) if episodes else np.empty(0)

    return from_arrays(
        joined(lambda episode: episode.observations[:-1]),
        joined(lambda episode: episode.actions),
        joined(lambda episode: episode.rewards),
        joined(lambda episode: episode.observations[1:]),
        joined(lambda episode: episode.terminations),
        name=where,
    )
