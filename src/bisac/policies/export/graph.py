"""A policy as a list of named steps on arrays: the one description from which every exported form is written.

Operations have ONNX's names and meaning, and NumPy's rules of broadcasting; the first axis of each input is the batch.
What the steps compute, and which file they end up in, is not known here.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Step(NamedTuple):
    """One operation."""

    operation: str
    """Its name, one of those that `standalone.operations` knows."""
    name: str
    """The name of what it computes."""
    operands: tuple[str, ...]
    """The names of inputs, constants or earlier steps."""


@dataclass
class Graph:
    """Steps from inputs to the last of them, which is the output."""

    inputs: dict[str, tuple[int, ...]]
    """The shape of each input by its name, without the batch."""
    steps: list[Step] = field(default_factory=list)
    """The operations, in an order in which they can be computed."""
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    """The arrays that steps use beside inputs: float32, or int64 for shapes and axes."""

    def add(self, operation: str, name: str, *operands: str | np.ndarray | float) -> str:
        """Append a step and return its name; an operand that is an array or a number becomes a constant."""
        known = self.inputs.keys() | {step.name for step in self.steps}
        if name in known:
            raise ValueError(f"two steps are called {name}")
        self.steps.append(Step(operation, name, tuple(self._named(name, operand) for operand in operands)))
        return name

    def reshape(self, name: str, x: str, *shape: int) -> str:
        """Append a step that gives each example of the batch this shape, and return its name."""
        return self.add("Reshape", name, x, np.asarray((-1, *shape)))

    def bounded(self, name: str, x: str, low: np.ndarray | float, high: np.ndarray | float) -> str:
        """Append the steps that keep x within bounds, and return the name of the last."""
        return self.add("Min", name, self.add("Max", f"{name}.from_below", x, low), high)

    def program(self) -> dict[str, Any]:
        """Return inputs and steps, as JSON can hold them."""
        return {"inputs": self.inputs, "steps": self.steps}

    def _named(self, step: str, operand: str | np.ndarray | float) -> str:
        if isinstance(operand, str):
            return operand
        array, name = np.asarray(operand), f"{step}.constant"
        self.constants[name] = array if array.dtype == np.int64 else array.astype(np.float32)
        return name
