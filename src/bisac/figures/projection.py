"""The figure that tells whether a step of forward projection lands nearer the Boltzmann policy than a step of SAC."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import tyro
from jaxtyping import Array, Float

from bisac.algos import algorithm_name
from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import MOST_DIMENSIONS, exact_grid
from bisac.figures.one_step import (
    PROJECTION,
    SAC_STEP,
    START,
    Distances,
    Stepping,
    distances,
    one_step_policies,
    statistics,
)
from bisac.figures.panels import draw_against, draw_truth, fit_to, normal_density, support
from bisac.figures.sources import Source, read_sources
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, LINE_STYLES, drawing, literal, rendered
from bisac.validate import require

LEAST_SHOWN = 0.01
"""Where the picture's divergences end, in nats: a target sharper than the grid can make them smaller, even negative."""
LOOKS: dict[int, dict[str, Any]] = {
    START: {"color": "0.55", "ls": ":", "label": "policy before"},
    SAC_STEP: {"color": COLOURS["sac"], "ls": LINE_STYLES["sac"], "label": "after one SAC step"},
    PROJECTION: {
        "color": COLOURS["forward-sac"], "ls": LINE_STYLES["forward-sac"], "label": "forward projection"
    },
}  # fmt: skip
"""The policies whose densities are drawn."""


@dataclass(frozen=True)
class ProjectionFigure(PaperFigure):
    """One step of forward projection against one SAC step: which lands nearer exp(Q / alpha), over many states.

    RUN is a run folder (all checkpoints that it keeps: the last two) or a checkpoint's folder, of a run with marginals
    (a VDN-a critic, or distilled ones), an actor network and at most three action dimensions. Both steps start from the
    checkpoint's policy, on one batch of its memory. D_KL in both directions is by quadrature in all dimensions; the
    numbers tell how often each is nearer. Also among them: the actor after one gradient step towards the projection,
    and the exact projection.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Run folders or checkpoints' folders."""
    states: int = 64
    """States of the batch on which the policies are judged."""
    batch: int = 256
    """Transitions in the batch."""
    bound: float = 5.0
    """The integration takes x in [-bound, bound]."""
    intervals: int = 100
    """Even number of Simpson intervals per dimension."""
    seed: int = 0
    """Seed of the choice of the batch and of the SAC step's actions."""

    def __post_init__(self):
        require(self, "at least 2", lambda v: v >= 2, "states", "batch")
        require(self, "positive", lambda v: v > 0.0, "bound")
        require(self, "even and from 2 to 1000", lambda v: 2 <= v <= 1000 and v % 2 == 0, "intervals")
        if self.states > self.batch:
            raise BisacError(f"--states must be at most --batch, got {self.states} and {self.batch}.")

    def make(self, tell: Tell) -> Made:
        """Take both steps at every checkpoint and measure where they lead, then draw that."""
        sources, grid = read_sources(self.runs, "projection"), exact_grid(self.bound, self.intervals)
        if (dims := sources[0].action_dim) > MOST_DIMENSIONS:
            raise BisacError(
                f"{sources[0].learned.spec.env_id} has {dims} action dimensions; the divergences are by quadrature in "
                f"all of them, which goes to {MOST_DIMENSIONS} at most. 'bisac figure marginals' takes any number."
            )
        batches = [source.batch(self.batch, self.seed).obs for source in sources]
        policies = [self._policies(source, obs) for source, obs in zip(sources, batches, strict=True)]
        given = zip(sources, batches, policies, strict=True)
        found = [self._measure(source, obs, policy, grid, tell) for source, obs, policy in given]
        numbers = [source.describe() | statistics(one, grid) for source, one in zip(sources, found, strict=True)]
        pictures = self._draw(sources, policies, found, numbers, grid)
        return Made({"checkpoints": numbers}, pictures, [_sentence(n) for n in numbers])

    def _policies(self, source: Source, obs: Float[Array, "batch obs"]) -> TanhGaussian:
        algo = source.learned.algo
        if not isinstance(algo, Stepping):
            raise BisacError(
                f"{source.path} is of {algorithm_name(algo)}, which has no actor network that could take SAC's step."
            )
        return one_step_policies(algo, source.state, obs, jax.random.key(self.seed), source.training_grid)

    def _measure(
        self, source: Source, obs: Float[Array, "batch obs"], policies: TanhGaussian, grid: Grid, tell: Tell
    ) -> Distances:
        seen, found = np.asarray(obs), []
        for index in range(self.states):
            tell(f"{source.label}: state {index + 1} of {self.states}")
            of_state = TanhGaussian(policies.mean[:, index], policies.log_std[:, index])
            found.append(jax.device_get(distances(source.critic, seen[index], source.alpha, of_state, grid)))
        return jax.tree.map(lambda *leaves: np.stack(leaves), *found)

    def _draw(
        self,
        sources: list[Source],
        policies: list[TanhGaussian],
        found: list[Distances],
        numbers: list[dict[str, Any]],
        grid: Grid,
    ) -> dict[str, bytes]:
        dims = sources[0].action_dim
        with drawing(1.75 * (dims + 2) + 0.3, 1.75 * len(sources) + 0.45) as figure:
            panels = figure.subplots(len(sources), dims + 2, squeeze=False)
            for row, source, policy, one, n in zip(panels, sources, policies, found, numbers, strict=True):
                _draw_median_state(row[:dims], policy, one, grid)
                row[0].set_ylabel(f"{literal(source.label)}\ndensity", fontsize=7.5)
                for axes, name, values in zip(
                    row[dims:], ("kl_q_pi", "kl_pi_q"), (one.forward, one.reverse), strict=True
                ):
                    share = n["target_mean"][name]["projection_nearer_than_sac_step"]
                    shown = np.maximum(np.asarray(values)[:, 0], LEAST_SHOWN)
                    note = f"projection nearer: {share:.0%}"
                    sac, projected = shown[:, [SAC_STEP]], shown[:, [PROJECTION]]
                    draw_against(axes, sac, projected, note, log=True, ylabel="projection (nats)")
            for i in range(dims):
                panels[0, i].set_title(f"dimension {i + 1}")
                panels[-1, i].set_xlabel(f"$x_{i + 1}$, where $a = \\tanh x$")
            panels[-1, dims].set_xlabel(r"SAC step, $D_\mathrm{KL}(q\,\|\,\pi)$ (nats)")
            panels[-1, dims + 1].set_xlabel(r"SAC step, $D_\mathrm{KL}(\pi\,\|\,q)$ (nats)")
            handles, labels = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
            return rendered(figure)


def _draw_median_state(row: np.ndarray, policies: TanhGaussian, one: Distances, grid: Grid) -> None:
    """Draw the marginals and the policies at the state where the projection's lead over the SAC step is the median."""
    forward, x = np.asarray(one.forward[:, 0]), np.linspace(-grid.bound, grid.bound, 2001)
    lead = forward[:, SAC_STEP] - forward[:, PROJECTION]
    example = int(np.argsort(lead)[len(lead) // 2])
    for i, axes in enumerate(row):
        truth = np.asarray(one.truth[example, i])
        draw_truth(axes, truth, grid)
        shown = [support(truth, grid)]
        for index, look in LOOKS.items():
            mean, std = (float(v[index, example, i]) for v in (policies.mean, policies.std))
            axes.plot(x, normal_density(x, mean, std), **look)
            shown.append((mean - 3.0 * std, mean + 3.0 * std))
        fit_to(axes, shown, grid)


def _sentence(numbers: dict[str, Any]) -> str:
    of = numbers["target_mean"]
    nearer = {name: of[name]["projection_nearer_than_sac_step"] for name in ("kl_q_pi", "kl_pi_q")}
    medians = {name: of[name]["quartiles"] for name in nearer}
    parts = [
        f"in {what} the projection is nearer in {nearer[name]:.0%} of the states (median "
        f"{medians[name]['projection'][1]:.2f} against {medians[name]['sac_step'][1]:.2f} nats)"
        for name, what in (("kl_q_pi", "D_KL(q || pi)"), ("kl_pi_q", "D_KL(pi || q)"))
    ]
    return f"{numbers['label']}: {'; '.join(parts)}."
