import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bisac.algos.learner import Learner


def test_steps_are_those_of_adam():
    rate, decay, decay2, small = 0.1, 0.9, 0.999, 1e-8
    centre = np.array([1.0, -2.0, 0.5])
    optimiser = optax.adam(rate)
    learner = Learner.init({"w": jnp.array([0.0, 3.0, 2.0])}, optimiser)

    def loss(model):
        gap = model["w"] - jnp.asarray(centre, jnp.float32)
        return (gap**4).sum(), gap

    w, m, v = np.array([0.0, 3.0, 2.0]), np.zeros(3), np.zeros(3)
    for step in (1, 2, 3):
        gap = w - centre
        learner, value, aux = learner.step(optimiser, loss)
        np.testing.assert_allclose(value, (gap**4).sum(), rtol=1e-5)
        np.testing.assert_allclose(aux, gap, rtol=1e-5)
        gradient = 4.0 * gap**3
        m = decay * m + (1.0 - decay) * gradient
        v = decay2 * v + (1.0 - decay2) * gradient**2
        w = w - rate * (m / (1.0 - decay**step)) / (np.sqrt(v / (1.0 - decay2**step)) + small)
        np.testing.assert_allclose(learner.model["w"], w, rtol=1e-5)


def test_average_is_over_a_share_of_all_steps():
    optimiser, share, steps = optax.sgd(1.0), 0.1, 200
    learner = Learner.init({"w": jnp.zeros(())}, optimiser, averaged=True)
    values = np.random.default_rng(0).normal(size=steps)
    weights = np.zeros(0)
    for t, value in enumerate(values):
        gap = float(learner.model["w"]) - value  # steps onto the value itself
        learner, _, _ = learner.step(optimiser, lambda model, gap=gap: (model["w"] * gap, None))
        learner = learner.observed((), share)
        rate = 1.0 / (1.0 + share * t)
        weights = np.append(weights * (1.0 - rate), rate)
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(learner.averaged["w"], weights @ values, rtol=1e-4)
    np.testing.assert_allclose(learner.fixed["w"], values[-1], rtol=1e-4)
    assert steps - weights @ np.arange(steps) == pytest.approx(share * steps, rel=0.2)  # its age


def test_without_an_average_the_model_itself_is_taken():
    learner = Learner.init({"w": jnp.ones(())}, optax.sgd(1.0))
    assert learner.observed((), 0.1).average is None
    assert learner.averaged is learner.model
