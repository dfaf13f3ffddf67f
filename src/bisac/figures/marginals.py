"""The figure that tells whether a run's marginals are the true ones, on a run's own critic and states."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import jax
import numpy as np
import tyro

from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import MOST_DIMENSIONS, density, exact_grid
from bisac.figures.marginal_errors import ENOUGH, Comparison, MarginalMoments, all_moments, compare, statistics
from bisac.figures.panels import (
    DIMENSION_COLOURS,
    MARKERS,
    SHOWN_DIMENSIONS,
    draw_against,
    draw_truth,
    fit_to,
    support,
)
from bisac.figures.sources import Source, read_sources
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, drawing, literal, rendered
from bisac.validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class MarginalsFigure(PaperFigure):
    """A run's marginals against the true ones of exp(Q / alpha), on states of its memory.

    RUN is a run folder (all checkpoints that it keeps: the last two) or a checkpoint's folder; give several to compare
    them, such as one run trained with --decomposition residual and one with joint. The truth is by quadrature in all
    action dimensions where those are at most three; else by importance sampling from the product of the estimates,
    which the numbers check against quadrature where both are possible. States and the effective sample size are in the
    numbers, with the errors of means and standard deviations, their correlations, total variation and KL.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Run folders or checkpoints' folders."""
    states: int = 64
    """States drawn from each checkpoint's replay memory."""
    samples: int = 32_768
    """Draws per state of the importance sampling."""
    bound: float = 5.0
    """The integration takes x in [-bound, bound]."""
    intervals: int = 100
    """Even number of Simpson intervals per dimension."""
    seed: int = 0
    """Seed of the choice of states and of the draws."""

    def __post_init__(self):
        require(self, "at least 2", lambda v: v >= 2, "states", "samples")
        require(self, "positive", lambda v: v > 0.0, "bound")
        require(self, "even and from 2 to 1000", lambda v: 2 <= v <= 1000 and v % 2 == 0, "intervals")

    def make(self, tell: Tell) -> Made:
        """Compare the marginals at every checkpoint, then draw them."""
        sources, grid = read_sources(self.runs, "marginals"), exact_grid(self.bound, self.intervals)
        exactly = sources[0].action_dim <= MOST_DIMENSIONS
        compared = [self._compare(source, grid, exactly, tell) for source in sources]
        of = [all_moments(one, grid) for one in compared]
        found = zip(sources, compared, of, strict=True)
        numbers = [source.describe() | statistics(c, m, grid, exactly) for source, c, m in found]
        summary = [_sentence(n["label"], n["over_all"], n["std_over_actions"], n["effective_samples"]) for n in numbers]
        return Made({"checkpoints": numbers}, self._draw(sources, compared, of, numbers, grid), summary)

    def _compare(self, source: Source, grid: Grid, exactly: bool, tell: Tell) -> Comparison:
        obs, key = np.asarray(source.batch(self.states, self.seed).obs), jax.random.key(self.seed)
        settings, compared = (source.action_dim, grid, self.samples, exactly), []
        for index in range(self.states):
            tell(f"{source.label}: state {index + 1} of {self.states}")
            compared.append(jax.device_get(compare(source.critic, obs[index], source.alpha, key, index, *settings)))
        stacked: Comparison = jax.tree.map(lambda *leaves: np.stack(leaves), *compared)
        spreads = ("separable_std", "interaction_std", "q_std")
        return stacked._replace(**{name: source.unit * getattr(stacked, name) for name in spreads})

    def _draw(
        self,
        sources: list[Source],
        compared: list[Comparison],
        of: list[MarginalMoments],
        numbers: list[dict[str, Any]],
        grid: Grid,
    ) -> dict[str, bytes]:
        shown = min(SHOWN_DIMENSIONS, sources[0].action_dim)
        widths = [1.0] * shown + [0.95, 0.95, 0.55]
        with drawing(1.75 * len(widths), 1.75 * len(sources) + 0.45) as figure:
            panels = figure.subplots(len(sources), len(widths), squeeze=False, width_ratios=widths)
            for row, source, one, m, n in zip(panels, sources, compared, of, numbers, strict=True):
                _draw_median_state(row[:shown], one, grid)
                row[0].set_ylabel(f"{literal(source.label)}\ndensity", fontsize=7.5)
                _draw_moments(row[shown : shown + 2], m, n["over_all"])
                _draw_parts(row[-1], n["std_over_actions"])
            for i, axes in enumerate(panels[0, :shown]):
                axes.set_title(f"dimension {i + 1}")
            for i, axes in enumerate(panels[-1, :shown]):
                axes.set_xlabel(f"$x_{i + 1}$, where $a = \\tanh x$")
            panels[-1, shown].set_xlabel("true mean of $x$")
            panels[-1, shown + 1].set_xlabel("true std of $x$")
            figure.legend(*_legend(panels[0, 0], shown), loc="outside lower center", ncols=6)
            return rendered(figure)


def _draw_median_state(row: np.ndarray, one: Comparison, grid: Grid) -> None:
    """Draw both marginals of each dimension at the state of median error."""
    differences = np.abs(np.asarray(one.estimate) - np.asarray(one.truth)).sum(axis=(1, 2))
    example = int(np.argsort(differences)[len(differences) // 2])
    for i, axes in enumerate(row):
        true, estimated = np.asarray(one.truth[example, i]), np.asarray(one.estimate[example, i])
        draw_truth(axes, true, grid)
        axes.plot(grid.nodes, density(estimated, grid), color=COLOURS["bisac"], ls="--", label="estimate")
        fit_to(axes, [support(true, grid), support(estimated, grid)], grid)


def _draw_moments(pair: np.ndarray, of: MarginalMoments, over_all: dict[str, Any]) -> None:
    """Draw estimated means and standard deviations of all states against the true ones."""
    for axes, name, estimate, truth in zip(
        pair, ("mean", "std"), (of.mean, of.std), (of.true_mean, of.true_std), strict=True
    ):
        note = f"r = {over_all[f'{name}_correlation']:.2f}"
        draw_against(axes, np.asarray(truth), np.asarray(estimate), note, ylabel=f"estimated {name}")


def _draw_parts(axes: "Axes", parts: dict[str, Any]) -> None:
    """Draw how much each part of Q varies over actions."""
    axes.bar([0, 1], [parts["sum_q_i"], parts["u"]], color=[COLOURS["bisac"], "0.6"], width=0.65)
    axes.set(xticks=[0, 1], xticklabels=[r"$\sum Q_i$", "$U$"], xlim=(-0.6, 1.6), ylabel="std over actions")


def _sentence(label: str, errors: dict[str, Any], parts: dict[str, Any], effective: dict[str, Any]) -> str:
    return (
        f"{label}: mean off by {errors['mean_error']:.3f} (correlation {errors['mean_correlation']:.2f}), std by "
        f"{errors['std_error']:.3f} (correlation {errors['std_correlation']:.2f}), where the true std is "
        f"{errors['true_std']:.2f}; total variation {errors['total_variation']:.2f}; over actions U varies by "
        f"{parts['u']:.2g} and sum Q_i by {parts['sum_q_i']:.2g}; importance sampling has more than {ENOUGH} "
        f"effective samples in {effective['share_of_states_above_100']:.0%} of the states."
    )


def _legend(axes: "Axes", shown: int) -> tuple[list[Any], list[str]]:
    """Return the legend's handles and labels: the densities' lines, and the markers of the dimensions."""
    from matplotlib.lines import Line2D  # slow to import, and wanted only here

    handles, labels = axes.get_legend_handles_labels()
    labels[0] = "true marginal (state of median error)"
    for i in range(shown):
        handles.append(Line2D([], [], marker=MARKERS[i], color=DIMENSION_COLOURS[i], ls="none", ms=4))
        labels.append(f"a state, dimension {i + 1}")
    return handles, labels
