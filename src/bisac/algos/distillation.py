"""Marginals from a joint critic: sum_i Q_i(s, a_i) is fitted to what Q(s, a) makes of actions drawn for the purpose.

The critic itself is not touched, so whatever learns from it alone learns as if there were no marginals. Drawn are
actions around the policy's own, where they matter, and uniform ones, so that a peak far from the policy is seen.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.learner import Learner
from bisac.nets.additive import Additive, hats
from bisac.ops.gaussian import TanhGaussian
from bisac.types import Metrics

STATES = 64
"""States of the batch at which actions are drawn."""

DRAWS = 8
"""Actions that are drawn at each of them."""

UNIFORM = 0.5
"""Share of the actions that are drawn uniformly; the others are the policy's."""

WIDENED = 2.0
"""By what the policy's standard deviation is multiplied for its draws."""

JointQ = Callable[[Float[Array, "row obs"], Float[Array, "row act"]], Float[Array, "twin row"]]
"""The twins' Q(s, a)."""


def distil(
    learner: Learner[Additive],
    optimiser: optax.GradientTransformation,
    critic: JointQ,
    policy: TanhGaussian,
    obs: Float[Array, "batch obs"],
    key: Key[Array, ""],
) -> tuple[Learner[Additive], Metrics]:
    """Return the marginals after one step towards the mean of the twins' Q, and the share of it that they miss.

    `policy` is that at `obs`. At each state both sides are taken less their mean over its draws: what Q is worth there
    on average is no marginal's business.
    """
    states = min(STATES, len(obs))
    action = drawn(jax.tree.map(lambda leaf: leaf[:states], policy), key)  # (draw, state, act)
    repeated = jnp.broadcast_to(obs[:states], (DRAWS, states, obs.shape[-1]))
    rows = (leaf.reshape(DRAWS * states, -1) for leaf in (repeated, action))
    target = centred(critic(*rows).mean(axis=0).reshape(DRAWS, states))
    weights = hats(action)  # (draw, state, act, node)

    def loss(model: Additive):
        # The whole batch goes through the trunk, for its moments.
        values, seen = model.on_batch(obs)
        fitted = centred(jnp.einsum("dsnk,snk->ds", weights, values[:states]))
        error = jnp.square(fitted - target).mean()
        return 0.5 * error, (error, seen)

    stepped, _, (error, seen) = learner.step(optimiser, loss)
    unexplained = error / jnp.maximum(jnp.square(target).mean(), jnp.finfo(target.dtype).tiny)
    return stepped.observed(seen), {"marginals_unexplained": unexplained}


def drawn(policy: TanhGaussian, key: Key[Array, ""]) -> Float[Array, "draw state act"]:
    """Return actions at each state: some of the policy, widened, the others uniform in [-1, 1]."""
    near_key, far_key, choice_key = jax.random.split(key, 3)
    shape = (DRAWS, *policy.mean.shape)
    near = jnp.tanh(policy.mean[None] + WIDENED * policy.std[None] * jax.random.normal(near_key, shape))
    far = jax.random.uniform(far_key, shape, minval=-1.0, maxval=1.0)
    return jnp.where(jax.random.bernoulli(choice_key, UNIFORM, (*shape[:2], 1)), far, near)


def centred(q: Float[Array, "draw state"]) -> Float[Array, "draw state"]:
    """Return values less the mean over each state's draws."""
    return q - q.mean(axis=0, keepdims=True)
