"""Algorithms that are not ours: registered by whoever wrote them, or found where they are installed.

A package names its algorithms in the entry-point group `bisac.algorithms`. A module that is no package's is named in
the environment variable BISAC_IMPORT, for the command line; importing it must register them. No file causes an import.
"""

import dataclasses
import importlib
import inspect
import os
import re
import sys
import warnings
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from bisac.algos.base import Algorithm, OffPolicy, OnPolicy
from bisac.algos.registry import REGISTRY
from bisac.errors import BisacError

GROUP, VARIABLE = "bisac.algorithms", "BISAC_IMPORT"


def register(name: str, kind: type[Algorithm[Any]]) -> None:
    """Make an algorithm known by a name, in Python, on the command line and in files.

    `kind` is a frozen dataclass of its hyperparameters, each with a default, that extends `bisac.algos.OffPolicy` or
    `OnPolicy`, or any algorithm of ours. A class that is defined again, as in a notebook, takes the place of the first.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise BisacError(f"an algorithm's name has lower-case letters, digits and hyphens, not {name!r}.")
    if not (isinstance(kind, type) and issubclass(kind, OffPolicy | OnPolicy)):
        raise BisacError(f"{kind!r} is no class that extends bisac.algos.OffPolicy or OnPolicy.")
    if set(inspect.get_annotations(kind)) - {field.name for field in dataclasses.fields(kind)}:
        raise BisacError(f"{kind.__name__} must be a @dataclass(frozen=True), or its hyperparameters are none.")
    taken = REGISTRY.get(name)
    if taken is not None and (taken.__module__, taken.__qualname__) != (kind.__module__, kind.__qualname__):
        raise BisacError(f"'{name}' is the name of {taken.__module__}.{taken.__qualname__}; give another.")
    try:
        kind()
    except BisacError:
        raise
    except TypeError as error:
        raise BisacError(
            f"{kind.__name__}() fails: {error}; every hyperparameter needs a default, every abstract method a body."
        ) from error
    REGISTRY[name] = kind


@cache
def find_installed() -> None:
    """Register what installed packages, and the modules that BISAC_IMPORT names, have to offer; once a process."""
    for point in entry_points(group=GROUP):
        try:
            register(point.name, point.load())
        except Exception as error:  # a stranger's package must not keep ours from working
            warnings.warn(f"the algorithm '{point.name}' of {point.value} cannot be used: {error}", stacklevel=2)
    for module in filter(None, os.environ.get(VARIABLE, "").replace(",", " ").split()):
        try:
            _import(module)
        except ImportError as error:
            raise BisacError(f"{VARIABLE} names {module}, which cannot be imported: {error}.") from error


def _import(module: str) -> None:
    """Import a module, from the working folder too, where a command does not look by itself."""
    sys.path.append(os.getcwd())
    try:
        importlib.import_module(module)
    finally:
        sys.path.pop()
