import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import ACTIVATIONS, filled, mlp_on_batch, prop
from reference import normalised as by_numpy

from bisac.nets.critics import Decomposed, Joint
from bisac.nets.mlp import MLP, normalised
from bisac.nets.normalisation import Moments, Norm, dead_units, fixed, fresh_moments, moments_gap, moved, norms_of

OBS, ACT, BATCH = 4, 3, 12
SIZES = (OBS, 8, 9, 5)
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(1.0, 2.0, (BATCH, OBS)), jnp.float32)
A = jnp.asarray(RNG.uniform(-1.0, 1.0, (BATCH, ACT)), jnp.float32)


def make(key, activation="relu"):
    return normalised(MLP.init(key, SIZES, activation))


def make_decomposed(key, encoder=(11, 10)):
    return normalised(Decomposed.init(key, OBS, ACT, (8, 9), encoder, (5, 4), (6, 7), "relu", "residual"))


def drawn_moments(model, seed=1):
    rng = np.random.default_rng(seed)
    draw = lambda leaf: jnp.asarray(rng.uniform(0.5, 2.0, leaf.shape), jnp.float32)  # noqa: E731
    return jax.tree.map(draw, fresh_moments(model))


@jax.jit
def on_batch(net, *inputs):
    """Compiled as a whole: one operation after another takes longer."""
    return net.on_batch(*inputs)


def close(found, expected, rtol=2e-4):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=2e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_on_a_batch_it_is_the_loop_over_layers(activation):
    net = filled(lambda key: make(key, activation), 0)
    output, seen = on_batch(net, X)
    expected, moments = mlp_on_batch(net, X)
    close(output, expected)
    for found, (mean, var) in zip(seen, moments, strict=True):
        close(found.mean, mean)
        close(found.var, var)


def test_at_fixed_moments_it_is_the_loop_over_layers():
    net = filled(make, 0)
    running = drawn_moments(net)
    expected = np.asarray(X, np.float64)
    for layer, (norm, m) in enumerate(zip(net.norms, running, strict=True)):
        expected = np.maximum(expected, 0.0) if layer else expected
        weight, bias = np.asarray(net.weights[layer], np.float64), np.asarray(net.biases[layer], np.float64)
        expected = by_numpy(norm, expected, np.asarray(m.mean), np.asarray(m.var)) @ weight + bias
    close(jax.jit(jax.vmap(fixed(net, running)))(X), expected)


def test_at_the_moments_of_a_batch_both_are_the_same():
    for net, inputs in ((filled(make, 0), (X,)), (filled(make_decomposed, 1), (X, A))):
        output, seen = on_batch(net, *inputs)
        answer = (lambda at: jax.vmap(at)(X)) if isinstance(net, MLP) else (lambda at: at.estimates(X, A))
        again = jax.jit(answer)(fixed(net, seen))
        jax.tree.map(close, output, again)


def test_a_network_in_training_answers_no_single_observation():
    with pytest.raises(AssertionError, match="needs running moments"):
        filled(make, 0)(X[0])


def test_stacked_twins_are_a_loop_over_them():
    net = filled(lambda key: normalised(Joint.init(key, OBS, ACT, (8, 9), "relu")), 2)
    (q,), seen = on_batch(net, X, A)
    for twin in range(2):
        expected, moments = mlp_on_batch(net.mlp, np.concatenate([X, A], axis=1), twin)
        close(q[twin], expected[:, 0])
        for found, (mean, var) in zip(seen, moments, strict=True):
            close(found.mean[twin], mean)
            close(found.var[twin], var)


@pytest.mark.parametrize("encoder", [(11, 10), ()])
def test_decomposed_critic_is_a_loop_over_twins_and_dimensions(encoder):
    net = filled(lambda key: make_decomposed(key, encoder), 3)
    (separable, whole), _ = on_batch(net, X, A)
    marginals, subnetworks = net.marginals, net.marginals.subnetworks
    for twin in range(2):
        state = np.asarray(X, np.float64)
        if encoder:
            state = np.maximum(mlp_on_batch(marginals.encoder, state, twin)[0], 0.0)
        total = np.zeros(BATCH)
        for dim in range(ACT):
            embedded = np.maximum(mlp_on_batch(subnetworks.embedding, A[:, dim : dim + 1], twin, dim)[0], 0.0)
            total += mlp_on_batch(subnetworks.mlp, np.concatenate([state, embedded], axis=1), twin, dim)[0][:, 0]
        close(separable[twin], total)
        interaction = mlp_on_batch(net.auxiliary, np.concatenate([X, A], axis=1), twin)[0][:, 0]
        close(whole[twin], total + interaction)


@pytest.mark.parametrize("encoder", [(11, 10), ()])
def test_moments_of_a_decomposed_critic_stand_in_the_order_of_its_tree(encoder):
    net = filled(lambda key: make_decomposed(key, encoder), 3)
    _, seen = on_batch(net, X, A)
    assert [m.mean.shape for m in seen] == [norm.scale.shape for norm in norms_of(net)]
    curves = fixed(net, seen).marginals.curves(X, A[:, 0])
    for k in range(BATCH):  # at each row's own action, in every dimension alike
        close(curves[..., k], fixed(net, seen).marginals(X, jnp.broadcast_to(A[k, 0], (BATCH, ACT))))


def test_observations_far_from_zero_are_seen_as_well_as_near_it():
    net = filled(make, 4)
    far = jnp.asarray(np.asarray(X) + 4096.0)  # exact in float32 but for the last bits of X
    near = far - 4096.0
    close(on_batch(net, far)[0], on_batch(net, near)[0], rtol=1e-4)
    _, seen = on_batch(net, far)
    # A mean near 4096 is known to 2.4e-4 in float32, and the inputs spread over about 2.
    np.testing.assert_allclose(jax.vmap(fixed(net, seen))(far), on_batch(net, near)[0], atol=1e-3)


@given(st.sampled_from([2, 3, 40]), st.sampled_from([1, 6]), st.floats(1e-3, 1e3), st.integers(0, 1000))
@prop
def test_a_normalised_batch_has_mean_zero_and_no_more_than_unit_variance(rows, inputs, scale, seed):
    x = np.random.default_rng(seed).normal(size=(rows, inputs)).astype(np.float32) * np.float32(scale)
    x -= x.mean(axis=0)
    moments = Moments.of(jnp.asarray(x))
    y = np.asarray(Norm.init(inputs)(jnp.asarray(x), moments), np.float64)
    var = x.astype(np.float64).var(axis=0)
    np.testing.assert_allclose(y.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(y.var(axis=0), var / (var + 1e-3), rtol=1e-3)


def test_running_moments_are_geometric_averages():
    rng, running = np.random.default_rng(3), (Moments(jnp.zeros(2), jnp.ones(2)),)
    mean, var = np.zeros(2), np.ones(2)
    for _ in range(50):
        batch = rng.normal(3.0, 0.5, (8, 2))
        running = moved(running, (Moments.of(jnp.asarray(batch, jnp.float32)),))
        mean, var = 0.99 * mean + 0.01 * batch.mean(axis=0), 0.99 * var + 0.01 * batch.var(axis=0)
    close(running[0].mean, mean)
    close(running[0].var, var)


def test_a_classic_network_is_left_alone():
    net = filled(lambda key: MLP.init(key, SIZES, "relu"), 0)
    assert fresh_moments(net) == ()
    assert fixed(net, ()) is net
    output, seen = on_batch(net, X)
    assert seen == ()
    np.testing.assert_array_equal(output, jax.vmap(net)(X))


def test_dead_units_are_counted():
    net = filled(lambda key: make(key, "tanh"), 0)  # whose units never die by themselves
    assert dead_units(on_batch(net, X)[1]) == 0.0
    first = net.weights[0].at[:, :2].set(0.0), net.biases[0].at[:2].set(0.0)  # two of eight units, of seventeen in all
    _, seen = eqx.tree_at(lambda n: (n.weights[0], n.biases[0]), net, first).on_batch(X)
    assert dead_units(seen) == pytest.approx(2 / 17)


def test_the_gap_between_moments_is_in_running_standard_deviations():
    running = (Moments(jnp.zeros(2), jnp.full(2, 4.0)),)
    seen = (Moments(jnp.array([2.0, -4.0]), jnp.ones(2)),)
    assert moments_gap(running, seen) == pytest.approx(1.5, rel=1e-3)
