"""Who finds the far peak: a map over its width and height, for each direction of the KL divergence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from bisac.algos import MPO, SAC, BidirectionalSAC, ForwardSAC, OffPolicy
from bisac.envs.tasks.peaks import NEAR_HEIGHT
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.peaks_training import train_on_peaks
from bisac.nets.mlp import WIDEST
from bisac.plotting.style import LABELS, drawing, rendered
from bisac.validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COOL = 0.05
"""Where the temperature of classic critics starts: at 1, they would not cool down in so few steps."""


@dataclass(frozen=True)
class ModesFigure(PaperFigure):
    """Who finds the far peak of bisac/Peaks-v0, over its width and height: SAC, Forward SAC, bisac, MPO. Needs no run.

    In each action dimension the reward has a broad near peak of 0.6 and a narrow far one. A cell of the map is the
    share of the far peak's gain that the trained policy has: 0 at the near peak, 1 at the far one, the mean over seeds.
    Forward SAC evaluates its marginals at every node: 17 Chebyshev points lie too far apart for narrow peaks.
    """

    widths: tuple[float, ...] = (0.02, 0.04, 0.08, 0.16)
    """Widths of the far peak; the near one's is 0.3."""
    heights: tuple[float, ...] = (0.7, 1.0, 1.5)
    """Heights of the far peak; the near one's is 0.6."""
    dims: int = 2
    """Action dimensions."""
    distance: float = 1.2
    """Distance of the peaks from each other in each dimension."""
    coupling: float = 0.0
    """Weight of the dimension with the least worth, beside the mean of all: no additive critic is exact above 0."""
    steps: int = 4000
    """Steps of each training, the first 1,000 of them random, with one update a step."""
    seeds: int = 3
    """Trainings in each cell, each from a seed of its own."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the networks' hidden layers."""

    def __post_init__(self):
        require(self, "between 0 and 1", lambda v: 0.0 < v <= 1.0, "widths")
        require(self, f"above {NEAR_HEIGHT}", lambda v: v > NEAR_HEIGHT, "heights")
        require(self, "from 1 to 8", lambda v: 1 <= v <= 8, "dims")
        require(self, "between 0 and 2", lambda v: 0.0 < v < 2.0, "distance")
        require(self, "from 0 to 1", lambda v: 0.0 <= v <= 1.0, "coupling")
        require(self, "at least 1100", lambda v: v >= 1100, "steps")
        require(self, "at least 1", lambda v: v >= 1, "seeds")
        require(self, f"one or more widths from 1 to {WIDEST}", lambda v: 1 <= v <= WIDEST, "hidden")

    def make(self, tell: Tell) -> Made:
        """Train every contestant in every cell, then draw the maps."""
        returns = {name: self._returns(name, algo, tell) for name, algo in self._contestants().items()}
        gains = {name: self._gains(found) for name, found in returns.items()}
        numbers = {
            name: {"return": returns[name], "gain": gain.mean(axis=-1), "found": (gain > 0.5).mean(axis=-1)}
            for name, gain in gains.items()
        }
        cells = len(self.widths) * len(self.heights) * self.seeds
        summary = [
            f"{LABELS[name]}: {int((gain > 0.5).sum())} of {cells} trainings at the far peak; "
            f"mean gain {gain.mean():.2f}."
            for name, gain in gains.items()
        ]
        return Made({"axes": ["height", "width", "seed"]} | numbers, self._draw(gains), summary)

    def _contestants(self) -> dict[str, OffPolicy[Any]]:
        sizes: dict[str, Any] = {"hidden": self.hidden, "replay_size": self.steps}
        classic = {"initial_temperature": COOL, **sizes}
        contestants: dict[str, OffPolicy[Any]] = {
            "sac": SAC(**sizes),
            "forward-sac": ForwardSAC(chebyshev_points=0, **classic),
            "bisac": BidirectionalSAC(**sizes),
            "mpo": MPO(**sizes),
        }
        return {name: algo.settled() for name, algo in contestants.items()}

    def _returns(self, name: str, algo: OffPolicy[Any], tell: Tell) -> np.ndarray:
        """Return what a contestant's policies bring, by height, width and seed."""
        found = np.zeros((len(self.heights), len(self.widths), self.seeds))
        for i, height in enumerate(self.heights):
            for j, width in enumerate(self.widths):
                tell(f"{LABELS[name]}: far peak {height:g} high and {width:g} wide")
                for seed in range(self.seeds):
                    cell = (jnp.int32(seed), jnp.float32(width), jnp.float32(height))
                    found[i, j, seed] = train_on_peaks(algo, self.dims, self.steps, *cell, self.distance, self.coupling)
        return found

    def _gains(self, returns: np.ndarray) -> np.ndarray:
        """Return what is had of the far peak's gain over the near one."""
        heights = np.asarray(self.heights)[:, None, None]
        return (returns - NEAR_HEIGHT) / (heights - NEAR_HEIGHT)

    def _draw(self, gains: dict[str, np.ndarray]) -> dict[str, bytes]:
        with drawing(2.1 * len(gains) + 0.6, 0.42 * len(self.heights) + 1.1) as figure:
            panels = figure.subplots(1, len(gains), sharey=True)
            maps = [self._draw_map(*pair) for pair in zip(panels, gains.values(), strict=True)]
            for axes, name in zip(panels, gains, strict=True):
                axes.set_title(LABELS[name])
            panels[0].set_ylabel("height of the far peak")
            panels[0].set_yticks(range(len(self.heights)), [f"{height:g}" for height in self.heights])
            figure.colorbar(maps[0], ax=panels, label="share of its gain", shrink=0.9)
            return rendered(figure)

    def _draw_map(self, axes: "Axes", gains: np.ndarray) -> Any:
        gain = gains.mean(axis=-1)
        shown = axes.imshow(gain, vmin=0.0, vmax=1.0, cmap="viridis", origin="lower", aspect="auto")
        for (i, j), value in np.ndenumerate(gain):
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", color="w" if value < 0.6 else "k")
        axes.set_xticks(range(len(self.widths)), [f"{width:g}" for width in self.widths])
        axes.set(xlabel="its width")
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        return shown
