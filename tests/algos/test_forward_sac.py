"""The two Forward SACs' own steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.algos import ForwardSAC, ForwardSACActor
from bisac.types import Spec, Transition

SPEC = Spec("sizes", 3, (-1.0, -1.0), (1.0, 1.0))
SIZES = dict(hidden=(16,), encoder=(8,), embedding=(4,), subnetwork=(8,), batch_size=32)
KEYS = jax.random.split(jax.random.key(0), 5)
SHAPES = ((32, 3), (32, 2), (32,), (32,), (32, 3))
BATCH = Transition(*(jnp.tanh(jax.random.normal(key, shape)) for key, shape in zip(KEYS, SHAPES, strict=True)))


@pytest.mark.parametrize(("above", "rises"), [(1.0, True), (-1.0, False)])
@pytest.mark.parametrize("kind", [ForwardSAC, ForwardSACActor])
def test_temperature_follows_the_entropy_target_that_is_given(kind, above, rises):
    fresh = kind(**SIZES).settled()
    state = jax.jit(fresh.init, static_argnums=0)(SPEC, KEYS[0])
    entropy = float(fresh.actor(state)(BATCH.obs).entropy().mean())
    algo = kind(entropy_target=entropy + above, **SIZES).settled()
    after, told = jax.jit(algo.update)(state, BATCH, KEYS[1])
    assert told["entropy"] == pytest.approx(entropy, abs=0.2)
    assert (after.temperature.model > state.temperature.model) == rises
    assert after.temperature.model != state.temperature.model


def test_the_actor_comes_to_the_projections_mean_and_width():
    """Of critics that do not move, at a temperature that does not either."""
    algo = ForwardSACActor(temperature=0.05, actor_lr=3e-3, critic_lr=1e-12, **SIZES).settled()
    state = jax.jit(algo.init, static_argnums=0)(SPEC, KEYS[0])

    def gaps(state):
        projected, policy = algo.project(state, BATCH.obs)[0], state.actor.model(BATCH.obs)
        return [float(jnp.abs(a - b).mean()) for a, b in ((policy.mean, projected.mean), (policy.std, projected.std))]

    @jax.jit
    def learned(state):
        keys = jax.random.split(KEYS[2], 600)
        return jax.lax.scan(lambda s, key: (algo.update(s, BATCH, key)[0], None), state, keys)[0]

    before, after = gaps(state), gaps(learned(state))
    assert min(before) > 0.05
    np.testing.assert_array_less(after, [0.1 * gap for gap in before])
