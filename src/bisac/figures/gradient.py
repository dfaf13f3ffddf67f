"""The paper's first figure: sampled gradient descent on the reverse KL between two Gaussians, and the projection.

It is self-contained: no run, critic or checkpoint is known here.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.figures.panels import normal_density
from bisac.ops.gaussian import Gaussian, TanhGaussian, log_tanh_slope
from bisac.ops.losses import projection_loss
from bisac.ops.projection import project
from bisac.ops.quadrature import Grid
from bisac.plotting.style import COLOURS, LINE_STYLES, TRUTH, drawing, rendered
from bisac.validate import require

Estimator = Literal["pathwise", "score"]
"""How the gradient is estimated from samples: through them, as SAC does, or by the score function."""

LEAST_STD = 1e-3
"""The smallest sigma: a step that would make it smaller, or negative, ends here."""

FLOOR = 1e-8
"""The smallest divergence that is shown: below it there is only float32's rounding."""


def descend(
    start: Float[Array, "2"],
    target: Float[Array, "2"],
    key: Key[Array, ""],
    learning_rate: float,
    samples: int,
    epochs: int,
    estimator: Estimator,
) -> Float[Array, "epoch 2"]:
    """Minimise the sampled KL(f || g) over (mu, sigma) of f by plain gradient descent.

    Returns mean and standard deviation before each epoch, and after the last.
    """
    goal, log_prob = Gaussian(target[:1], jnp.log(target[1:])), jax.vmap(Gaussian.log_prob, (None, 0))

    def loss(parameters: Float[Array, "2"], noise: Float[Array, "sample 1"]):
        fitted = Gaussian(parameters[:1], jnp.log(parameters[1:]))
        x = parameters[0] + parameters[1] * noise
        if estimator == "pathwise":
            return (log_prob(fitted, x) - log_prob(goal, x)).mean()
        x = jax.lax.stop_gradient(x)
        log_ratio = jax.lax.stop_gradient(log_prob(fitted, x) - log_prob(goal, x))
        # Its gradient is E[log(f / g) grad log f]; that of log f itself is zero on average and is left out.
        return (log_ratio * log_prob(fitted, x)).mean()

    def epoch(parameters: Float[Array, "2"], key: Key[Array, ""]):
        gradient = jax.grad(loss)(parameters, jax.random.normal(key, (samples, 1)))
        return (parameters - learning_rate * gradient).at[1].max(LEAST_STD), parameters

    last, before = jax.lax.scan(epoch, start, jax.random.split(key, epochs))
    return jnp.concatenate([before, last[None]])


def project_gaussian(target: Float[Array, "2"]) -> Float[Array, "2"]:
    """Return the mean and standard deviation that the forward-KL projection gives a Gaussian target, by quadrature."""
    mean, std = np.asarray(target, np.float64)
    grid = Grid(float(abs(mean) + 8.0 * std), 2 * int(np.ceil((abs(mean) + 8.0 * std) / (0.25 * std))), points=0)
    x = jnp.asarray(grid.nodes)
    log_density = jax.vmap(Gaussian(target[:1], jnp.log(target[1:])).log_prob)(x[:, None])
    projection = project(log_density - log_tanh_slope(x), jnp.ones(()), grid)  # the squashing's slope cancels
    return jnp.stack([projection.mean, jnp.sqrt(projection.var)])


def gaussian_kl(p: Float[Array, "2"], q: Float[Array, "2"]) -> Float[Array, ""]:
    """Return KL(p || q) of two Gaussians, each a mean and a standard deviation; squashing both changes nothing."""
    first, second = (TanhGaussian(v[:1], jnp.log(v[1:])) for v in (p, q))
    return sum(projection_loss(second, first, "kl"), jnp.zeros(()))


@dataclass(frozen=True)
class GradientFigure(PaperFigure):
    """Reverse-KL gradient descent on a Gaussian, and the forward-KL projection that lands in one step. Needs no run.

    A Gaussian f(mu, sigma) descends the sampled KL(f || g) to a Gaussian target g. Beside it, the projection of g by
    the quadrature that the algorithms use. The numbers hold the final KL of both, over seeds.
    """

    target: tuple[float, float] = (2.0, 0.5)
    """Mean and standard deviation of the target."""
    start: tuple[float, float] = (-1.0, 2.0)
    """Mean and standard deviation to start from."""
    learning_rate: float = 1e-3
    """Step size of the descent."""
    samples: int = 1
    """Samples that each epoch's gradient is estimated from."""
    epochs: int = 8000
    """Steps of the descent."""
    seeds: int = 20
    """Descents, each from a seed of its own."""
    estimator: Estimator = "pathwise"
    """Gradient through the samples, as SAC's, or by the score function: its noise vanishes where f meets g."""

    def __post_init__(self):
        require(self, "positive", lambda v: v > 0, "learning_rate")
        require(self, "at least 1", lambda v: v >= 1, "samples", "epochs", "seeds")
        for name, (mean, std) in (("target", self.target), ("start", self.start)):
            if not (math.isfinite(mean) and math.isfinite(std) and std > 0.0):
                raise BisacError(f"--{name} must be a mean and a positive standard deviation, got {mean} {std}.")

    def make(self, tell: Tell) -> Made:
        """Descend and project, then draw both."""
        tell(f"descending for {self.epochs:,} epochs")
        target, start = jnp.asarray(self.target), jnp.asarray(self.start)
        settings = (self.learning_rate, self.samples, self.epochs, self.estimator)
        keys = jax.vmap(jax.random.key)(jnp.arange(self.seeds))
        paths = jax.jit(jax.vmap(lambda key: descend(start, target, key, *settings)))(keys)
        divergence = np.asarray(jax.jit(jax.vmap(jax.vmap(partial(gaussian_kl, q=target))))(paths))  # (seed, epoch)
        projected = project_gaussian(target)
        landed = float(jax.jit(gaussian_kl)(projected, target))
        final = divergence[:, -1]
        numbers = {
            "reverse_kl_of_descent": {
                "start": divergence[0, 0],
                "final_median": np.median(final),
                "final_range": [final.min(), final.max()],
                "final": final,
                "epochs_until_below_0.01_median": np.median(_first_below(divergence, 0.01)),
                "share_of_steps_that_raised_it": np.mean(np.diff(divergence, axis=1) > 0.0),
            },
            "reverse_kl_of_projection": landed,
            "final_parameters": paths[:, -1],
            "projected_parameters": projected,
        }
        middle = int(np.argsort(final)[len(final) // 2])
        pictures = self._draw(np.asarray(paths), divergence, middle, np.asarray(projected), landed)
        summary = [
            f"KL(f || g) after {self.epochs:,} epochs: median {np.median(final):.2g}, from {final.min():.2g} to "
            f"{final.max():.2g} over {self.seeds} seeds; it began at {divergence[0, 0]:.2g}.",
            f"KL of the forward projection, in one step: {max(landed, FLOOR):.1g} or less.",
            f"{np.mean(np.diff(divergence, axis=1) > 0.0):.0%} of the steps raised it.",
        ]
        return Made(numbers, pictures, summary)

    def _draw(
        self, paths: np.ndarray, divergence: np.ndarray, middle: int, projected: np.ndarray, landed: float
    ) -> dict[str, bytes]:
        descent = {"color": COLOURS["sac"], "ls": LINE_STYLES["sac"]}
        projection = {"color": COLOURS["forward-sac"], "ls": LINE_STYLES["forward-sac"]}
        epochs = np.unique(np.linspace(0, paths.shape[1] - 1, 1000).astype(int))  # more would only make the file large
        paths, divergence = paths[:, epochs], divergence[:, epochs]
        with drawing(8.4, 2.7) as figure:
            plane, loss, curve = figure.subplots(1, 3)
            for path in np.delete(paths, middle, axis=0):
                plane.plot(*path.T, color=COLOURS["sac"], alpha=0.18, lw=0.5)
            plane.plot(*paths[middle].T, color=COLOURS["sac"], lw=1.2)
            plane.plot(*self.start, "o", color=COLOURS["sac"], mfc="white", ms=5)
            plane.plot(*self.target, "*", color=TRUTH, ms=10, mec="white", mew=0.6, zorder=4)
            plane.plot(*projected, "D", color=COLOURS["forward-sac"], ms=8, mfc="none", mew=1.4, zorder=5)
            plane.set(xlabel=r"mean $\mu$", ylabel=r"standard deviation $\sigma$", title="(a) parameters")

            shown = np.maximum(divergence, FLOOR)
            band = {"color": COLOURS["sac"], "alpha": 0.25, "lw": 0, "label": "range over seeds"}
            loss.fill_between(epochs, shown.min(axis=0), shown.max(axis=0), **band)
            loss.plot(epochs, np.median(shown, axis=0), **descent)
            loss.axhline(max(landed, FLOOR), **projection)
            loss.set(xlabel="epoch", ylabel=r"$D_\mathrm{KL}(f\,\|\,g)$ (nats)", title="(b) loss", yscale="log")
            loss.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

            (m, s), (m0, s0) = self.target, self.start
            x = np.linspace(min(m - 4 * s, m0 - 3 * s0), max(m + 4 * s, m0 + 3 * s0), 600)
            for (mean, std), look in (
                (self.target, {"color": TRUTH, "label": "target $g$", "lw": 2.2}),
                (self.start, {"color": "0.6", "ls": ":", "label": "start (initial $f$)"}),
                (paths[middle, -1], descent | {"label": "descent (final $f$, median seed)"}),
                (projected, projection | {"label": "forward projection, one step"}),
            ):
                curve.plot(x, normal_density(x, float(mean), float(std)), **look)
            curve.set(xlabel="$x$", ylabel="density", title="(c) distributions", ylim=(0, None))
            lines = dict(zip(*reversed(curve.get_legend_handles_labels()), strict=True))
            spread = loss.get_legend_handles_labels()[0][0]
            figure.legend([*lines.values(), spread], [*lines, "range over seeds"], loc="outside lower center", ncols=5)
            return rendered(figure)


def _first_below(divergence: np.ndarray, level: float) -> np.ndarray:
    """Return the epoch at which each seed first came below a level; infinite where none did."""
    below = divergence < level
    return np.where(below.any(axis=1), below.argmax(axis=1).astype(float), np.inf)
