"""Bidirectional SAC's own step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.algos import BidirectionalSAC
from bisac.types import Spec, Transition


# A correction starts near zero, and so does its penalty: a large weight lets it count.
@pytest.mark.parametrize(("refinement", "epsilon"), [("penalty", 1.0), ("correction", 1e3)])
def test_rewards_on_another_scale_give_the_same_step(refinement, epsilon):
    """Q and alpha times a hundred: q, its projection and the step of the actor stay as they are."""
    algo = BidirectionalSAC(refinement=refinement, hidden=(8,), batch_size=16, critic_lr=1e-12, epsilon=epsilon)
    algo = algo.settled()
    spec, key = Spec("sizes", 3, (-1.0, -1.0), (1.0, 1.0)), jax.random.key(1)
    fresh = jax.jit(algo.init, static_argnums=0)(spec, key)
    # Last layers in proportion: then Q is.
    heads = lambda s: [m for mlp in _networks(s) for m in (mlp.weights[-1], mlp.biases[-1])]  # noqa: E731
    scaled = eqx.tree_at(heads, fresh, [100.0 * leaf for leaf in heads(fresh)])
    scaled = eqx.tree_at(lambda s: s.temperature.model, scaled, fresh.temperature.model + jnp.log(100.0))
    shapes = ((16, 3), (16, 2), (16,), (16,), (16, 3))
    batch = Transition(*(jnp.tanh(jax.random.normal(key, shape)) for shape in shapes))
    one, other = (jax.jit(algo.update)(state, batch, key)[0].actor.model for state in (fresh, scaled))
    begun = jax.tree.leaves(fresh.actor.model)
    for before, small, large in zip(begun, jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.abs(small - before).max() > 1e-5
        np.testing.assert_allclose(small, large, atol=1e-6)


def _networks(state):
    critic = state.critic.model
    return critic.auxiliary, critic.marginals.subnetworks.mlp
