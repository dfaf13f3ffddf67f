"""Each algorithm learns the known values and actions of the probe environments."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from forms import VDN_A
from probe_envs import BEST_ACTION, Chain, Contextual, CorrelatedBandit, LinearQuadratic, Truncated
from scipy.linalg import solve_discrete_are
from small_runs import advanced, host_collector

from bisac.algos import A2C, DDPG, MPO, PPO, SAC, TD3, BidirectionalSAC, ForwardSAC, ForwardSACActor
from bisac.algos.ddpg import Deterministic

GAMMA = 0.9
ALPHA = 0.02  # small, so that the soft values are close to the plain ones that the probes know
COMMON = dict(gamma=GAMMA, batch_size=64, learning_starts=300, replay_size=3000, critic_lr=3e-3)
PLAIN = COMMON | dict(hidden=(64, 64), tau=0.05, critic_norm="none")
BATCH = COMMON | dict(hidden=(128, 128), actor_lr=3e-4, critic_norm="batch")
SMALL = PLAIN | dict(temperature=ALPHA, encoder=(64,), subnetwork=(64,), embedding=(32,))
ALGORITHMS = {
    "sac": SAC(actor_lr=3e-3, **SMALL),
    "sac-vdn-a": SAC(actor_lr=3e-3, critic="vdn-a", **SMALL),
    "forward-sac": ForwardSAC(**SMALL),
    "forward-sac-actor": ForwardSACActor(actor_lr=3e-3, **SMALL),
    "bisac": BidirectionalSAC(actor_lr=3e-3, **VDN_A | SMALL),
    "ddpg": DDPG(exploration_noise=0.2, **PLAIN),
    "td3": TD3(exploration_noise=0.2, **PLAIN | {"tau": 0.1}),  # its targets move at every second update
    # Narrow from the start: under tanh the best mean of a wide policy lies further out than the best action.
    "mpo": MPO(actor_lr=3e-3, initial_log_std=-1.5, epsilon_mean=0.05, normalise_observations=False, **PLAIN),
    "sac-batch": SAC(temperature=ALPHA, **BATCH),
}
# The probes share shapes on purpose, so that an algorithm compiles once for all of them.
ALL = [pytest.param(algo.settled(), id=name) for name, algo in ALGORITHMS.items()]
every_algorithm = pytest.mark.parametrize("algo", ALL)


def all_but(*names, params=ALL):
    """These algorithms without some that are known to miss the probe; the comment beside it says by how much."""
    return pytest.mark.parametrize("algo", [param for param in params if param.id not in names])


def trained(algo, env, steps=700, num_envs=1):
    collector = host_collector(algo, env, num_envs, steps=steps)
    # One name, so that what starts a run compiles once.
    collector.spec = dataclasses.replace(collector.spec, env_id="Probe")
    state, _ = advanced(collector, collector.start(), steps)
    return state.flat.whole.agent


def column(*values):
    return jnp.array(values, jnp.float32)[:, None]


@partial(jax.jit, static_argnums=0)
def actions(algo, state, obs):
    return algo.act(state, obs, jax.random.key(0), explore=False)


@jax.jit
def mean_q(state, obs, action):
    """In the environment's rewards: normalised critics count in units of them."""
    q = state.critic.fixed(obs, action).mean(0)
    unit = getattr(state, "reward_unit", None)  # MPO takes rewards as they come
    return q if unit is None else q * unit


@partial(jax.jit, static_argnums=0)
def value_and_entropy(algo, state, obs):
    """Q of the policy at each state, by averaging over its actions, and its entropy there, 0 where none counts."""
    policy = algo.actor(state)(obs)
    if isinstance(algo, Deterministic):
        return mean_q(state, obs, policy), jnp.zeros(len(obs))
    q = jax.vmap(lambda key: mean_q(state, obs, policy.sample(key).action))(jax.random.split(jax.random.key(1), 64))
    return q.mean(0), jnp.zeros(len(obs)) if isinstance(algo, MPO) else policy.entropy()


# Normalised actors miss it: seeds 0 to 4 act 0.17 to 0.57 off. The observation never varies, nor do hidden units, and
# any gap between running moments and a batch's is then divided by next to no variance: by the moments of the batch
# itself those of seed 0 are 0.02 and 0.15 off.
@all_but("sac-batch")
def test_bandit(algo):
    state = trained(algo, CorrelatedBandit, steps=2000)
    obs = column(0.0)
    assert np.abs(np.asarray(actions(algo, state, obs)) - BEST_ACTION).max() < 0.15
    for action in ([0.4, -0.3], [0.0, 0.0], [0.8, -0.3], [0.4, 0.3]):
        d = np.array(action) - BEST_ACTION
        reward = -(d @ d) - 2.0 * CorrelatedBandit.coupling * d[0] * d[1]
        assert mean_q(state, obs, jnp.array([action]))[0] == pytest.approx(reward, abs=0.1)


@every_algorithm
def test_chain_discounts_the_second_reward(algo):
    state = trained(algo, Chain)
    value, entropy = (np.asarray(v) for v in value_and_entropy(algo, state, column(0.0, 1.0)))
    assert value[1] == pytest.approx(1.0, abs=0.03)
    assert value[0] == pytest.approx(GAMMA * (1.0 + ALPHA * entropy[1]), abs=0.04)


@every_algorithm
def test_truncation_bootstraps(algo):
    state = trained(algo, Truncated, steps=900)
    value, entropy = (np.asarray(v) for v in value_and_entropy(algo, state, column(0.0, 1.0)))
    assert value[0] == pytest.approx((1.0 + GAMMA * ALPHA * entropy[0]) / (1.0 - GAMMA), rel=0.05)


# Normalised actors, which learn at each third update, have taken 133 steps here: seeds 0 to 4 act 0.23 to 0.69 off.
@all_but("sac-batch")
def test_action_depends_on_observation(algo):
    state = trained(algo, Contextual)
    learned = actions(algo, state, column(-1.0, 1.0))
    assert np.abs(learned - np.array([[-0.5, 0.5], [0.5, -0.5]])).max() < 0.12


# SAC with the VDN-a critic is left out because it fails: after these steps its actions overshoot by up to 0.53. Of the
# others, one of each kind: it is the longest of the probes.
LONG = ("sac", "forward-sac", "td3", "sac-batch")


@all_but(params=[param for param in ALL if param.id in LONG])
def test_linear_quadratic_regulator(algo):
    state = trained(algo, LinearQuadratic, steps=4000)
    a, b, q, r = np.sqrt(GAMMA) * np.eye(1), np.sqrt(GAMMA) * np.full((1, 2), 0.5), np.eye(1), 0.1 * np.eye(2)
    p = solve_discrete_are(a, b, q, r)
    gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a).sum()
    states = np.linspace(-0.8, 0.8, 5, dtype=np.float32)
    total = np.asarray(actions(algo, state, jnp.array(states)[:, None]).sum(axis=1))
    assert np.abs(total + gain * states).max() < 0.4  # of 1.34 at the outer states
    slope = np.polyfit(states, total, 1)[0]
    assert slope == pytest.approx(-gain, rel=0.25)


FRESH = dict(gamma=GAMMA, hidden=(64, 64), normalise_observations=False, normalise_rewards=False, initial_log_std=-1.5)
# Narrow from the start: a wide policy does better in a corner of the box, where clipping takes its noise away.
ON_POLICY = [
    pytest.param(PPO(rollout=128, minibatches=4, **FRESH), 3e-3, 3e-3, id="ppo"),
    pytest.param(A2C(rollout=40, **FRESH), 7e-4, 3e-3, id="a2c"),
]


@pytest.mark.parametrize(("algo", "action_rate", "value_rate"), ON_POLICY)
def test_fresh_rollouts_teach_the_same(algo, action_rate, value_rate):
    """The best action, actions that depend on the observation, values across truncation and termination."""
    algo = dataclasses.replace(algo, learning_rate=action_rate)
    state = trained(algo, CorrelatedBandit, 8000, num_envs=8)
    assert np.abs(np.asarray(actions(algo, state, column(0.0))) - BEST_ACTION).max() < 0.15
    state = trained(algo, Contextual, 8000, num_envs=8)
    learned = actions(algo, state, column(-1.0, 1.0))
    assert np.abs(learned - np.array([[-0.5, 0.5], [0.5, -0.5]])).max() < 0.15
    algo = dataclasses.replace(algo, learning_rate=value_rate)
    state = trained(algo, Truncated, 8000, num_envs=8)
    assert state.model.value(column(0.0))[0] == pytest.approx(1.0 / (1.0 - GAMMA), rel=0.05)
    state = trained(algo, Chain, 8000, num_envs=8)
    np.testing.assert_allclose(state.model.value(column(0.0, 1.0)), [GAMMA, 1.0], atol=0.05)
