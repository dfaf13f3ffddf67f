"""Whether a step of forward projection lands nearer the Boltzmann policy than a step of SAC, on a run's own critic."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Float, Key

from bisac.algos import SAC, BidirectionalSAC, ForwardSACActor, algorithm_name
from bisac.algos.soft import SoftState
from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import (
    MOST_DIMENSIONS,
    boltzmann,
    exact_grid,
    forward_kl,
    moments,
    q_on_product,
    reverse_kl,
)
from bisac.figures.panels import draw_against, draw_truth, fit_to, normal_density, support
from bisac.figures.sources import Source, read_sources
from bisac.nets.actors import ProjectedActor, projected_gaussian
from bisac.nets.critics import Decomposed
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import projection_loss, reverse_kl_loss
from bisac.ops.projection import Projection
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, LINE_STYLES, drawing, rendered
from bisac.validate import require

POLICIES = ("start", "sac_step", "projection", "projection_actor_step", "exact_projection")
"""The run's policy; after one SAC step of its actor; VDN-a's projection; after one step of the actor towards that; and
the projection of the true marginals, which no policy can beat in D_KL(q || pi)."""
SAC_STEP, PROJECTION = POLICIES.index("sac_step"), POLICIES.index("projection")
LEAST_SHOWN = 0.01
"""Where the picture's divergences end, in nats: a target sharper than the grid can make them smaller, even negative."""
TARGETS = ("mean", "min")
"""Of the twins' Q: the projection is of their mean, SAC's loss has their minimum."""


class Distances(NamedTuple):
    """Of the policies of one state from the Boltzmann policy, for each target."""

    forward: Float[Array, "*state target policy"]
    """D_KL(q || pi)."""
    reverse: Float[Array, "*state target policy"]
    """D_KL(pi || q)."""
    truth: Float[Array, "*state act node"]
    """The marginals of q, for the mean of the twins."""
    exact: TanhGaussian
    """Their projection."""


Stepping = SAC | BidirectionalSAC | ForwardSACActor
"""The algorithms with an actor network, which can take SAC's step."""


@partial(jax.jit, static_argnames=("algo", "grid"))
def one_step_policies(
    algo: Stepping, state: SoftState, obs: Float[Array, "batch obs"], key: Key[Array, ""], grid: Grid
) -> TanhGaussian:
    """The policies but the last of `POLICIES`, stacked on the leading axis.

    Critic and temperature stay as they are. The steps are those of the checkpoint's own optimiser.
    """
    critic, alpha, optimiser = state.critic.fixed, state.alpha, algo.adam(algo.actor_lr)
    assert isinstance(critic, Decomposed)
    projected = ProjectedActor(critic.marginals, state.temperature.model, grid)(obs)

    def policy(model: Any) -> TanhGaussian:
        return algo.actor(eqx.tree_at(lambda s: s.actor.model, state, model))(obs)

    def sac_loss(model: Any):
        action, log_prob = policy(model).sample(key)
        return reverse_kl_loss(log_prob, critic(obs, action), alpha), None

    def forward_loss(model: Any):
        parts = projection_loss(policy(model), projected, "std")
        return parts.mean + parts.spread, None

    by_sac, by_projection = (state.actor.step(optimiser, loss)[0].model for loss in (sac_loss, forward_loss))
    policies = [policy(state.actor.model), policy(by_sac), projected, policy(by_projection)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)


@partial(jax.jit, static_argnames="grid")
def distances(
    critic: Decomposed, obs: Float[Array, "obs"], alpha: Float[Array, ""], policies: TanhGaussian, grid: Grid
) -> Distances:
    """Of the given policies of one state, and of the exact projection after them."""
    dims = policies.mean.shape[-1]
    actions = jnp.broadcast_to(jnp.tanh(jnp.asarray(grid.nodes)), (dims, len(grid.nodes)))
    q = q_on_product(critic, obs, actions)
    targets = [boltzmann(q.mean(axis=0), alpha, grid), boltzmann(q.min(axis=0), alpha, grid)]
    mean, std = moments(targets[0].marginals, grid)
    exact = projected_gaussian(Projection(mean, jnp.square(std), jnp.zeros_like(mean)))
    everyone = jax.tree.map(lambda rows, row: jnp.concatenate([rows, row[None]]), policies, exact)
    forward = [jax.vmap(partial(forward_kl, target, grid=grid))(everyone) for target in targets]
    partitions = jnp.stack([target.log_partition for target in targets])
    # One policy after another: the products of nodes of all at once would not fit in memory.
    reverse = jax.lax.map(lambda policy: reverse_kl(critic, obs, alpha, partitions, policy), everyone)
    return Distances(jnp.stack(forward), reverse.T, targets[0].marginals, exact)


def statistics(found: Distances, grid: Grid) -> dict[str, Any]:
    """Quartiles of each divergence, and how often the projection is nearer than the SAC step."""
    too_sharp = np.mean(np.asarray(found.exact.std) < grid.spacing)
    numbers: dict[str, Any] = {"states": len(found.forward), "share_of_marginals_sharper_than_grid": too_sharp}
    for t, target in enumerate(TARGETS):
        numbers[f"target_{target}"] = {
            name: {
                "quartiles": {p: np.quantile(values[:, t, i], [0.25, 0.5, 0.75]) for i, p in enumerate(POLICIES)},
                "projection_nearer_than_sac_step": np.mean(values[:, t, PROJECTION] < values[:, t, SAC_STEP]),
                "sac_step_nearer_than_start": np.mean(values[:, t, SAC_STEP] < values[:, t, 0]),
            }
            for name, values in (("kl_q_pi", np.asarray(found.forward)), ("kl_pi_q", np.asarray(found.reverse)))
        }
    return numbers


@dataclass(frozen=True)
class ProjectionFigure(PaperFigure):
    """One step of forward projection against one SAC step: which lands nearer exp(Q / alpha), over many states.

    RUN is a run folder (all checkpoints that it keeps: the last two) or a checkpoint's folder, of a run with a VDN-a
    critic, an actor network and at most three action dimensions. Both steps start from the checkpoint's policy, on one
    batch of its memory. D_KL in both directions is by quadrature in all dimensions; the numbers tell how often each is
    nearer. Also among them: the actor after one gradient step towards the projection, and the exact projection.
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
    """Of the batch and of the SAC step's actions."""

    def __post_init__(self):
        require(self, "at least 2", lambda v: v >= 2, "states", "batch")
        require(self, "positive", lambda v: v > 0.0, "bound")
        require(self, "even and from 2 to 1000", lambda v: 2 <= v <= 1000 and v % 2 == 0, "intervals")
        if self.states > self.batch:
            raise BisacError(f"--states must be at most --batch, got {self.states} and {self.batch}.")

    def make(self, tell: Tell) -> Made:
        """Take the steps at every checkpoint, measure, draw."""
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
        dims, x = sources[0].action_dim, np.linspace(-grid.bound, grid.bound, 2001)
        looks = {
            0: {"color": "0.55", "ls": ":", "label": "policy before"},
            SAC_STEP: {"color": COLOURS["sac"], "ls": LINE_STYLES["sac"], "label": "after one SAC step"},
            PROJECTION: {
                "color": COLOURS["forward-sac"],
                "ls": LINE_STYLES["forward-sac"],
                "label": "forward projection",
            },
        }
        with drawing(1.75 * (dims + 2) + 0.3, 1.75 * len(sources) + 0.45) as figure:
            panels = figure.subplots(len(sources), dims + 2, squeeze=False)
            for row, source, policy, one, n in zip(panels, sources, policies, found, numbers, strict=True):
                forward, reverse = np.asarray(one.forward[:, 0]), np.asarray(one.reverse[:, 0])
                gap = forward[:, SAC_STEP] - forward[:, PROJECTION]
                example = int(np.argsort(gap)[len(gap) // 2])
                for i, axes in enumerate(row[:dims]):
                    draw_truth(axes, np.asarray(one.truth[example, i]), grid)
                    shown = [support(np.asarray(one.truth[example, i]), grid)]
                    for index, look in looks.items():
                        mean, std = (float(v[index, example, i]) for v in (policy.mean, policy.std))
                        axes.plot(x, normal_density(x, mean, std), **look)
                        shown.append((mean - 3.0 * std, mean + 3.0 * std))
                    fit_to(axes, shown, grid)
                row[0].set_ylabel(f"{source.label}\ndensity", fontsize=7.5)
                for axes, name, values in ((row[dims], "kl_q_pi", forward), (row[dims + 1], "kl_pi_q", reverse)):
                    share = n["target_mean"][name]["projection_nearer_than_sac_step"]
                    sac, projected = (np.maximum(values[:, [k]], LEAST_SHOWN) for k in (SAC_STEP, PROJECTION))
                    note = f"projection nearer: {share:.0%}"
                    draw_against(axes, sac, projected, note, log=True, ylabel="projection (nats)")
            for i in range(dims):
                panels[0, i].set_title(f"dimension {i + 1}")
                panels[-1, i].set_xlabel(f"$x_{i + 1}$, where $a = \\tanh x$")
            panels[-1, dims].set_xlabel(r"SAC step, $D_\mathrm{KL}(q\,\|\,\pi)$ (nats)")
            panels[-1, dims + 1].set_xlabel(r"SAC step, $D_\mathrm{KL}(\pi\,\|\,q)$ (nats)")
            handles, labels = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
            return rendered(figure)


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
