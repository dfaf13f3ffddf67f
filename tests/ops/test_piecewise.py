"""Moments of exp(Q / alpha) for curves that are linear between nodes, against sums in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import log_slope, prop
from scipy.integrate import quad

from bisac.ops.piecewise import pieces, project_piecewise, truncated

NODES = 41
ACTIONS = np.linspace(-1.0, 1.0, NODES)
CURVES = {
    "flat": np.zeros(NODES),
    "a slope into the bound": 2.0 * ACTIONS,
    "a hill": -4.0 * np.square(ACTIONS - 0.33),
    "two peaks": np.maximum(0.6 * np.exp(-((ACTIONS + 0.6) ** 2) / 0.18), np.exp(-((ACTIONS - 0.6) ** 2) / 0.0128)),
    "kinks": np.random.default_rng(0).normal(size=NODES).cumsum() / 5.0,
}
projected = jax.jit(project_piecewise)


def by_a_fine_sum(values, alpha):
    """Mean and standard deviation in x of the density at a million places; quadrature that adapts trips over kinks."""
    x = np.linspace(-12.0, 12.0, 1_000_001)
    height = np.interp(np.tanh(x), ACTIONS, values) / alpha + log_slope(x)
    p = np.exp(height - height.max())
    p /= p.sum()
    mean = p @ x
    return mean, np.sqrt(p @ np.square(x - mean))


@pytest.mark.parametrize("alpha", [3.0, 0.1, 0.01])
@pytest.mark.parametrize("curve", CURVES)
def test_moments_are_those_of_a_fine_sum(curve, alpha):
    """At temperatures that make marginals a hundredth as wide as a grid of 0.1 can see."""
    mean, var = projected(jnp.asarray(CURVES[curve], jnp.float32), jnp.float32(alpha))
    true_mean, true_std = by_a_fine_sum(CURVES[curve], alpha)
    np.testing.assert_allclose(mean, true_mean, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(var), true_std, atol=2e-3)


@pytest.mark.parametrize("rate", [0.0, 1e-4, 0.3, 0.49, 0.51, 2.0, 50.0, 1e4])
def test_a_truncated_exponential_has_the_moments_of_quadrature(rate):
    def moment(power, centre=0.0):
        return quad(lambda d: np.exp(-rate * d) * (d - centre) ** power, 0.0, min(1.0, 60.0 / max(rate, 1.0)))[0]

    mean = moment(1) / moment(0)
    expected = (moment(0), mean, moment(2, mean) / moment(0))
    np.testing.assert_allclose(jax.jit(truncated)(jnp.float32([rate])), np.array(expected)[:, None], rtol=1e-4)


def test_pieces_cover_the_box_and_mirror_each_other():
    piece = pieces(NODES)
    assert piece.length.sum() == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(piece.below + piece.length, 2.0 - piece.above, atol=1e-6)
    np.testing.assert_array_equal(piece.length, piece.length[::-1])
    np.testing.assert_allclose(ACTIONS @ piece.to_ends, np.append(piece.below, 2.0) - 1.0, atol=1e-6)


@prop
@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=NODES, max_size=NODES),
    st.integers(-13, 10),
)
def test_moments_are_finite_and_mirror_and_heed_no_scale(values, power):
    """At temperatures from 1e-4 to 1,000."""
    curve, alpha = np.asarray(values, np.float32), 2.0**power
    mean, var = projected(jnp.asarray(curve), jnp.float32(alpha))
    assert np.isfinite(mean)
    assert var >= 0.0
    mirrored, _ = projected(jnp.asarray(curve[::-1]), jnp.float32(alpha))
    np.testing.assert_allclose(mirrored, -mean, atol=1e-3)
    scaled, _ = projected(jnp.asarray(4.0 * curve), jnp.float32(4.0 * alpha))
    np.testing.assert_allclose(scaled, mean, atol=1e-6)
