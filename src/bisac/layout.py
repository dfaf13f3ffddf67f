"""How an observation of any of Gymnasium's spaces becomes a vector, in the order of `gymnasium.spaces.flatten`.

A layout says what is in a space and where, in nested tuples that JSON can hold: so a policy file carries it, and needs
no environment to take the environment's own observations.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

Layout = tuple[Any, ...]
"""("box", shape), ("discrete", n, start), ("multidiscrete", shape, sizes, starts), ("tuple", parts) or ("dict", names,
parts), where parts are layouts."""


def layout_of(space: spaces.Space[Any]) -> Layout | None:
    """Return the layout of a space; None of one that only Gymnasium itself can flatten."""
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return "box", tuple(map(int, space.shape or ()))
    if isinstance(space, spaces.Discrete):
        return "discrete", int(space.n), int(space.start)
    if isinstance(space, spaces.MultiDiscrete):
        sizes, starts = (tuple(int(v) for v in np.ravel(part)) for part in (space.nvec, space.start))
        return "multidiscrete", tuple(map(int, space.shape)), sizes, starts
    if isinstance(space, spaces.Tuple | spaces.Dict):
        named = dict(space.spaces) if isinstance(space, spaces.Dict) else dict(enumerate(space.spaces))
        parts = tuple(map(layout_of, named.values()))
        if None in parts or not all(isinstance(name, str | int) for name in named):
            return None
        return ("tuple", parts) if isinstance(space, spaces.Tuple) else ("dict", tuple(named), parts)
    return None


def layout_from_json(value: Any) -> Any:
    """Return what JSON made of a layout as it was: lists are tuples."""
    return tuple(map(layout_from_json, value)) if isinstance(value, list | tuple) else value


def flattened(layout: Layout, observation: Any) -> np.ndarray:
    """Return an observation as a vector of float32, or a batch of observations, stacked in each part, as rows.

    What does not fit the layout raises ValueError, TypeError or KeyError.
    """
    vectors = [np.asarray(vector) for vector in _vectors(layout, observation)]
    if len({vector.shape[:-1] for vector in vectors}) != 1:
        raise ValueError("its parts are not of one batch")
    return np.concatenate(vectors, axis=-1)


def places_of(layout: Layout) -> dict[str, tuple[int, int]]:
    """Return where each part of a dictionary begins in the vector, and how many numbers it has; of others nothing."""
    places, begin = {}, 0
    for name, part in zip(*layout[1:], strict=True) if layout[0] == "dict" else ():
        places[name] = begin, _size(part)
        begin += _size(part)
    return places


def _size(layout: Layout) -> int:
    """Return how many numbers the vector has."""
    kind, *of = layout
    if kind in ("dict", "tuple"):
        return sum(map(_size, of[-1]))
    if kind == "discrete":
        return of[0]
    return sum(of[1]) if kind == "multidiscrete" else math.prod(of[0])


def is_flat(layout: Layout, observation: Any, size: int) -> bool:
    """Return whether an observation, or a batch, is flat already, with so many numbers, and not as in its space."""
    kind = layout[0]
    if kind in ("dict", "tuple"):
        return not isinstance(observation, Mapping | tuple)
    values, shape = np.asarray(observation), layout[1] if kind == "multidiscrete" else ()
    own = values.dtype.kind != "f" and shape in (values.shape, values.shape[1:])
    return values.shape[-1:] == (size,) and (kind == "box" or not own)


def _vectors(layout: Layout, observation: Any) -> list[np.ndarray]:
    """Return the vectors, or rows, that the parts of an observation become, in their order."""
    kind, *of = layout
    if kind == "dict":
        names, parts = of
        if not isinstance(observation, Mapping) or set(observation) != set(names):
            raise ValueError(f"it must be a dictionary of {', '.join(map(str, names))}")
        return [vector for name, part in zip(names, parts, strict=True) for vector in _vectors(part, observation[name])]
    if kind == "tuple":
        parts = of[0]
        if not isinstance(observation, tuple) or len(observation) != len(parts):
            raise ValueError(f"it must be a tuple of {len(parts)} parts")
        return [vector for part, value in zip(parts, observation, strict=True) for vector in _vectors(part, value)]
    if kind == "discrete":
        return [_one_hot(_shaped(np.asarray(observation, int), ()), of[0], of[1])]
    if kind == "multidiscrete":
        shape, sizes, starts = of
        values = _flat(_shaped(np.asarray(observation, int), shape), shape)
        return [_one_hot(values[..., i], n, start) for i, (n, start) in enumerate(zip(sizes, starts, strict=True))]
    return [_flat(_shaped(np.asarray(observation, np.float32), of[0]), of[0])]


def _shaped(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values, if they are of that shape, or a batch of such."""
    if (values.shape != shape and values.shape[1:] != shape) or values.ndim > len(shape) + 1:
        raise ValueError(f"a part has shape {values.shape} instead of {shape}")
    return values


def _flat(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of that shape as one axis."""
    return values.reshape(*values.shape[: values.ndim - len(shape)], -1)


def _one_hot(values: np.ndarray, count: int, start: int) -> np.ndarray:
    if ((values < start) | (values >= start + count)).any():
        raise ValueError(f"a part is outside {start} to {start + count - 1}")
    return (np.expand_dims(values - start, -1) == np.arange(count)).astype(np.float32)
