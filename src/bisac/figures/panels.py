"""Panels that several figures have: densities of one action dimension, and one quantity against another."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bisac.figures.boltzmann import density
from bisac.ops.quadrature import Grid
from bisac.plotting.style import TRUTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "^")
"""The marker of each action dimension."""
DIMENSION_COLOURS = ("#0072b2", "#e69f00", "#009e73")
"""The colour of each action dimension."""
SHOWN_DIMENSIONS = 3
"""The number of action dimensions that are drawn: more would not fit a page. The numbers have all."""


def draw_truth(axes: "Axes", mass: np.ndarray, grid: Grid) -> None:
    """Draw the true marginal, as a shaded outline."""
    true = density(mass, grid)
    axes.fill_between(grid.nodes, true, color=TRUTH, alpha=0.1, lw=0)
    axes.plot(grid.nodes, true, color=TRUTH, lw=1.2, label="true marginal")
    axes.set_yticks([])
    axes.grid(visible=False)


def support(mass: np.ndarray, grid: Grid) -> tuple[float, float]:
    """Return between which values of x all but a thousandth of a distribution on either side lies."""
    below = np.cumsum(mass)
    first, last = np.searchsorted(below, 1e-3), min(np.searchsorted(below, 1.0 - 1e-3), len(below) - 1)
    return float(grid.nodes[first]), float(grid.nodes[last])


def fit_to(axes: "Axes", supports: list[tuple[float, float]], grid: Grid) -> None:
    """Show the part of [-b, b] in which something is, and no more of a spike than leaves the rest to be seen.

    The first line must be the truth's, and there must be others.
    """
    low, high = min(low for low, _ in supports), max(high for _, high in supports)
    margin = 0.1 * (high - low) + grid.spacing
    axes.set_xlim(max(low - margin, -grid.bound), min(high + margin, grid.bound))
    truth, *others = (float(np.max(line.get_ydata())) for line in axes.lines)
    axes.set_ylim(0.0, 1.08 * min(max(truth, *others), 2.5 * truth, 4.0 * max(others)))


def normal_density(x: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Return the density of a normal distribution at each x."""
    return np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * np.sqrt(2.0 * np.pi))


def log_ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers between two positive ones, for an axis of ratios; of many, powers of ten alone."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5) if low <= digit * 10.0**power <= high]
    tens = [tick for tick in ticks if math.log10(tick).is_integer()]
    return ticks if len(ticks) <= 6 else tens[:: max(1, len(tens) // 4)]


def draw_against(axes: "Axes", x: np.ndarray, y: np.ndarray, note: str, log: bool = False, **labels: Any) -> None:
    """Draw one quantity against another, a marker a dimension (the columns), with the diagonal on which they agree."""
    shown = [(x[:, i], y[:, i]) for i in range(x.shape[1])]
    for i, pair in enumerate(shown):
        look = i if len(shown) <= SHOWN_DIMENSIONS else 0
        axes.plot(*pair, MARKERS[look], color=DIMENSION_COLOURS[look], ms=3, mew=0, alpha=0.6, ls="none")
    both = np.concatenate([x.ravel(), y.ravel()])
    both = both[np.isfinite(both) & ((both > 0.0) | (not log))]
    low, high = (float(both.min()), float(both.max())) if len(both) else (0.1, 1.0)
    if log:
        low, high = low / 1.6, high * 1.6
        axes.set(xscale="log", yscale="log")
        ticks = log_ticks(low, high)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    else:
        margin = 0.06 * (high - low) + 1e-6
        low, high = low - margin, high + margin
    axes.plot([low, high], [low, high], color="0.6", lw=0.8, zorder=0)
    axes.set(xlim=(low, high), ylim=(low, high), **labels)
    axes.set_box_aspect(1.0)
    axes.grid(visible=False)
    axes.set_title(note, fontsize=7.5, loc="left")
