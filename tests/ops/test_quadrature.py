from itertools import pairwise

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial
from scipy.integrate import simpson as scipy_simpson

from bisac.ops.quadrature import Grid, chebyshev_points, interpolation_matrix, simpson

TARGETS = np.linspace(-1.0, 1.0, 101)


@pytest.mark.parametrize(("bound", "intervals"), [(1.0, 2), (5.0, 100), (0.3, 8)])
def test_simpson_is_exact_for_cubics(bound, intervals):
    cubic = Polynomial([0.7, -1.0, 2.0, 3.0])
    nodes, weights = simpson(bound, intervals)
    exact = cubic.integ()(bound) - cubic.integ()(-bound)
    assert weights @ cubic(nodes) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("intervals", [2, 10, 100])
def test_simpson_matches_scipy(intervals):
    nodes, weights = simpson(4.0, intervals)
    values = np.exp(np.sin(3.0 * nodes))
    assert weights @ values == pytest.approx(scipy_simpson(values, x=nodes), rel=1e-12)


@pytest.mark.parametrize("count", [2, 9, 17, 33])
def test_chebyshev_points_are_the_extrema(count):
    # Between neighbouring extrema of T_{count-1} it runs from one of +-1 to the other.
    values = Chebyshev.basis(count - 1)(chebyshev_points(count))
    np.testing.assert_allclose(values[::-1], (-1.0) ** np.arange(count), atol=1e-12)
    assert (np.diff(chebyshev_points(count)) > 0.0).all()


@pytest.mark.parametrize("count", [2, 5, 17, 33])
def test_interpolation_is_exact_below_the_degree(count):
    rng = np.random.default_rng(count)
    points = chebyshev_points(count)
    matrix = interpolation_matrix(points, TARGETS)
    inside = Chebyshev(rng.normal(size=count))
    np.testing.assert_allclose(inside(points) @ matrix, inside(TARGETS), atol=1e-11)
    beyond = Chebyshev.basis(count)
    assert np.abs(beyond(points) @ matrix - beyond(TARGETS)).max() > 0.1


def test_interpolation_hits_the_points():
    points = chebyshev_points(17)
    np.testing.assert_array_equal(interpolation_matrix(points, points), np.eye(17))


def test_interpolation_converges_geometrically():
    def worst(count):
        points = chebyshev_points(count)
        return np.abs(np.exp(np.sin(3.0 * points)) @ interpolation_matrix(points, TARGETS) - smooth).max()

    smooth = np.exp(np.sin(3.0 * TARGETS))
    errors = [worst(count) for count in (9, 17, 25, 33)]
    assert all(more < less / 20.0 for less, more in pairwise(errors)), errors
    assert errors[-1] < 1e-7


@pytest.mark.parametrize("points", [0, 17])
def test_grid_takes_values_at_actions_to_the_nodes(points):
    grid = Grid(bound=4.0, intervals=80, points=points)
    curve = Polynomial([1.0, -2.0, 0.5, 3.0])
    assert grid.spacing == pytest.approx(0.1)
    np.testing.assert_allclose(grid.nodes, np.linspace(-4.0, 4.0, 81), atol=1e-6)
    np.testing.assert_allclose(curve(grid.actions) @ grid.interpolation, curve(np.tanh(grid.nodes)), atol=1e-5)
    # Integrating over actions: the measure of [-tanh b, tanh b], and the second moment over it.
    edge = np.tanh(4.0)
    measure = np.exp(grid.log_measure.astype(float))
    assert measure.sum() == pytest.approx(2.0 * edge, rel=1e-6)
    assert measure @ np.tanh(grid.nodes) ** 2 == pytest.approx(2.0 * edge**3 / 3.0, rel=1e-6)


def test_grid_reaches_as_far_as_it_is_told():
    """log tanh'(x) = log 4 - 2 |x| far out, where cosh itself overflows."""
    grid = Grid(bound=900.0, intervals=4, points=0)
    np.testing.assert_allclose(grid.log_measure[0], np.log(150.0) + np.log(4.0) - 1800.0, rtol=1e-6)
