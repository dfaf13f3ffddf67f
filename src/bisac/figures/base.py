"""The contract of a figure: it is a frozen dataclass of its arguments that measures, then draws what it measured."""

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bisac.runs.folder import provenance
from bisac.storage import write_atomic

Tell = Callable[[str], None]
"""How a figure says what it is doing, for whoever waits for it."""


@dataclass(frozen=True)
class Made:
    """A finished figure: its numbers, its pictures, and what to say of it."""

    numbers: dict[str, Any]
    """All that the picture shows, as JSON has it; NumPy's arrays and numbers may be among it."""
    pictures: dict[str, bytes]
    """The contents of the picture's files, by their ending."""
    summary: list[str]
    """The most important numbers, a sentence each."""


@dataclass(frozen=True)
class PaperFigure(ABC):
    """The arguments of a figure, and how to make it."""

    out: Path = Path("figures")
    """Folder for the picture (NAME.png, NAME.pdf) and its numbers (NAME.json)."""

    @abstractmethod
    def make(self, tell: Tell) -> Made:
        """Measure, then draw what was measured."""


def write_figure(name: str, figure: PaperFigure, tell: Tell) -> tuple[Made, list[Path]]:
    """Make a figure and leave its files in its folder; returns their paths too."""
    figure.out.mkdir(parents=True, exist_ok=True)  # first, so that hours of measuring do not end at a closed door
    made = figure.make(tell)
    arguments = dataclasses.asdict(figure)
    content = {"figure": name, "arguments": arguments, "numbers": made.numbers} | provenance()
    files = made.pictures | {"json": (json.dumps(in_json_types(content), indent=1, allow_nan=False) + "\n").encode()}
    paths = [figure.out / f"{name}.{ending}" for ending in files]
    for path, file in zip(paths, files.values(), strict=True):
        write_atomic(path, file)
    return made, paths


def in_json_types(value: Any) -> Any:
    """Return a value in JSON's types, numbers with six digits; None for what is no number."""
    if isinstance(value, dict):
        return {str(key): in_json_types(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return in_json_types(np.asarray(value).tolist())
    if isinstance(value, list | tuple):
        return [in_json_types(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
