"""A Q whose marginals are known, and VDN-a fitted to it as training fits it to TD targets; nothing is drawn here."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Key

from bisac.algos.learner import Learner
from bisac.figures.boltzmann import separable_marginals
from bisac.nets.critics import Decomposed, Decomposition
from bisac.ops.losses import squared_error
from bisac.ops.quadrature import Grid

EMBEDDING, SUBNETWORK, BATCH = (16, 16), (32, 32), 256
"""Widths of the embeddings' and the subnetworks' layers, and the number of actions in a batch."""
STATE = np.zeros(1, np.float32)
"""The one state that there is."""


class Target(NamedTuple):
    """A density on [-1, 1]^N: each marginal a mixture of normals cut to [-1, 1], joined by a Gaussian copula."""

    means: Float[Array, "act component"]
    """Means of the normals, before they are cut."""
    stds: Float[Array, "act component"]
    """Standard deviations of the normals, before they are cut."""
    weights: Float[Array, "act component"]
    """Weights of the normals in each mixture; they sum to one."""
    correlation: Float[Array, ""]
    """The copula's correlation between any two dimensions."""


def make_target(bimodal: bool, dims: int, correlation: float) -> Target:
    """Return a target with marginals like those of the paper's study, a little different in each dimension."""
    shift = np.linspace(-0.2, 0.2, dims)[:, None] if dims > 1 else np.zeros((1, 1))
    means = shift + np.array([[-0.45, 0.45]] if bimodal else [[0.0, 0.0]])
    stds = np.full((dims, 2), 0.16 if bimodal else 0.25)
    weights = np.broadcast_to([0.6, 0.4] if bimodal else [0.5, 0.5], (dims, 2))
    return Target(*(jnp.asarray(v, jnp.float32) for v in (means, stds, weights, correlation)))


def log_marginals(target: Target, action: Float[Array, "act"]) -> Float[Array, "act"]:
    """Return the log-density of each marginal."""
    parts = norm.logpdf(action[:, None], target.means, target.stds)
    return jax.nn.logsumexp(parts, b=target.weights, axis=-1) - jnp.log(_inside(target, jnp.ones_like(action)))


def log_target(target: Target, action: Float[Array, "act"]) -> Float[Array, ""]:
    """Return the log-density of an action: that of the copula and those of the marginals."""
    below = _inside(target, action) / _inside(target, jnp.ones_like(action))
    z = norm.ppf(jnp.clip(below, 1e-6, 1.0 - 1e-6))
    # All correlations are rho: R = (1 - rho) I + rho 11', which has its inverse and determinant in closed form.
    dims, rho = len(action), target.correlation
    along = 1.0 + (dims - 1) * rho
    quadratic = (jnp.square(z).sum() - rho / along * jnp.square(z.sum())) / (1.0 - rho)
    log_determinant = (dims - 1) * jnp.log1p(-rho) + jnp.log(along)
    return log_marginals(target, action).sum() - 0.5 * (log_determinant + quadratic - jnp.square(z).sum())


def _inside(target: Target, action: Float[Array, "act"]) -> Float[Array, "act"]:
    """Return the probability of the mixture, not yet cut, between -1 and the action."""
    between = norm.cdf(action[:, None], target.means, target.stds) - norm.cdf(-1.0, target.means, target.stds)
    return (target.weights * between).sum(axis=-1)


@dataclass(frozen=True)
class Setup:
    """How VDN-a is fitted."""

    label: str
    """What the figure calls it."""
    decomposition: Decomposition = "joint"
    """How sum_i Q_i and U are trained: together, or U on what sum_i Q_i leaves."""
    width: int = 64
    """The width of both hidden layers of U."""
    scale: float = 1.0
    """The size of the last layer of U at the start, against the usual."""
    penalty: float = 0.0
    """The weight of the mean of U squared in the loss."""


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
"""All ways of fitting that the figure compares."""


class Fit(NamedTuple):
    """What came of fitting VDN-a."""

    marginals: Float[Array, "*seed act node"]
    """The estimated marginals, as masses on the grid's nodes."""
    error: Float[Array, "*seed"]
    """The root of the mean squared error of Q over uniform actions."""
    separable_std: Float[Array, "*seed"]
    """The standard deviation of sum_i Q_i over uniform actions."""
    interaction_std: Float[Array, "*seed"]
    """The standard deviation of U over uniform actions."""


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
    """Return the target's own marginals, as masses on the grid's nodes."""
    dims, action = len(target.means), jnp.tanh(jnp.asarray(grid.nodes))
    logs = jax.vmap(lambda a: log_marginals(target, jnp.full(dims, a)))(action).T
    return jax.nn.softmax(logs + jnp.asarray(grid.log_measure)[None], axis=-1)
