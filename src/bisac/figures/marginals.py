"""Whether VDN-a's marginals are the true ones, on a run's own critic and states."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Float, Int, Key

from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import (
    MOST_DIMENSIONS,
    boltzmann,
    density,
    exact_grid,
    importance_marginals,
    kl,
    moments,
    q_on_product,
    separable_marginals,
    total_variation,
)
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
from bisac.nets.critics import Decomposed
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, drawing, rendered
from bisac.validate import require

VARIATION_ACTIONS = 512
"""Uniform actions over which the parts' variation is measured."""
ENOUGH = 100
"""Effective samples below which importance sampling tells little."""
CUT_OFF = 0.01
"""A marginal with more probability than this in the outer tenths of [-b, b] counts as cut off."""


class Comparison(NamedTuple):
    """Of the states of one checkpoint."""

    truth: Float[Array, "state act node"]
    """The true marginals: by quadrature where the dimensions allow it, else by importance sampling."""
    estimate: Float[Array, "state act node"]
    """VDN-a's."""
    sampled: Float[Array, "state act node"]
    """The true ones by importance sampling."""
    effective_samples: Float[Array, "state"]
    separable_std: Float[Array, "state"]
    """Standard deviation over uniform actions of sum_i Q_i, the mean of the twins'."""
    interaction_std: Float[Array, "state"]
    """Of U."""
    q_std: Float[Array, "state"]
    """Of Q, their sum."""


@partial(jax.jit, static_argnames=("dims", "grid", "samples", "exactly"))
def compare(
    critic: Decomposed,
    obs: Float[Array, "obs"],
    alpha: Float[Array, ""],
    key: Key[Array, ""],
    index: int | Int[Array, ""],
    dims: int,
    grid: Grid,
    samples: int,
    exactly: bool,
) -> Comparison:
    """The marginals of the state of that index, and how much of Q's variation each part of it carries."""
    sample_key, action_key = jax.random.split(jax.random.fold_in(key, index))
    sampled, effective = importance_marginals(critic, obs, alpha, grid, sample_key, samples)
    truth = sampled
    if exactly:
        actions = jnp.broadcast_to(jnp.tanh(jnp.asarray(grid.nodes)), (dims, len(grid.nodes)))
        truth = boltzmann(q_on_product(critic, obs, actions).mean(axis=0), alpha, grid).marginals
    estimate = jnp.exp(separable_marginals(critic, obs, alpha, grid))
    uniform = jax.random.uniform(action_key, (VARIATION_ACTIONS, dims), minval=-1.0, maxval=1.0)
    parts = critic.parts(jnp.broadcast_to(obs, (VARIATION_ACTIONS, *obs.shape)), uniform)
    separable, interaction = (part.mean(axis=0) for part in parts)
    spread = (separable.std(), interaction.std(), (separable + interaction).std())
    return Comparison(truth, estimate, sampled, effective, *spread)


class Errors(NamedTuple):
    """Of VDN-a's marginals."""

    mean_error: Float[Array, "state act"]
    mean_bias: Float[Array, "state act"]
    std_error: Float[Array, "state act"]
    std_bias: Float[Array, "state act"]
    true_std: Float[Array, "state act"]
    total_variation: Float[Array, "state act"]
    kl_true_to_estimate: Float[Array, "state act"]
    kl_estimate_to_true: Float[Array, "state act"]


class Moments(NamedTuple):
    """Means and standard deviations of x."""

    mean: Float[Array, "state act"]
    std: Float[Array, "state act"]
    true_mean: Float[Array, "state act"]
    true_std: Float[Array, "state act"]
    sampled_mean: Float[Array, "state act"]
    sampled_std: Float[Array, "state act"]


@partial(jax.jit, static_argnames="grid")
def all_moments(compared: Comparison, grid: Grid) -> Moments:
    """Of VDN-a's marginals, the true ones and the sampled ones."""
    return Moments(*(v for mass in (compared.estimate, compared.truth, compared.sampled) for v in moments(mass, grid)))


@jax.jit
def errors(compared: Comparison, of: Moments) -> Errors:
    """Each measure of how far VDN-a's marginals are from the true ones."""
    mean, std = of.mean - of.true_mean, of.std - of.true_std
    return Errors(
        jnp.abs(mean),
        mean,
        jnp.abs(std),
        std,
        of.true_std,
        total_variation(compared.estimate, compared.truth),
        kl(compared.truth, compared.estimate),
        kl(compared.estimate, compared.truth),
    )


def statistics(compared: Comparison, of: Moments, grid: Grid, exactly: bool) -> dict[str, Any]:
    """The errors of VDN-a's marginals, per dimension and over all."""
    measures = {name: np.asarray(values) for name, values in errors(compared, of)._asdict().items()}
    per_dimension = {name: values.mean(axis=0) for name, values in measures.items()}
    per_dimension["mean_correlation"] = correlation(of.mean, of.true_mean)
    per_dimension["std_correlation"] = correlation(of.std, of.true_std)
    edge_mass = np.asarray(compared.truth)[..., np.abs(grid.nodes) > 0.9 * grid.bound].sum(axis=-1)
    effective = np.asarray(compared.effective_samples)
    numbers: dict[str, Any] = {
        "states": len(effective),
        "truth": "quadrature" if exactly else "importance sampling",
        "per_dimension": per_dimension,
        "over_all": {name: np.mean(values) for name, values in per_dimension.items()},
        "median": {name: np.median(values) for name, values in measures.items()},
        "std_over_actions": {
            "sum_q_i": np.mean(np.asarray(compared.separable_std)),
            "u": np.mean(np.asarray(compared.interaction_std)),
            "q": np.mean(np.asarray(compared.q_std)),
        },
        "effective_samples": {
            "median": np.median(effective),
            "least": effective.min(),
            "share_of_states_above_100": np.mean(effective > ENOUGH),
        },
        "share_of_marginals_cut_off": np.mean(edge_mass > CUT_OFF),
        "share_of_marginals_sharper_than_grid": np.mean(np.asarray(of.true_std) < grid.spacing),
    }
    if exactly:
        apart = {
            "mean_error": np.abs(np.asarray(of.sampled_mean) - np.asarray(of.true_mean)),
            "std_error": np.abs(np.asarray(of.sampled_std) - np.asarray(of.true_std)),
            "total_variation": 0.5 * np.abs(np.asarray(compared.sampled) - np.asarray(compared.truth)).sum(axis=-1),
        }
        numbers["importance_sampling_against_quadrature"] = {
            name: {measure: values[chosen].mean() if chosen.any() else None for measure, values in apart.items()}
            for name, chosen in (("all_states", effective > 0.0), ("where_effective", effective > ENOUGH))
        }
    return numbers


def correlation(x: Float[Array, "state act"], y: Float[Array, "state act"]) -> Float[np.ndarray, "act"]:
    """Over states; not a number where one of them does not vary."""
    a, b = (v - v.mean(axis=0) for v in (np.asarray(x, np.float64), np.asarray(y, np.float64)))
    scale = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0))
    return np.where(scale > 0.0, (a * b).sum(axis=0) / np.where(scale > 0.0, scale, 1.0), np.nan)


@dataclass(frozen=True)
class Marginals(PaperFigure):
    """VDN-a's marginals against the true ones of exp(Q / alpha), on states of a run's memory.

    RUN is a run folder (all checkpoints that it keeps: the last two) or a checkpoint's folder; give several to compare
    them, such as one run trained with --decomposition residual and one with joint. The truth is by quadrature in all
    action dimensions where those are at most three; else by importance sampling from the product of VDN-a's marginals,
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
    """Of the states and the draws."""

    def __post_init__(self):
        require(self, "at least 2", lambda v: v >= 2, "states", "samples")
        require(self, "positive", lambda v: v > 0.0, "bound")
        require(self, "even and from 2 to 1000", lambda v: 2 <= v <= 1000 and v % 2 == 0, "intervals")

    def make(self, tell: Tell) -> Made:
        """Compare on every checkpoint, then draw."""
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
        of: list[Moments],
        numbers: list[dict[str, Any]],
        grid: Grid,
    ) -> dict[str, bytes]:
        shown = min(SHOWN_DIMENSIONS, sources[0].action_dim)
        widths = [1.0] * shown + [0.95, 0.95, 0.55]
        with drawing(1.75 * len(widths), 1.75 * len(sources) + 0.45) as figure:
            panels = figure.subplots(len(sources), len(widths), squeeze=False, width_ratios=widths)
            for row, source, one, m, n in zip(panels, sources, compared, of, numbers, strict=True):
                differences = np.abs(np.asarray(one.estimate) - np.asarray(one.truth)).sum(axis=(1, 2))
                example = int(np.argsort(differences)[len(differences) // 2])
                for i, axes in enumerate(row[:shown]):
                    true, estimated = np.asarray(one.truth[example, i]), np.asarray(one.estimate[example, i])
                    draw_truth(axes, true, grid)
                    axes.plot(grid.nodes, density(estimated, grid), color=COLOURS["bisac"], ls="--", label="VDN-a")
                    fit_to(axes, [support(true, grid), support(estimated, grid)], grid)
                row[0].set_ylabel(f"{source.label}\ndensity", fontsize=7.5)
                for axes, name, estimate, truth in (
                    (row[shown], "mean", m.mean, m.true_mean),
                    (row[shown + 1], "std", m.std, m.true_std),
                ):
                    r = n["over_all"][f"{name}_correlation"]
                    draw_against(axes, np.asarray(truth), np.asarray(estimate), f"r = {r:.2f}", ylabel=f"VDN-a {name}")
                bars, parts = row[-1], n["std_over_actions"]
                bars.bar([0, 1], [parts["sum_q_i"], parts["u"]], color=[COLOURS["bisac"], "0.6"], width=0.65)
                bars.set(xticks=[0, 1], xticklabels=[r"$\sum Q_i$", "$U$"], xlim=(-0.6, 1.6), ylabel="std over actions")
            for i, axes in enumerate(panels[0, :shown]):
                axes.set_title(f"dimension {i + 1}")
            for i, axes in enumerate(panels[-1, :shown]):
                axes.set_xlabel(f"$x_{i + 1}$, where $a = \\tanh x$")
            panels[-1, shown].set_xlabel("true mean of $x$")
            panels[-1, shown + 1].set_xlabel("true std of $x$")
            figure.legend(*_legend(panels[0, 0], shown), loc="outside lower center", ncols=6)
            return rendered(figure)


def _sentence(label: str, errors: dict[str, Any], parts: dict[str, Any], effective: dict[str, Any]) -> str:
    return (
        f"{label}: mean off by {errors['mean_error']:.3f} (correlation {errors['mean_correlation']:.2f}), std by "
        f"{errors['std_error']:.3f} (correlation {errors['std_correlation']:.2f}), where the true std is "
        f"{errors['true_std']:.2f}; total variation {errors['total_variation']:.2f}; over actions U varies by "
        f"{parts['u']:.2g} and sum Q_i by {parts['sum_q_i']:.2g}; importance sampling has more than {ENOUGH} "
        f"effective samples in {effective['share_of_states_above_100']:.0%} of the states."
    )


def _legend(axes: Any, shown: int) -> tuple[list[Any], list[str]]:
    """Handles and labels: the densities' lines, and the markers of the dimensions."""
    from matplotlib.lines import Line2D  # slow to import, and wanted only here

    handles, labels = axes.get_legend_handles_labels()
    labels[0] = "true marginal (state of median error)"
    for i in range(shown):
        handles.append(Line2D([], [], marker=MARKERS[i], color=DIMENSION_COLOURS[i], ls="none", ms=4))
        labels.append(f"a state, dimension {i + 1}")
    return handles, labels
