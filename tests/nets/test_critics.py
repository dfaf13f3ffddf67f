from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import ACTIVATIONS, filled, marginal, mlp

from bisac.nets.critics import Decomposed, Joint
from bisac.nets.marginals import Marginals
from bisac.nets.mlp import normalised
from bisac.nets.normalisation import Moments, fixed

BATCH, OBS, ACT = 5, 4, 3
# Widths all differ, so that no mistaken axis goes unnoticed.
HIDDEN, ENCODER, EMBEDDING, SUBNETWORK = (8, 9), (11, 10), (5, 4), (6, 7)
RNG = np.random.default_rng(0)
S = jnp.asarray(RNG.normal(size=(BATCH, OBS)), jnp.float32)
A = jnp.asarray(RNG.uniform(-1.0, 1.0, (BATCH, ACT)), jnp.float32)
# Of both twins, in the input of each layer.
SEEN = tuple(
    Moments(*(jnp.asarray(RNG.uniform(0.5, 2.0, (2, width)), jnp.float32) for _ in range(2)))
    for width in (OBS + ACT, *HIDDEN)
)


def make_marginals(key, activation="relu", encoder=ENCODER):
    return Marginals.init(key, OBS, ACT, encoder, EMBEDDING, SUBNETWORK, activation)


def make_joint(key):
    return Joint.init(key, OBS, ACT, HIDDEN, "relu")


def make_decomposed(key, decomposition="residual"):
    return Decomposed.init(key, OBS, ACT, HIDDEN, ENCODER, EMBEDDING, SUBNETWORK, "relu", decomposition)


def concatenated(net, twin, b):
    """A network on [s, a], by the loop."""
    return mlp(net, np.concatenate([S[b], A[b]]), twin)[0]


close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


def test_joint_matches_a_loop():
    net = filled(make_joint, 1)
    close(net(S, A), [[concatenated(net.mlp, twin, b) for b in range(BATCH)] for twin in range(2)])
    (estimate,) = net.estimates(S, A)
    close(estimate, net(S, A))


@pytest.mark.parametrize(
    "form", [lambda net: net, lambda net: fixed(normalised(net), SEEN)], ids=["classic", "normalised"]
)
def test_joint_at_several_actions_of_each_state_is_the_same_at_each(form):
    net = form(filled(make_joint, 1))
    several = jnp.asarray(RNG.uniform(-1.0, 1.0, (6, BATCH, ACT)), jnp.float32)
    close(net(S, several), jnp.stack([net(S, actions) for actions in several], axis=1))


@pytest.mark.parametrize("encoder", [ENCODER, ()])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_marginals_match_a_loop_over_twins_and_dimensions(activation, encoder):
    net = filled(partial(make_marginals, activation=activation, encoder=encoder), 2)
    expected = np.empty((2, ACT, BATCH))
    for twin, dim, b in np.ndindex(expected.shape):
        expected[twin, dim, b] = marginal(net, twin, dim, S[b], A[b, dim])
    close(net(S, A), expected)


def test_curves_are_the_marginals_at_each_point_for_each_state():
    net = filled(make_marginals, 3)
    points = jnp.linspace(-1.0, 1.0, 7)
    curves = net.curves(S, points)
    assert curves.shape == (2, ACT, BATCH, 7)
    for k, point in enumerate(points):
        close(curves[..., k], net(S, jnp.full((BATCH, ACT), point)))


def test_decomposed_is_the_sum_of_the_marginals_and_of_u():
    net = filled(make_decomposed, 4)
    expected = np.empty((2, BATCH))
    for twin, b in np.ndindex(expected.shape):
        separable = sum(marginal(net.marginals, twin, dim, S[b], A[b, dim]) for dim in range(ACT))
        expected[twin, b] = separable + concatenated(net.auxiliary, twin, b)
    close(net(S, A), expected)


def reached(net, which: int) -> dict[str, bool]:
    """Which parts of a decomposed critic the gradient of one estimate reaches."""
    gradient = jax.jit(jax.grad(lambda net: net.estimates(S, A)[which].sum()))(net)
    parts = {"marginals": gradient.marginals, "auxiliary": gradient.auxiliary}
    return {name: any(np.any(leaf) for leaf in jax.tree.leaves(part)) for name, part in parts.items()}


def test_residual_estimates_are_fitted_apart():
    net = filled(partial(make_decomposed, decomposition="residual"), 5)
    separable, whole = net.estimates(S, A)
    close(whole, net(S, A))
    close(separable, net.marginals(S, A).sum(axis=1))
    assert reached(net, 0) == {"marginals": True, "auxiliary": False}
    assert reached(net, 1) == {"marginals": False, "auxiliary": True}


def test_joint_estimate_is_fitted_as_one():
    net = filled(partial(make_decomposed, decomposition="joint"), 5)
    (whole,) = net.estimates(S, A)
    close(whole, net(S, A))
    assert reached(net, 0) == {"marginals": True, "auxiliary": True}


@pytest.mark.parametrize("make", [make_joint, make_decomposed])
def test_one_state_gives_its_row_of_the_batch(make):
    net = filled(make, 6)
    close(net(S[2:3], A[2:3]), net(S, A)[:, 2:3])


def test_every_network_of_a_stack_starts_differently():
    net = jax.jit(make_decomposed)(jax.random.key(0))
    stacks = (net.auxiliary, 2), (net.marginals.encoder, 2)
    stacks += tuple((part, 2 * ACT) for part in (net.marginals.subnetworks.embedding, net.marginals.subnetworks.mlp))
    for stack, size in stacks:
        for leaf in (*stack.weights, *stack.biases):
            assert len(np.unique(np.asarray(leaf).reshape(size, -1)[:, 0])) == size
