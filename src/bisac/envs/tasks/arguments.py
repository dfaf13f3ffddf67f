"""Refusing arguments that a task cannot be made with: one sentence names the argument and what it may be."""

import math

from bisac.errors import BisacError


def whole(name: str, value: object, low: int, high: int) -> int:
    """Return the argument if it is a whole number from `low` to `high`; else refuse it."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise BisacError(f"{name} must be a whole number from {low} to {high}, got {value!r}.")


def number(name: str, value: object, low: float, high: float, *, above: bool = False) -> float:
    """Return the argument if it is a number from `low` (or only above it) to `high`; else refuse it."""
    if isinstance(value, int | float) and not isinstance(value, bool) and _within(value, low, high, above):
        return float(value)
    least = f"above {low:g}" if above else f"{low:g} or more"
    most = "" if math.isinf(high) else f" and at most {high:g}"
    raise BisacError(f"{name} must be a number {least}{most}, got {value!r}.")


def _within(value: float, low: float, high: float, above: bool) -> bool:
    rounding = 1e-9  # for bounds such as 1 - 0.9
    return math.isfinite(value) and low <= value <= high + rounding and not (above and value == low)


def flag(name: str, value: object) -> bool:
    """Return the argument if it is true or false; else refuse it."""
    if isinstance(value, bool):
        return value
    raise BisacError(f"{name} must be true or false, got {value!r}.")


def no_pictures(render_mode: object) -> None:
    """Refuse to draw a task that has no pictures."""
    if render_mode is not None:
        raise BisacError("this task has no pictures; leave out render_mode, and --video on the command line.")
