from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import log_slope, moments, prop
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from bisac.ops.projection import Projection, project
from bisac.ops.quadrature import Grid

DEFAULT = Grid()
FINE = Grid(intervals=500)


@partial(jax.jit, static_argnums=2)
def run(q, alpha, grid) -> Projection:
    return project(q, alpha, grid)


def on_grid(curve, alpha, grid) -> Projection:
    """The projection of a curve given as a NumPy function."""
    return run(jnp.asarray(curve(grid.actions.astype(float)), jnp.float32), jnp.float32(alpha), grid)


# Each with its temperature. The sharp ones have standard deviations in x of 0.078 and 0.035.
TARGETS = {
    "smooth": (lambda a: np.cos(3.0 * a) + 0.5 * a, 0.5),
    "sharp": (lambda a: -((a - 0.3) ** 2), 0.01),
    "sharper": (lambda a: -5.0 * (a - 0.3) ** 2, 0.01),
    "skewed": (lambda a: np.exp(2.0 * a) - 4.0 * a**2, 0.2),
    "bimodal": (lambda a: -4.0 * (a**2 - 0.36) ** 2 + 0.02 * a, 0.1),
    "saturated": (lambda a: 5.0 * a, 0.05),
    "more saturated": (lambda a: -5.0 * a, 0.01),
    "both ends": (lambda a: 20.0 * a**2, 0.1),
}


@pytest.mark.parametrize("points", [0, 17, 33])
@pytest.mark.parametrize("name", TARGETS)
def test_matches_adaptive_quadrature(name, points):
    curve, alpha = TARGETS[name]
    mean, var = moments(curve, alpha, 5.0)
    result = on_grid(curve, alpha, Grid(intervals=500, points=points))
    # Float32: logits of 500 are rounded to 3e-5.
    np.testing.assert_allclose(result.mean, mean, atol=3e-5)
    np.testing.assert_allclose(jnp.sqrt(result.var), np.sqrt(var), atol=3e-5)


@pytest.mark.parametrize("name", [name for name in TARGETS if "sharp" not in name])
def test_default_spacing_suffices_unless_sharp(name):
    curve, alpha = TARGETS[name]
    mean, var = moments(curve, alpha, 5.0)
    result = on_grid(curve, alpha, DEFAULT)
    np.testing.assert_allclose(result.mean, mean, atol=1e-4)
    np.testing.assert_allclose(jnp.sqrt(result.var), np.sqrt(var), atol=1e-4)


@pytest.mark.parametrize("name", ["sharp", "sharper"])
def test_where_the_marginal_is_sharper_than_the_grid_the_error_stays_below_a_third_of_the_spacing(name):
    curve, alpha = TARGETS[name]
    mean, var = moments(curve, alpha, 5.0)
    result = on_grid(curve, alpha, DEFAULT)
    assert abs(float(result.mean) - mean) < DEFAULT.spacing / 3.0
    assert abs(float(jnp.sqrt(result.var)) - np.sqrt(var)) < DEFAULT.spacing / 3.0


def test_mass_on_the_bound_itself():
    curve, alpha = (lambda a: 1000.0 * a), 0.01
    mean, var = moments(curve, alpha, 5.0)
    result = on_grid(curve, alpha, Grid(intervals=1000, points=0))
    # Logits of 1e5 are rounded to 0.008, so the standard deviation (0.046) is right to about that fraction of it.
    np.testing.assert_allclose(result.mean, mean, atol=4e-4)
    np.testing.assert_allclose(jnp.sqrt(result.var), np.sqrt(var), atol=4e-4)
    assert result.edge_mass == pytest.approx(1.0)


def test_uniform_curve_has_the_variance_of_the_logistic_as_the_bound_grows():
    gaps = []
    for bound in (5.0, 8.0, 12.0):
        result = on_grid(np.zeros_like, 1.0, Grid(bound, intervals=round(20 * bound)))
        np.testing.assert_allclose(result.mean, 0.0, atol=1e-6)
        np.testing.assert_allclose(result.var, moments(np.zeros_like, 1.0, bound)[1], atol=1e-6)
        gaps.append(abs(float(result.var) - np.pi**2 / 12.0))
    assert gaps[0] > 1e-3 > gaps[1] > 1e-6 > gaps[2]


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.83, 0.5), (-2.06, 0.3), (2.5, 0.2), (-0.33, 0.2)])
def test_gaussian_in_x_is_its_own_projection(mean, std):
    grid = Grid(points=0)
    x = np.linspace(-5.0, 5.0, 101)
    q = 0.1 * (norm.logpdf(x, mean, std) - log_slope(x))
    result = run(jnp.asarray(q, jnp.float32), jnp.float32(0.1), grid)
    np.testing.assert_allclose(result.mean, mean, atol=3e-6)
    np.testing.assert_allclose(result.var, std**2, rtol=2e-5)


def test_minimises_the_forward_kl_among_tanh_gaussians():
    curve, alpha = (lambda a: np.exp(2.0 * a) - 4.0 * a**2), 1.0
    edge = np.tanh(5.0)

    def integral(f):
        return quad(f, -edge, edge, limit=200)[0]

    # In actions, not in x, so that this also tests the change of variables.
    mass = integral(lambda a: np.exp(curve(a) / alpha))

    def forward_kl(parameters):
        mean, log_std = parameters

        def integrand(a):
            x = np.arctanh(a)
            log_q = curve(a) / alpha - np.log(mass)
            log_pi = -0.5 * ((x - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2.0 * np.pi) - log_slope(x)
            return np.exp(log_q) * (log_q - log_pi)

        return integral(integrand)

    best = minimize(forward_kl, np.zeros(2), method="BFGS", options={"gtol": 1e-6})
    result = on_grid(curve, alpha, DEFAULT)
    np.testing.assert_allclose(result.mean, best.x[0], atol=1e-4)
    np.testing.assert_allclose(jnp.sqrt(result.var), np.exp(best.x[1]), atol=1e-4)
    assert abs(float(result.mean)) > 0.2  # skewed enough to tell from the mode or from no Jacobian


@partial(jax.jit, static_argnums=2)
def run_with_gradients(q, alpha, grid):
    """The gradients with respect to Q and alpha of all outputs together, and these."""

    def total(q, alpha):
        result = project(q, alpha, grid)
        return sum(leaf.sum() for leaf in result), result

    return jax.grad(total, argnums=(0, 1), has_aux=True)(q, alpha)


@pytest.mark.parametrize("grid", [DEFAULT, Grid(points=0)], ids=["interpolated", "direct"])
@pytest.mark.parametrize("alpha", [1e-3, 0.05, 10.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e6])
def test_results_and_gradients_are_finite_everywhere(scale, alpha, grid):
    rng = np.random.default_rng(0)
    smooth = np.polynomial.Chebyshev(rng.normal(size=5))(grid.actions)
    rough = rng.uniform(-1.0, 1.0, (6, len(grid.actions)))
    q = jnp.asarray(scale * np.concatenate([[smooth, -smooth, grid.actions, -grid.actions], rough]), jnp.float32)
    gradients, result = run_with_gradients(q, jnp.float32(alpha), grid)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((gradients, result)))
    assert (result.var >= 0.0).all()
    assert (jnp.abs(result.mean) <= grid.bound).all()


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (np.zeros_like, 1.0 - np.tanh(4.5) / np.tanh(5.0)),
        (lambda a: -20.0 * a**2, 0.0),
        (lambda a: 1e5 * a, 1.0),
        (lambda a: -1e5 * a, 1.0),
    ],
    ids=["uniform", "centred", "right", "left"],
)
def test_edge_mass(curve, expected):
    # The mass beyond a node between the bounds is right only to the weight of that node, which is left out.
    np.testing.assert_allclose(on_grid(curve, 1.0, DEFAULT).edge_mass, expected, rtol=0.25, atol=1e-8)


def test_batches_are_rows():
    q = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4, 17)), jnp.float32)
    together = run(q, jnp.float32(0.2), DEFAULT)
    for i, j in np.ndindex(3, 4):
        alone = run(q[i, j], jnp.float32(0.2), DEFAULT)
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, many[i, j], rtol=1e-5, atol=1e-6)


coefficients = st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=9)
temperatures = st.floats(0.05, 10.0)


def polynomial(c):
    """A curve that 17 points interpolate exactly, of size about 5."""
    return np.polynomial.Chebyshev(c)


def rounding(c, alpha, shift=0.0):
    """How far float32 can move a moment: the logits' rounding, times what the interpolation amplifies it by."""
    return 1e-5 + 20.0 * np.finfo(np.float32).eps * (np.abs(c).sum() + abs(shift)) / alpha


@prop
@given(coefficients, temperatures)
def test_moments_are_those_of_a_distribution_on_the_interval(c, alpha):
    mean, var, edge_mass = on_grid(polynomial(c), alpha, DEFAULT)
    assert abs(mean) <= 5.0
    assert 0.0 <= var <= 25.0 - float(mean) ** 2 + 1e-4
    assert 0.0 <= edge_mass <= 1.0 + 1e-6


@prop
@given(coefficients, temperatures, st.floats(-1000.0, 1000.0))
def test_constant_in_q_changes_nothing(c, alpha, shift):
    plain, shifted = (on_grid(polynomial([c[0] + s, *c[1:]]), alpha, DEFAULT) for s in (0.0, shift))
    for a, b in zip(plain, shifted, strict=True):
        np.testing.assert_allclose(a, b, atol=rounding(c, alpha, shift))


@prop
@given(coefficients, temperatures)
def test_reflection_flips_the_mean(c, alpha):
    plain, mirrored = (on_grid(lambda a, sign=sign: polynomial(c)(sign * a), alpha, DEFAULT) for sign in (1.0, -1.0))
    atol = rounding(c, alpha)
    np.testing.assert_allclose(mirrored.mean, -plain.mean, atol=atol)
    np.testing.assert_allclose(mirrored.var, plain.var, atol=atol)
    np.testing.assert_allclose(mirrored.edge_mass, plain.edge_mass, atol=atol)


@prop
@given(st.floats(-0.8, 0.8), st.floats(0.05, 10.0))
def test_cooling_narrows_a_concave_quadratic(centre, alpha):
    warm, cold = (on_grid(lambda a: -((a - centre) ** 2), t, FINE) for t in (alpha, alpha / 2.0))
    assert cold.var < warm.var
