"""Transitions that somebody else gathered: demonstrations, or logged experience. Checked once, then learned from."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from bisac.errors import BisacError
from bisac.storage import pack_arrays, unpack_arrays, unpack_metadata
from bisac.types import Spec, Transition

TOLERANCE = 1e-4
"""How far outside its box an action may lie, in units of the box's half width: as far as rounding takes it."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Transitions in the environment's own units; `from_arrays` makes one."""

    rows: Transition
    """Float32 NumPy arrays with a row a transition, the actions not yet scaled to [-1, 1]."""
    name: str
    """What messages call it."""

    def __len__(self) -> int:
        return len(self.rows.reward)

    @property
    def digest(self) -> str:
        """The SHA-256 of what it holds, whatever file that came from."""
        return hashlib.sha256(pack_arrays(self.rows, {})).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the data set as a safetensors file."""
        return pack_arrays(self.rows, {"rows": len(self), "sizes": [self.rows.obs.shape[1], self.rows.action.shape[1]]})

    @staticmethod
    def from_bytes(content: bytes, name: str | Path) -> "Dataset":
        """Return what `to_bytes` was called on."""
        told = unpack_metadata(content, name)
        try:
            count, (obs, action) = int(told["rows"]), map(int, told["sizes"])
        except (KeyError, TypeError, ValueError) as error:
            raise BisacError(f"{name} is not a data set of bisac's.") from error
        shapes = ((count, obs), (count, action), (count,), (count,), (count, obs))
        empty: list[Any] = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        rows: list[Any] = [np.asarray(leaf) for leaf in unpack_arrays(content, Transition(*empty), name)]
        return Dataset(Transition(*rows), str(name))

    def fitted(self, spec: Spec) -> Transition:
        """Return the transitions as an environment's memory holds them; refuse those of another environment."""
        obs, action = self.rows.obs, np.asarray(self.rows.action)
        if obs.shape[1] != spec.obs_dim or action.shape[1] != spec.action_dim:
            sizes = f"{obs.shape[1]} observations and {action.shape[1]} actions"
            raise BisacError(f"{self.name} has {sizes} in a row, which does not fit {spec.sizes}.")
        _, _, centre, reach = spec.box
        scaled = (action - centre) / np.where(reach > 0.0, reach, np.float32(1.0))
        outside = np.abs(scaled) > 1.0 + TOLERANCE
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise BisacError(
                f"{self.name}: action {column} of row {row} is {action[row, column]:g}, outside the box of "
                f"{spec.env_id}, [{spec.action_low[column]:g}, {spec.action_high[column]:g}]; actions must be in the "
                f"environment's own units."
            )
        return self.rows._replace(action=jnp.asarray(np.clip(scaled, -1.0, 1.0)))


def from_arrays(
    observation: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    next_observation: ArrayLike,
    terminated: ArrayLike,
    name: str = "the data set",
) -> Dataset:
    """Return a data set of transitions, a row each, to learn from beside one's own: `bisac.train(..., demos=...)`.

    `observation` and `next_observation` have shape (rows, observations), `action` (rows, actions), `reward` and
    `terminated` (rows,). `action` is in the environment's own units. `next_observation` is what the action led to, even
    where the episode ended there. `terminated` is true where the task itself ended; where only time ran out, it is
    false. Rows in the order in which they were gathered serve n-step returns. `name` is what messages call the data.
    """
    given = {
        "observation": (observation, 2),
        "action": (action, 2),
        "reward": (reward, 1),
        "next_observation": (next_observation, 2),
        "terminated": (terminated, 1),
    }
    arrays = {part: _floats(value, part, axes, name) for part, (value, axes) in given.items()}
    count = len(arrays["observation"])
    if not count:
        raise BisacError(f"{name} is empty.")
    for part, array in arrays.items():
        if len(array) != count:
            raise BisacError(f"{name}: {part} has {len(array)} rows, and observation has {count}.")
    if arrays["next_observation"].shape != arrays["observation"].shape:
        raise BisacError(f"{name}: next_observation must have the shape of observation, {arrays['observation'].shape}.")
    if not np.isin(arrays["terminated"], (0.0, 1.0)).all():
        raise BisacError(f"{name}: terminated must be true or false in every row.")
    discount = 1.0 - arrays["terminated"]
    rows: list[Any] = [arrays["observation"], arrays["action"], arrays["reward"], discount, arrays["next_observation"]]
    return Dataset(Transition(*rows), name)


def _floats(value: Any, part: str, axes: int, name: str) -> np.ndarray:
    """Return an array of finite float32 numbers; a column is taken for a list."""
    try:
        if np.iscomplexobj(value):
            raise ValueError("they are complex")
        with np.errstate(over="ignore"):
            array = np.array(value, np.float32)  # a copy: what the user does with the original changes nothing
    except (OverflowError, TypeError, ValueError) as error:
        raise BisacError(f"{name}: {part} is not an array of numbers: {error}.") from error
    if axes == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != axes:
        kind = "a vector in each row" if axes == 2 else "a number in each row"
        raise BisacError(f"{name}: {part} must have {kind}; its shape is {array.shape}.")
    if not np.isfinite(array).all():
        raise BisacError(f"{name}: {part} is not finite in row {np.argwhere(~np.isfinite(array))[0][0]}.")
    return array
