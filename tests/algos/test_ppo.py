from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bisac.algos import A2C, PPO, Rollout
from bisac.errors import BisacError
from bisac.types import Spec

SPEC = Spec("Some-v0", 3, (-1.0, -1.0), (1.0, 1.0))
KEYS = jax.random.split(jax.random.key(0), 8)
SHAPE = (5, 4)
ROLLOUT = Rollout(
    jax.random.normal(KEYS[0], (*SHAPE, 3)),
    jax.random.normal(KEYS[1], (*SHAPE, 2)),
    jax.random.normal(KEYS[2], SHAPE),
    jax.random.bernoulli(KEYS[3], 0.8, SHAPE).astype(jnp.float32),
    jax.random.normal(KEYS[4], (*SHAPE, 3)),
    jax.random.bernoulli(KEYS[5], 0.3, SHAPE),
)
SMALL = dict(hidden=(8,), rollout=20)


def updated(algo, rollout=ROLLOUT, remaining=1.0):
    return jax.jit(algo.update)(algo.init(SPEC, KEYS[6]), rollout, KEYS[7], jnp.float32(remaining))


def difference(left, right):
    leaves = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return max(float(jnp.abs(a - b).max()) for a, b in leaves)


def test_ppo_configured_as_a2c_takes_the_same_step():
    shared = dict(learning_rate=1e-2, normalise_advantages=False, entropy_weight=0.1, **SMALL)
    ppo = PPO(epochs=1, minibatches=1, clip=1e9, optimiser="rmsprop", **shared)
    a2c = A2C(**shared)
    (left, _), (right, _) = updated(ppo), updated(a2c)
    assert difference(left.model, a2c.init(SPEC, KEYS[6]).model) > 1e-3
    assert difference(left.model, right.model) < 1e-6


def test_a2c_follows_the_policy_gradient():
    """Its step is RMSprop's on -E[A log pi] + w (V - target)^2 / 2 - v H, written out here without the surrogate."""
    algo = A2C(max_gradient=1e9, entropy_weight=0.1, normalise_advantages=True, **SMALL)
    state = algo.init(SPEC, KEYS[6])
    steps = algo.rated(state, ROLLOUT)
    rated = np.asarray(steps.advantage, np.float64)
    advantage = jnp.asarray((rated - rated.mean()) / rated.std(), jnp.float32)

    def loss(model):
        log_prob = model.actor(steps.obs).log_prob(steps.action)
        value_loss = 0.5 * jnp.square(model.value(steps.obs) - steps.target).mean()
        entropy = (model.actor.log_std + 0.5 * np.log(2.0 * np.pi * np.e)).sum()  # of a Gaussian, not squashed
        return -(advantage * log_prob).mean() + 0.5 * value_loss - 0.1 * entropy

    after, _ = updated(algo)
    gradient = jax.grad(loss)(state.model)
    leaves = zip(*map(jax.tree.leaves, (state.model, after.model, gradient)), strict=True)
    for old, new, slope in leaves:
        np.testing.assert_allclose(new - old, -7e-4 * slope / (0.1 * jnp.abs(slope) + 1e-5), rtol=2e-2, atol=1e-5)


def test_ratio_is_clipped():
    """With all advantages positive, a clipped policy cannot raise its actions' probability far beyond the clip."""
    always = ROLLOUT._replace(reward=jnp.ones(SHAPE) * 5.0, discount=jnp.zeros(SHAPE), ended=jnp.ones(SHAPE, bool))
    ratios, cut = {}, {}
    for clip in (0.1, 1e9):
        algo = PPO(
            epochs=40, minibatches=1, clip=clip, learning_rate=1e-2, normalise_advantages=False, anneal=False, **SMALL
        )
        before, (after, metrics) = algo.init(SPEC, KEYS[6]), updated(algo, always)
        steps = algo.rated(before, always)
        ratios[clip] = np.exp(np.asarray(after.model.actor(steps.obs).log_prob(steps.action) - steps.log_prob))
        cut[clip] = float(metrics["clip_fraction"])
    assert ratios[0.1].max() < 2.0
    assert ratios[1e9].max() > 10.0
    assert cut[1e9] == 0.0 < 0.3 < cut[0.1] <= 1.0


def test_value_clip_holds_values_back():
    far = ROLLOUT._replace(reward=ROLLOUT.reward + 100.0, discount=jnp.zeros(SHAPE), ended=jnp.ones(SHAPE, bool))
    obs, moved = ROLLOUT.obs.reshape(-1, 3), {}
    for clip in (0.1, None):
        algo = PPO(epochs=40, minibatches=1, value_clip=clip, learning_rate=1e-2, **SMALL)
        change = updated(algo, far)[0].model.value(obs) - algo.init(SPEC, KEYS[6]).model.value(obs)
        moved[clip] = float(jnp.abs(change).mean())
    assert moved[0.1] < 0.5 < 1.0 < moved[None]


def test_learning_rate_anneals():
    steps = {}
    for remaining in (1.0, 0.5, 0.0):
        algo = A2C(**SMALL)
        steps[remaining] = difference(updated(algo, remaining=remaining)[0].model, algo.init(SPEC, KEYS[6]).model)
    assert steps[0.5] == pytest.approx(0.5 * steps[1.0], rel=1e-3)
    assert steps[0.0] == 0.0
    assert difference(*(updated(A2C(anneal=False, **SMALL), remaining=r)[0].model for r in (1.0, 0.0))) == 0.0


def test_gradient_is_cut_off():
    small, large = (updated(PPO(epochs=1, minibatches=1, max_gradient=g, **SMALL))[0].opt_state for g in (1e-3, 1e9))
    norms = [jnp.sqrt(sum(jnp.square(m).sum() for m in jax.tree.leaves(s[1][0].mu))) for s in (small, large)]
    assert norms[0] == pytest.approx(0.1 * 1e-3, rel=1e-3)  # Adam's first moment is a tenth of the gradient
    assert norms[1] > 1e-2


def test_every_row_is_seen_once_an_epoch(monkeypatch):
    """Four minibatches of five rows, in an order of its own each epoch."""
    seen, step = [], PPO.step

    def watched(self, state, batch, *rest):
        jax.debug.callback(lambda rows: seen.append(np.asarray(rows)), batch.obs[:, 0], ordered=True)
        return step(self, state, batch, *rest)

    monkeypatch.setattr(PPO, "step", watched)
    state, _ = updated(PPO(epochs=3, minibatches=4, gamma=0.98, **SMALL))  # compiled by no other test
    jax.effects_barrier()
    assert int(state.opt_state[1][0].count) == len(seen) == 12
    assert {len(rows) for rows in seen} == {5}
    epochs = [np.concatenate(seen[4 * epoch : 4 * epoch + 4]) for epoch in range(3)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.sort(np.asarray(ROLLOUT.obs[..., 0]).ravel()))
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[1], epochs[2])


@pytest.mark.parametrize(
    ("minibatches", "num_envs", "normalise", "most"),
    [(21, 1, False, 20), (11, 1, True, 10), (19, 3, False, 18), (20, 1, False, None), (10, 1, True, None)],
)
def test_minibatches_have_something_to_learn_from(minibatches, num_envs, normalise, most):
    """Of a rollout of 20 steps, which three environments share as 18; normalised, one advantage alone is none."""
    algo = PPO(minibatches=minibatches, normalise_advantages=normalise, **SMALL)
    with pytest.raises(BisacError, match=f"--minibatches must be at most {most}: ") if most else nullcontext():
        algo.check_num_envs(num_envs)


def test_rollout_of_one_step_has_no_normalised_advantage():
    one = dict(rollout=1, hidden=(8,))
    A2C(**one).check_num_envs(1)
    A2C(**one, normalise_advantages=True).check_num_envs(2)
    with pytest.raises(BisacError, match="--rollout must be at least 2 where advantages are normalised, got 1"):
        A2C(**one, normalise_advantages=True).check_num_envs(1)


def test_number_or_none_is_asked_for_in_words():
    with pytest.raises(BisacError, match="--value-clip must be a number or None, got inf"):
        PPO(value_clip=float("inf"))
