"""How a report's numbers are put into words: counts, intervals, verdicts, settings."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from bisac.plotting.statistics import Estimate


def plural(word: str, count: int) -> str:
    """Return a count with its noun: 1 seed, 2 seeds."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def counted(seeds: Sequence[int]) -> str:
    """Return how many seeds several numbers rest on: 5 seeds, or 3 to 5 seeds."""
    if not seeds:
        return "no complete run"
    low, high = min(seeds), max(seeds)
    return plural("seed", low) if low == high else f"{low} to {high} seeds"


def with_interval(estimate: Estimate, digits: str) -> str:
    """Return a number with its interval, as HTML."""
    if estimate.interval is None:
        return f"{estimate.value:{digits}} <small>[no interval]</small>"
    low, high = estimate.interval
    return f"{estimate.value:{digits}} <small>[{low:{digits}}, {high:{digits}}]</small>"


def decimals(estimate: Estimate, least: int = 0) -> int:
    """Return how many digits after the point an estimate needs, so that three of its largest number are seen."""
    size = max(map(abs, (estimate.value, *(estimate.interval or ()))))
    return max(least, min(4, 2 - math.floor(math.log10(size)))) if 0.0 < size < math.inf else least


def side(difference: Estimate) -> str:
    """Return whether a contestant is better or worse than the reference; nothing where neither is established."""
    if not difference.establishes(0.0):
        return ""
    return "better" if difference.value > 0 else "worse"


def plain(value: Any) -> str:
    """Return a setting's value as one would type it."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def verbatim(text: str) -> str:
    """Return text as plotly.js shows it to the letter, which else reads tags, places %{...} and mathematics $...$."""
    return escape(text, quote=False).replace("%", "&#37;").replace("$", "&#36;")
