"""Checks of frozen dataclasses that users fill in: hyperparameters, a run's settings, a figure's options.

A check that fails raises a `BisacError` whose sentence names the field as the command line does. Nothing here knows
which dataclass it is given, nor what its fields mean.
"""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from bisac.errors import BisacError


def require(fields: object, kind: str, holds: Callable[[Any], bool], *names: str) -> None:
    """Refuse values that are not what they must be.

    For each of the named fields of the dataclass `fields`, `holds` must be true of the value, or of every value in it
    where it is a tuple, which must not be empty. `kind` ends the sentence "--name must be ...".
    """
    for name in names:
        value = getattr(fields, name)
        values = value if isinstance(value, tuple) else (value,)
        if not values or not all(holds(v) for v in values):
            raise BisacError(f"{_flag(name)} must be {kind}, got {value}.")


def take_whole_numbers(fields: object, *names: str) -> None:
    """Let 1e6 and NumPy's whole numbers stand for the int that they are, in the named fields of a frozen dataclass."""
    for name in names:
        value = getattr(fields, name)
        if isinstance(value, np.integer) or (isinstance(value, float) and value.is_integer()):
            object.__setattr__(fields, name, int(value))


def require_types(fields: Any) -> None:
    """Refuse any field of the dataclass `fields` whose value is not of the type that it declares."""
    hints = get_type_hints(type(fields))
    for name in (field.name for field in dataclasses.fields(fields)):
        if not _fits(value := getattr(fields, name), hints[name]):
            raise BisacError(f"{_flag(name)} must be {_kind(hints[name])}, got {value!r}.")


def _flag(name: str) -> str:
    """Return the name that a field has on the command line."""
    return f"--{name.replace('_', '-')}"


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the declared type; a whole number is a number too, True and False are neither."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(v, get_args(hint)[0]) for v in value)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool) and -math.inf < value < math.inf
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _kind(hint: Any) -> str:
    """Return a declared type in a user's words."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_kind, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"a tuple of {'words' if get_args(hint)[0] is str else 'whole numbers'}"
    kinds = {float: "a number", int: "a whole number", bool: "True or False", str: "a word", Path: "a path"}
    return {**kinds, NoneType: "None"}[hint]
