import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import ACTIVATIONS, filled, mlp

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
