"""The paper's synthetic study as a figure: what VDN-a makes of a Q whose marginals are known."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import density, exact_grid, moments
from bisac.figures.panels import draw_truth, fit_to, support
from bisac.figures.vdna_fit import SETUPS, Fit, Target, fit, make_target, true_marginals
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, drawing, rendered
from bisac.validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JOINT_COLOUR = "#aa4499"
"""The colour of what was trained jointly."""
LOOKS: dict[str, dict[str, Any]] = {
    "residual": {"color": COLOURS["bisac"], "ls": "--"},
    "joint": {"color": JOINT_COLOUR, "ls": ":"},
}
"""The two ways of fitting whose marginals are drawn."""


@dataclass(frozen=True)
class VdnAFigure(PaperFigure):
    """VDN-a fitted to a known Q: unimodal and bimodal marginals, independent and not, and what U does. Needs no run.

    Q is the log of a density with known marginals, joined by a Gaussian copula. sum_i Q_i + U is not unique: the figure
    shows how the estimated marginals depend on how the sum is trained, and on the size of U, its initialisation and its
    regularisation.
    """

    dims: int = 3
    """Action dimensions."""
    correlation: float = 0.7
    """The copula's correlation between any two dimensions."""
    steps: int = 2000
    """Gradient steps of each fit, with 256 uniform actions each."""
    learning_rate: float = 1e-3
    """Step size of the fit's optimiser."""
    seeds: int = 3
    """Fits of each kind, each from a seed of its own."""

    def __post_init__(self):
        require(self, "from 1 to 20", lambda v: 1 <= v <= 20, "dims")
        require(self, "at least 1", lambda v: v >= 1, "steps", "seeds")
        require(self, "positive", lambda v: v > 0.0, "learning_rate")
        if not (least := -1.0 / max(self.dims - 1, 1)) < self.correlation < 1.0:
            raise BisacError(
                f"--correlation must be between {least:.2f} and 1 in {self.dims} dimensions, got {self.correlation}."
            )

    def make(self, tell: Tell) -> Made:
        """Fit every setup to every target, then draw."""
        grid, cases = exact_grid(4.0, 160), self._cases()
        keys = jax.vmap(jax.random.key)(jnp.arange(self.seeds))
        fits: dict[tuple[str, str], Fit] = {}
        for setup in SETUPS:
            settings = (setup.decomposition, setup.width, self.steps, self.learning_rate, grid)
            for case, target in cases.items():
                tell(f"{case}: {setup.label}")
                fits[case, setup.label] = fit(target, keys, setup.scale, setup.penalty, *settings)
        numbers = {case: _statistics(case, target, fits, grid) for case, target in cases.items()}
        summary = [
            f"{case}: total variation {n['residual']['total_variation']['median']:.3f} residual, "
            f"{n['joint']['total_variation']['median']:.3f} joint; std {n['residual']['std']['mean']:.3f} and "
            f"{n['joint']['std']['mean']:.3f}, true {n['true_std']:.3f}."
            for case, n in numbers.items()
        ]
        return Made(numbers, self._draw(cases, fits, grid), summary)

    def _cases(self) -> dict[str, Target]:
        return {
            f"{shape}, {dependence}": make_target(shape == "bimodal", self.dims, rho)
            for shape in ("unimodal", "bimodal")
            for dependence, rho in (("independent", 0.0), (f"correlation {self.correlation:g}", self.correlation))
        }

    def _draw(self, cases: dict[str, Target], fits: dict[tuple[str, str], Fit], grid: Grid) -> dict[str, bytes]:
        with drawing(9.4, 4.4) as figure:
            panels = figure.subplots(2, len(cases), height_ratios=(1.0, 1.15))
            for column, (case, target) in zip(panels.T, cases.items(), strict=True):
                of_case = {label: one for (which, label), one in fits.items() if which == case}
                truth = np.asarray(true_marginals(target, grid))
                _draw_marginals(column[0], of_case, truth, grid)
                column[0].set_title(case)
                _draw_variations(column[1], of_case, truth)
            panels[0, 0].set_ylabel("density")
            panels[1, 0].set_yticklabels([setup.label for setup in SETUPS])
            furthest = max(axes.get_xlim()[1] for axes in panels[1])
            for axes in panels[1]:
                axes.set_xlim(0.0, furthest)
            handles, labels = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
            return rendered(figure)


def _draw_marginals(axes: "Axes", fits: dict[str, Fit], truth: np.ndarray, grid: Grid) -> None:
    """Draw the first dimension's marginal: the true one, and each seed's by the two ways of fitting."""
    draw_truth(axes, truth[0], grid)
    for name, look in LOOKS.items():
        for index, mass in enumerate(np.asarray(fits[name].marginals)[:, 0]):
            label = f"VDN-a, {name} (each seed)" if index == 0 else None
            axes.plot(grid.nodes, density(mass, grid), lw=0.9, **look, label=label)
    fit_to(axes, [support(truth[0], grid)], grid)
    axes.set_xlabel("$x_1$, where $a = \\tanh x$")


def _draw_variations(axes: "Axes", fits: dict[str, Fit], truth: np.ndarray) -> None:
    """Draw how far each way of fitting is from the truth, a row each."""
    for row, setup in enumerate(SETUPS):
        variation = _variation(fits[setup.label], truth)
        colour = COLOURS["bisac"] if setup.decomposition == "residual" else JOINT_COLOUR
        axes.plot(variation, [row] * len(variation), "o", color=colour, ms=3, mew=0, alpha=0.5)
        axes.plot(np.median(variation), row, "|", color=colour, ms=10, mew=1.8)
    axes.set(xlabel="total variation from the truth", xlim=(0.0, None))
    axes.set(yticks=range(len(SETUPS)), yticklabels=[], ylim=(len(SETUPS) - 0.5, -0.5))
    axes.grid(visible=True, axis="both")


def _variation(fitted: Fit, truth: np.ndarray) -> np.ndarray:
    """Return the total variation from the truth of each seed's marginals, the mean over dimensions."""
    return 0.5 * np.abs(np.asarray(fitted.marginals) - truth).sum(axis=-1).mean(axis=-1)


def _statistics(case: str, target: Target, fits: dict[tuple[str, str], Fit], grid: Grid) -> dict[str, Any]:
    """Return how each setup's marginals differ from the truth."""
    truth = true_marginals(target, grid)
    true_mean, true_std = (np.asarray(v) for v in moments(truth, grid))
    numbers: dict[str, Any] = {"true_mean": true_mean.mean(), "true_std": true_std.mean()}
    numbers["true_per_dimension"] = {"mean": true_mean, "std": true_std}
    for setup in SETUPS:
        fitted = fits[case, setup.label]
        mean, std = (np.asarray(v) for v in moments(fitted.marginals, grid))  # (seed, act)
        variation = _variation(fitted, np.asarray(truth))
        numbers[setup.label] = {
            "total_variation": {
                "median": np.median(variation), "range": [variation.min(), variation.max()], "seeds": variation
            },
            "mean_error": np.abs(mean - true_mean).mean(),
            "std": {"mean": std.mean(), "range_over_seeds": [std.mean(axis=1).min(), std.mean(axis=1).max()]},
            "std_error": np.abs(std - true_std).mean(),
            "error_of_q": np.mean(fitted.error),
            "std_over_actions": {"sum_q_i": np.mean(fitted.separable_std), "u": np.mean(fitted.interaction_std)},
        }  # fmt: skip
    return numbers
