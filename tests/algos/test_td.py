"""Both ways to the TD target, and what normalised critics bring with them."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forms import VDN_A
from reference import filled, mlp_on_batch

from bisac.algos import DDPG, REGISTRY, SAC, TD3, BidirectionalSAC, ForwardSAC, ForwardSACActor, algorithm_from_json
from bisac.algos.td import joint_pass
from bisac.errors import BisacError
from bisac.nets.critics import Joint
from bisac.nets.mlp import normalised
from bisac.nets.normalisation import moved
from bisac.ops.rewards import spread_of
from bisac.types import Spec, Transition

SPEC = Spec("Some-v0", 3, (-1.0, -1.0), (1.0, 1.0))
GAMMA, ROWS = 0.9, 16
RNG = np.random.default_rng(0)
BATCH = Transition(
    *(
        jnp.asarray(leaf, jnp.float32)
        for leaf in (
            RNG.normal(size=(ROWS, 3)),
            RNG.uniform(-1.0, 1.0, (ROWS, 2)),
            RNG.normal(size=ROWS),
            RNG.integers(0, 2, ROWS),
            RNG.normal(1.0, 2.0, (ROWS, 3)),
        )
    )
)
NEXT_ACTION = jnp.asarray(RNG.uniform(-1.0, 1.0, (ROWS, 2)), jnp.float32)
SMALL = dict(hidden=(8, 8), batch_size=ROWS, critic_norm="batch")
WIDTHS = dict(encoder=(8,), embedding=(4,), subnetwork=(8,))
NORMALISED = {
    "sac": SAC(**SMALL),
    "sac-vdn-a": SAC(critic="vdn-a", **SMALL, **WIDTHS),
    "bisac": BidirectionalSAC(**VDN_A | SMALL, **WIDTHS),
    "forward-sac": ForwardSAC(**SMALL, **WIDTHS),
    "forward-sac-actor": ForwardSACActor(**SMALL, **WIDTHS),
    "ddpg": DDPG(**SMALL),
    "td3": TD3(**SMALL),
}


def target(next_q):
    return BATCH.reward + GAMMA * BATCH.discount * next_q.min(axis=0)


def loss(critic):
    answer = joint_pass(critic, BATCH, NEXT_ACTION, target)
    return 0.5 * jnp.square(answer.estimates[0] - answer.target[None]).mean(axis=-1).sum()


def both_halves(critic):
    """Q(s, a) and Q(s', a') of each twin, by NumPy, in float64."""
    x = np.concatenate([np.concatenate([BATCH.obs, BATCH.action], 1), np.concatenate([BATCH.next_obs, NEXT_ACTION], 1)])
    q = np.stack([mlp_on_batch(critic.mlp, x, twin)[0][:, 0] for twin in range(2)])
    return q[:, :ROWS], q[:, ROWS:]


def loss_by_numpy(critic, held):
    """The loss with the target held at a number."""
    return 0.5 * np.square(both_halves(critic)[0] - held).mean(axis=-1).sum()


def make_critic():
    critic = filled(lambda key: normalised(Joint.init(key, 3, 2, (5, 4), "tanh")), 1)
    return jax.tree.map(lambda leaf: leaf + 0.3, critic)


def test_target_is_of_the_second_half_of_one_pass():
    critic = make_critic()
    _, after = both_halves(critic)
    answer = joint_pass(critic, BATCH, NEXT_ACTION, target)
    held = np.asarray(BATCH.reward) + GAMMA * np.asarray(BATCH.discount) * after.min(axis=0)
    np.testing.assert_allclose(answer.target, held, rtol=1e-4, atol=1e-5)
    assert loss(critic) == pytest.approx(loss_by_numpy(critic, held), rel=1e-4)


def test_gradient_flows_through_the_shared_moments_but_not_through_the_target():
    """Finite differences in float64, with the target held: each half moves the moments, and so the loss."""
    critic = make_critic()
    _, after = both_halves(critic)
    held = np.asarray(BATCH.reward) + GAMMA * np.asarray(BATCH.discount) * after.min(axis=0)
    gradient = jax.grad(loss)(critic)
    leaves, structure = jax.tree.flatten(critic)
    for position, leaf in enumerate(leaves):
        for index in np.ndindex(leaf.shape):
            if sum(index) % 3:  # a third of them is enough
                continue
            ends = []
            for sign in (1.0, -1.0):
                moved_leaf = np.array(leaf, np.float64)
                moved_leaf[index] += sign * 1e-5
                changed = [*leaves[:position], moved_leaf, *leaves[position + 1 :]]
                ends.append(loss_by_numpy(jax.tree.unflatten(structure, changed), held))
            expected = (ends[0] - ends[1]) / 2e-5
            assert jax.tree.leaves(gradient)[position][index] == pytest.approx(expected, rel=2e-3, abs=2e-5)


@cache
def compiled(algo):
    """The update, compiled once for all tests of an algorithm."""
    return jax.jit(algo.update)


def started(algo):
    algo = algo.settled()
    return algo, algo.init(SPEC, jax.random.key(0))


def same(left, right):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True))


@pytest.mark.parametrize("name", NORMALISED)
def test_every_member_learns_without_targets_and_delays_its_policy(name):
    algo, state = started(NORMALISED[name])
    assert state.target_critic is None
    update = compiled(algo)
    delay = getattr(algo, "policy_delay", 1)
    policies, critics = [], []
    for step in range(2 * delay):
        before = state
        state, metrics = update(state, BATCH, jax.random.key(step))
        assert all(np.isfinite(value) for value in metrics.values())
        assert {"critic_dead_units", "critic_moments_gap"} <= metrics.keys()
        policies.append(not same(before.actor, state.actor))
        critics.append(not same(before.critic.moments, state.critic.moments))
    assert all(critics)
    assert sum(policies) == (0 if name == "forward-sac" else 2)


def test_metrics_of_the_policy_are_those_of_its_last_step():
    algo, state = started(NORMALISED["sac"])
    told = []
    for step in range(4):
        state, metrics = compiled(algo)(state, BATCH, jax.random.key(step))
        told.append(float(metrics["actor_loss"]))
    assert told[0] == told[1] == told[2] != told[3]


def test_what_is_evaluated_is_the_mean_of_the_actors_last_steps():
    algo, state = started(SAC(policy_delay=1, policy_average=0.5, **SMALL))
    mean, obs = None, BATCH.obs
    for step in range(6):
        state, _ = compiled(algo)(state, BATCH, jax.random.key(step))
        rate = 1.0 / (1.0 + 0.5 * step)
        new = jax.tree.map(np.asarray, algo.actor(state))
        mean = new if mean is None else jax.tree.map(lambda old, now: old + rate * (now - old), mean, new)  # noqa: B023
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), algo.policy(state), mean)
    evaluated = algo.act(state, obs, jax.random.key(0), explore=False)
    np.testing.assert_array_equal(evaluated, algo.policy(state)(obs).mode())
    assert not np.array_equal(evaluated, algo.actor(state)(obs).mode())
    explored = algo.act(state, obs, jax.random.key(0), explore=True)
    np.testing.assert_array_equal(explored, algo.actor(state)(obs).sample(jax.random.key(0)).action)


def test_running_moments_move_by_what_the_critics_saw():
    algo, state = started(NORMALISED["ddpg"])
    next_action = algo.actor(state)(BATCH.next_obs)
    _, seen = state.critic.model.on_batch(
        jnp.concatenate([BATCH.obs, BATCH.next_obs]), jnp.concatenate([BATCH.action, next_action])
    )
    after, _ = compiled(algo)(state, BATCH, jax.random.key(1))
    expected = moved(state.critic.moments, seen)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), after.critic.moments, expected)


@pytest.mark.parametrize("name", ["sac", "bisac", "td3"])
def test_rewards_on_another_scale_change_no_bit_of_what_is_learned(name):
    algo, fresh = started(NORMALISED[name])
    factor, learned = 2.0**10, []
    for scale in (1.0, factor):
        batch = BATCH._replace(reward=scale * BATCH.reward)
        state = jax.jit(algo.begin)(fresh, batch)
        for step in range(4):
            state, metrics = compiled(algo)(state, batch, jax.random.key(step))
        learned.append((eqx.tree_at(lambda s: s.reward_unit, state, jnp.zeros(())), state.reward_unit, metrics))
    (one, unit, told), (other, other_unit, other_told) = learned
    told_apart = (lambda s: s.actor_loss) if name == "td3" else (lambda s: s.delay)
    without = [eqx.tree_at(told_apart, learned_state, None) for learned_state in (one, other)]
    assert same(*without)
    assert other_unit == factor * unit
    assert other_told["q"] == pytest.approx(factor * float(told["q"]), rel=1e-6)
    assert other_told["critic_loss"] == pytest.approx(factor**2 * float(told["critic_loss"]), rel=1e-6)


def test_a_temperature_that_is_given_is_in_the_environments_rewards():
    for given, started_at in (({"initial_temperature": 0.3}, 0.3), ({"temperature": 0.05}, 0.05)):
        algo, state = started(SAC(**SMALL, **given))
        state = algo.begin(state, BATCH._replace(reward=100.0 * BATCH.reward))
        assert float(state.alpha * state.reward_unit) == pytest.approx(started_at, rel=1e-5)
    algo, state = started(SAC(**SMALL))
    state = algo.begin(state, BATCH)
    assert float(state.alpha) == pytest.approx(0.2)
    _, metrics = jax.jit(algo.update)(state, BATCH, jax.random.key(0))
    assert metrics["alpha"] == pytest.approx(0.2 * float(spread_of(BATCH.reward)), rel=1e-5)


@pytest.mark.parametrize(
    ("algo", "hyperparameters", "sentence"),
    [
        ("sac", {"tau": 0.01}, "--tau must be left out with --critic-norm batch, which has no targets, got 0.01"),
        ("td3", {"tau": 0.01, "critic_norm": "batch"}, "--tau must be left out"),
        ("forward-sac", {"policy_average": 0.1}, "--policy-average must be left out: there is no actor network"),
        ("sac", {"batch_size": 8}, "--batch-size must be at least 16 with --critic-norm batch"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(algo, hyperparameters, sentence):
    with pytest.raises(BisacError, match=sentence):
        REGISTRY[algo](**hyperparameters)


def test_auto_is_settled_by_the_form():
    names = ("actor_lr", "temperature_lr", "adam_b1", "policy_delay", "initial_temperature", "tau", "policy_average")
    values = {norm: [getattr(SAC(critic_norm=norm).settled(), name) for name in names] for norm in ("none", "batch")}
    assert values == {
        "none": [3e-4, 3e-4, 0.9, 1, 1.0, 0.005, 0.0],
        "batch": [1e-3, 1e-3, 0.5, 3, "auto", "auto", 0.05],
    }
    assert SAC(actor_lr=5e-4).settled().actor_lr == 5e-4
    assert TD3().settled().policy_delay == 2
    with pytest.raises(AssertionError, match="must be settled"):
        SAC(critic_norm="none").init(SPEC, jax.random.key(0))


def test_files_without_the_form_mean_the_classic_one():
    for name in ("sac", "bisac", "td3"):
        assert algorithm_from_json(name, {}).critic_norm == "none"
    assert algorithm_from_json("sac", {"critic_norm": "batch"}).critic_norm == "batch"
    assert algorithm_from_json("ppo", {}) == REGISTRY["ppo"]()


def test_classic_critics_regress_onto_the_soft_value_of_the_target_networks():
    algo = SAC(hidden=(8,), batch_size=ROWS, critic_norm="none", gamma=GAMMA, temperature=0.5).settled()
    state = algo.init(SPEC, jax.random.key(0))
    state = eqx.tree_at(
        lambda s: s.target_critic, state, jax.tree.map(lambda leaf: 1.3 * leaf + 0.1, state.target_critic)
    )
    action, log_prob = algo.actor(state)(BATCH.next_obs).sample(jax.random.split(jax.random.key(1))[0])
    q = np.asarray(state.target_critic(BATCH.next_obs, action), float)
    held = np.asarray(BATCH.reward) + GAMMA * np.asarray(BATCH.discount) * (q.min(axis=0) - 0.5 * np.asarray(log_prob))
    estimates = np.asarray(state.critic.model(BATCH.obs, BATCH.action), float)
    expected = 0.5 * np.square(estimates - held).mean(axis=-1).sum()
    assert compiled(algo)(state, BATCH, jax.random.key(1))[1]["critic_loss"] == pytest.approx(expected, rel=1e-4)
