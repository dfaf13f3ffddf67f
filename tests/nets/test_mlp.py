import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import ACTIVATIONS, filled, mlp

from bisac.nets.actors import UnsquashedActor
from bisac.nets.mlp import MLP

SIZES = (3, 8, 8, 4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_matches_a_loop_over_layers(activation):
    net = filled(lambda key: MLP.init(key, SIZES, activation), 0)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    expected = np.stack([mlp(net, row) for row in x])
    np.testing.assert_allclose(jax.vmap(net)(jnp.asarray(x)), expected, rtol=1e-5, atol=1e-5)


def test_init_is_uniform_within_one_over_the_root_of_the_inputs():
    net = MLP.init(jax.random.key(0), (100, 100, 25, 4), "relu")
    for inputs, outputs, weight, bias in zip((100, 100, 25), (100, 25, 4), net.weights, net.biases, strict=True):
        assert weight.shape == (inputs, outputs)
        assert bias.shape == (outputs,)
        limit = inputs**-0.5
        assert np.abs(weight).max() <= limit
        assert np.abs(bias).max() <= limit
        # A uniform distribution on [-l, l] has the standard deviation l / sqrt(3).
        np.testing.assert_allclose(np.std(weight), limit / np.sqrt(3.0), rtol=0.1)
        assert abs(np.mean(weight)) < 0.1 * limit
    assert not np.array_equal(net.weights[0][:25, :25], net.weights[1][:25, :25])


def test_ppos_networks_begin_orthogonal_and_its_policy_in_the_middle():
    net = MLP.orthogonal(jax.random.key(0), (64, 32, 16, 4), "tanh", last=0.01)
    for weight, scale in zip(net.weights, (2.0**0.5, 2.0**0.5, 0.01), strict=True):
        product = np.asarray(weight, float).T @ np.asarray(weight, float)
        np.testing.assert_allclose(product, scale**2 * np.eye(len(product)), atol=1e-5 * scale**2)
    assert not any(np.asarray(bias).any() for bias in net.biases)
    actor = UnsquashedActor.init(jax.random.key(0), 8, 2, (64, 64), "tanh", 0.0)
    assert 0.0 < jnp.abs(actor(jax.random.normal(jax.random.key(1), (100, 8))).mean).max() < 0.1
