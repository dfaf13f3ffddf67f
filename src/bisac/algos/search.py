"""Where to look for good values of a hyperparameter: written in its field's metadata, beside its default.

It must not know how one looks.
"""

import math
from dataclasses import dataclass
from typing import Any

from bisac.errors import BisacError

SEARCH = "search"
"""In a field's metadata: the values among which to look for a good one."""


@dataclass(frozen=True)
class Range:
    """All numbers from one to another."""

    low: float
    """The least."""
    high: float
    """The largest."""
    log: bool = False
    """Whether equal ratios count the same, not equal differences."""
    whole: bool = False
    """Whether the numbers are whole."""

    def __post_init__(self):
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise BisacError(f"a range goes from a number up to a larger one, not from {self.low} to {self.high}.")
        if self.log and self.low <= 0:
            raise BisacError(f"a range of ratios (log) begins above 0, not at {self.low}.")

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, int if self.whole else int | float) and self.low <= value <= self.high

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that stand for all: whoever takes these takes the others too."""
        return self.low, self.high

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}" + (", by ratio" if self.log else "")


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]
    """The values."""

    def __post_init__(self):
        if len(set(self.values)) < max(2, len(self.values)):
            raise BisacError(
                f"a choice needs two values or more, all different, not {', '.join(map(str, self.values))}."
            )

    def __contains__(self, value: Any) -> bool:
        return value in self.values

    @property
    def samples(self) -> tuple[Any, ...]:
        """Values that stand for all: here, all of them."""
        return self.values

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


Dimension = Range | Choice
"""Where to look for one hyperparameter."""


def between(low: float, high: float, log: bool = False) -> dict[str, Range]:
    """Return the metadata of a field that is to be looked for in a range; of whole numbers if both ends are."""
    return {SEARCH: Range(low, high, log, isinstance(low, int) and isinstance(high, int))}


def among(*values: Any) -> dict[str, Choice]:
    """Return the metadata of a field that is to be looked for among a few values."""
    return {SEARCH: Choice(values)}
