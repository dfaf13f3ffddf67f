"""The paper's synthetic study: what VDN-a makes of a Q whose marginals are known."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Key

from bisac.algos.learner import Learner
from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.boltzmann import density, exact_grid, moments, separable_marginals
from bisac.figures.panels import draw_truth, fit_to, support
from bisac.nets.critics import Decomposed, Decomposition
from bisac.ops.losses import squared_error
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, drawing, rendered
from bisac.validate import require

JOINT_COLOUR = "#aa4499"
EMBEDDING, SUBNETWORK, BATCH = (16, 16), (32, 32), 256
STATE = np.zeros(1, np.float32)
"""There is one state only."""


class Target(NamedTuple):
    """A density on [-1, 1]^N: each marginal a mixture of normals cut to [-1, 1], joined by a Gaussian copula."""

    means: Float[Array, "act component"]
    stds: Float[Array, "act component"]
    weights: Float[Array, "act component"]
    correlation: Float[Array, ""]
    """Between any two dimensions, of the copula."""


def make_target(bimodal: bool, dims: int, correlation: float) -> Target:
    """Marginals like those of the paper's study, a little different in each dimension."""
    shift = np.linspace(-0.2, 0.2, dims)[:, None] if dims > 1 else np.zeros((1, 1))
    means = shift + np.array([[-0.45, 0.45]] if bimodal else [[0.0, 0.0]])
    stds = np.full((dims, 2), 0.16 if bimodal else 0.25)
    weights = np.broadcast_to([0.6, 0.4] if bimodal else [0.5, 0.5], (dims, 2))
    return Target(*(jnp.asarray(v, jnp.float32) for v in (means, stds, weights, correlation)))


def log_marginals(target: Target, action: Float[Array, "act"]) -> Float[Array, "act"]:
    """The log-density of each marginal."""
    parts = norm.logpdf(action[:, None], target.means, target.stds)
    return jax.nn.logsumexp(parts, b=target.weights, axis=-1) - jnp.log(_inside(target, jnp.ones_like(action)))


def log_target(target: Target, action: Float[Array, "act"]) -> Float[Array, ""]:
    """The log-density of an action: the copula's and the marginals'."""
    below = _inside(target, action) / _inside(target, jnp.ones_like(action))
    z = norm.ppf(jnp.clip(below, 1e-6, 1.0 - 1e-6))
    # All correlations are rho: R = (1 - rho) I + rho 11', which has its inverse and determinant in closed form.
    dims, rho = len(action), target.correlation
    along = 1.0 + (dims - 1) * rho
    quadratic = (jnp.square(z).sum() - rho / along * jnp.square(z.sum())) / (1.0 - rho)
    log_determinant = (dims - 1) * jnp.log1p(-rho) + jnp.log(along)
    return log_marginals(target, action).sum() - 0.5 * (log_determinant + quadratic - jnp.square(z).sum())


def _inside(target: Target, action: Float[Array, "act"]) -> Float[Array, "act"]:
    """Probability of the mixture, not yet cut, between -1 and the action."""
    between = norm.cdf(action[:, None], target.means, target.stds) - norm.cdf(-1.0, target.means, target.stds)
    return (target.weights * between).sum(axis=-1)


@dataclass(frozen=True)
class Setup:
    """How VDN-a is fitted."""

    label: str
    decomposition: Decomposition = "joint"
    width: int = 64
    """Of both hidden layers of U."""
    scale: float = 1.0
    """Of the last layer of U at the start, against the usual."""
    penalty: float = 0.0
    """Weight of the mean of U squared in the loss."""


SETUPS = (
    Setup("residual", "residual"),
    Setup("joint"),
    Setup("joint, U 8 wide", width=8),
    Setup("joint, U 256 wide", width=256),
    Setup("joint, U starts at 0.01 of it", scale=0.01),
    Setup("joint, U starts at 10 times", scale=10.0),
    Setup("joint, 0.001 E[U²] added", penalty=0.001),
    Setup("joint, 0.1 E[U²] added", penalty=0.1),
    Setup("joint, 10 E[U²] added", penalty=10.0),
)


class Fit(NamedTuple):
    """What came of fitting VDN-a."""

    marginals: Float[Array, "*seed act node"]
    error: Float[Array, "*seed"]
    """Root of the mean squared error of Q over uniform actions."""
    separable_std: Float[Array, "*seed"]
    """Standard deviation over uniform actions of sum_i Q_i."""
    interaction_std: Float[Array, "*seed"]
    """Of U."""


@partial(jax.jit, static_argnames=("decomposition", "width", "steps", "learning_rate", "grid"))
def fit(
    target: Target,
    keys: Key[Array, "seed"],
    scale: float | Float[Array, ""],
    penalty: float | Float[Array, ""],
    decomposition: Decomposition,
    width: int,
    steps: int,
    learning_rate: float,
    grid: Grid,
) -> Fit:
    """Fit VDN-a to log q at uniform actions (alpha is 1), as training fits it to TD targets; once for each key."""
    dims, optimiser = len(target.means), optax.adam(learning_rate)

    def problem(key: Key[Array, ""], count: int):
        action = jax.random.uniform(key, (count, dims), minval=-1.0, maxval=1.0)
        obs = jnp.broadcast_to(STATE, (count, len(STATE)))
        return obs, action, jax.vmap(partial(log_target, target))(action)

    def step(learner: Learner[Decomposed], key: Key[Array, ""]):
        obs, action, q = problem(key, BATCH)

        def loss(critic: Decomposed):
            error = sum((squared_error(estimate, q) for estimate in critic.estimates(obs, action)), jnp.zeros(()))
            return error + penalty * jnp.square(critic.parts(obs, action)[1]).mean(), None

        return learner.step(optimiser, loss)[0], None

    def once(key: Key[Array, ""]) -> Fit:
        init_key, train_key, test_key = jax.random.split(key, 3)
        widths = ((width, width), (), EMBEDDING, SUBNETWORK)
        critic = Decomposed.init(init_key, len(STATE), dims, *widths, "relu", decomposition)
        last_layer = lambda c: (c.auxiliary.weights[-1], c.auxiliary.biases[-1])  # noqa: E731
        critic = eqx.tree_at(last_layer, critic, replace_fn=lambda leaf: scale * leaf)
        learner, _ = jax.lax.scan(step, Learner.init(critic, optimiser), jax.random.split(train_key, steps))
        obs, action, q = problem(test_key, 4096)
        separable, interaction = (part.mean(axis=0) for part in learner.model.parts(obs, action))
        error = jnp.sqrt(jnp.square(separable + interaction - q).mean())
        marginals = jnp.exp(separable_marginals(learner.model, jnp.asarray(STATE), jnp.ones(()), grid))
        return Fit(marginals, error, separable.std(), interaction.std())

    return jax.vmap(once)(keys)


@partial(jax.jit, static_argnames="grid")
def true_marginals(target: Target, grid: Grid) -> Float[Array, "act node"]:
    """On the grid."""
    dims, action = len(target.means), jnp.tanh(jnp.asarray(grid.nodes))
    logs = jax.vmap(lambda a: log_marginals(target, jnp.full(dims, a)))(action).T
    return jax.nn.softmax(logs + jnp.asarray(grid.log_measure)[None], axis=-1)


@dataclass(frozen=True)
class VdnA(PaperFigure):
    """VDN-a fitted to a known Q: unimodal and bimodal marginals, independent and not, and what U does. Needs no run.

    Q is the log of a density with known marginals, joined by a Gaussian copula. sum_i Q_i + U is not unique: the figure
    shows how the estimated marginals depend on how the sum is trained, and on the size of U, its initialisation and its
    regularisation.
    """

    dims: int = 3
    """Action dimensions."""
    correlation: float = 0.7
    """Of the copula, between any two dimensions."""
    steps: int = 2000
    """Gradient steps of each fit, with 256 uniform actions each."""
    learning_rate: float = 1e-3
    """Of the fit."""
    seeds: int = 3
    """Fits of each kind."""

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
        looks = {"residual": {"color": COLOURS["bisac"], "ls": "--"}, "joint": {"color": JOINT_COLOUR, "ls": ":"}}
        with drawing(9.4, 4.4) as figure:
            panels = figure.subplots(2, len(cases), height_ratios=(1.0, 1.15))
            for column, (case, target) in zip(panels.T, cases.items(), strict=True):
                truth = np.asarray(true_marginals(target, grid))
                draw_truth(column[0], truth[0], grid)
                for name, look in looks.items():
                    for index, mass in enumerate(np.asarray(fits[case, name].marginals)[:, 0]):
                        label = f"VDN-a, {name} (each seed)" if index == 0 else None
                        column[0].plot(grid.nodes, density(mass, grid), lw=0.9, **look, label=label)
                fit_to(column[0], [support(truth[0], grid)], grid)
                column[0].set(title=case, xlabel="$x_1$, where $a = \\tanh x$")
                for row, setup in enumerate(SETUPS):
                    variation = _variation(fits[case, setup.label], truth)
                    colour = COLOURS["bisac"] if setup.decomposition == "residual" else JOINT_COLOUR
                    column[1].plot(variation, [row] * len(variation), "o", color=colour, ms=3, mew=0, alpha=0.5)
                    column[1].plot(np.median(variation), row, "|", color=colour, ms=10, mew=1.8)
                column[1].set(xlabel="total variation from the truth", xlim=(0.0, None))
                column[1].grid(visible=True, axis="both")
            panels[0, 0].set_ylabel("density")
            for axes in panels[1]:
                axes.set(yticks=range(len(SETUPS)), yticklabels=[], ylim=(len(SETUPS) - 0.5, -0.5))
            panels[1, 0].set_yticklabels([setup.label for setup in SETUPS])
            furthest = max(axes.get_xlim()[1] for axes in panels[1])
            for axes in panels[1]:
                axes.set_xlim(0.0, furthest)
            handles, labels = panels[0, 0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
            return rendered(figure)


def _variation(fitted: Fit, truth: np.ndarray) -> np.ndarray:
    """Of each seed, the mean over dimensions."""
    return 0.5 * np.abs(np.asarray(fitted.marginals) - truth).sum(axis=-1).mean(axis=-1)


def _statistics(case: str, target: Target, fits: dict[tuple[str, str], Fit], grid: Grid) -> dict[str, Any]:
    """How each setup's marginals differ from the truth."""
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
