import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policies import POLICIES, SMALL, SPEC, fresh

import bisac
from bisac.algos import BidirectionalSAC, make_algorithm
from bisac.envs.task import Task
from bisac.policies.policy import Policy, load_policy
from bisac.storage import pack_arrays
from bisac.types import Spec


@pytest.mark.parametrize("algo", POLICIES.values(), ids=POLICIES)
def test_saved_policy_acts_the_same(algo, tmp_path):
    policy = fresh(algo)
    policy.save(tmp_path / "p.safetensors")
    loaded = bisac.load(tmp_path / "p.safetensors")
    obs = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(loaded.predict(obs)[0], policy.predict(obs)[0])
    assert loaded.spec == SPEC
    assert loaded.algo == algo


def test_predict_takes_one_or_a_batch_in_the_environments_units():
    policy = fresh(POLICIES["sac"])
    obs = np.random.default_rng(0).normal(size=(200, 3)) * 100
    batch, state = policy.predict(obs)
    one, _ = policy.predict(obs[7])
    assert state is None
    assert batch.shape == (200, 2)
    assert one.shape == (2,)
    np.testing.assert_allclose(one, batch[7], rtol=1e-5)
    assert (batch >= [-2.0, 0.0]).all()
    assert (batch <= [2.0, 10.0]).all()
    x = policy.actor(jnp.asarray(obs, jnp.float32)).mean
    np.testing.assert_allclose(batch, np.array([0.0, 5.0]) + np.array([2.0, 5.0]) * np.tanh(x), rtol=1e-5, atol=1e-5)


def test_stochastic_actions_differ_and_deterministic_ones_do_not():
    policy, obs = fresh(POLICIES["sac"]), np.zeros(3)
    assert (policy.predict(obs)[0] == policy.predict(obs)[0]).all()
    assert (policy.predict(obs, deterministic=False)[0] != policy.predict(obs, deterministic=False)[0]).all()


@pytest.mark.parametrize("shape", [(4,), (2, 4), (2, 2, 3), ()])
def test_wrong_observations_are_refused(shape):
    with pytest.raises(bisac.BisacError, match="takes observations of 3 numbers"):
        fresh(POLICIES["sac"]).predict(np.zeros(shape))


@pytest.mark.parametrize("observation", [{"a": np.zeros(3)}, [[1.0], [1.0, 2.0]]])
def test_observations_that_are_no_arrays_are_told_how_to_become_one(observation):
    with pytest.raises(bisac.BisacError, match="takes observations of Some-v0: arrays of 3 numbers"):
        fresh(POLICIES["sac"]).predict(observation)


def damage(path, change):
    metadata = {"format": "bisac-policy", "version": 1, "algo": "sac", "normalisation": None}
    metadata |= {"settings": SMALL, "spec": {"env_id": "E", "obs_dim": 3, "action_low": [-1.0], "action_high": [1.0]}}
    path.write_bytes(pack_arrays({"a": np.zeros(3)}, metadata | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not a bisac policy"),
        ({"version": 99}, "policy format 99"),
        ({"algo": "unheard-of"}, "does not know"),
        ({"settings": None}, "does not know"),
        ({"settings": {"no_such": 1}}, "does not know"),
        ({}, "damaged or was edited"),
    ],
)
def test_files_that_are_no_policies_are_refused(change, message, tmp_path):
    damage(tmp_path / "p.safetensors", change)
    with pytest.raises(bisac.BisacError, match=message):
        load_policy(tmp_path / "p.safetensors")


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "p.safetensors"
    fresh(POLICIES["sac"]).save(path)
    whole = path.read_bytes()
    for content in (b"", b"garbage", whole[:100], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(bisac.BisacError, match="cannot be read"):
            bisac.load(path)
    with pytest.raises(bisac.BisacError, match="no run folder or policy file"):
        bisac.load(tmp_path / "nothing")
    with pytest.raises(bisac.BisacError, match="holds no policy"):
        bisac.load(tmp_path)


def test_unwritable_places_are_told(tmp_path):
    with pytest.raises(bisac.BisacError, match="cannot be written"):
        fresh(POLICIES["sac"]).save(tmp_path / "missing" / "p.safetensors")


def test_settings_are_checked():
    with pytest.raises(bisac.BisacError, match="did you mean epsilon"):
        make_algorithm("bisac", {"epsilom": 1.0})
    with pytest.raises(bisac.BisacError, match="no algorithm 'foo'"):
        make_algorithm("foo", {})
    for name, value in [
        ("gamma", 1.5),
        ("tau", 0.0),
        ("epsilon", -1.0),
        ("simpson_intervals", 3),
        ("hidden", (0,)),
        ("embedding", ()),
    ]:
        with pytest.raises(bisac.BisacError, match=name.replace("_", "-")):
            make_algorithm("bisac", {name: value})
    assert make_algorithm(BidirectionalSAC(gamma=0.5), {"utd": 0.1}) == BidirectionalSAC(gamma=0.5, utd=0.1)


def test_policy_for_another_environment_is_refused():
    spec = Spec("Other-v0", 4, (-1.0,), (1.0,))
    with pytest.raises(bisac.BisacError, match=r"trained on Some-v0 .* does not fit Other-v0"):
        fresh(POLICIES["sac"]).check_fits(spec)


def test_sb3_style_evaluation_accepts_the_policy():
    """What Stable-Baselines3's evaluate_policy calls: keywords state, episode_start, deterministic on a vector env."""
    algo, spec = POLICIES["sac"], Spec("Pendulum-v1", 3, (-2.0,), (2.0,))
    policy = Policy(spec, algo, algo.actor(algo.init(spec, jax.random.key(0))))
    envs = gym.make_vec("Pendulum-v1", num_envs=3)
    obs, _ = envs.reset(seed=0)
    actions, state = policy.predict(obs, state=None, episode_start=np.ones(3, bool), deterministic=True)
    envs.step(actions)
    assert state is None
    envs.close()


class Goals(gym.Env):
    """A goal task whose observations are a dictionary, as robotics has them."""

    observation_space = gym.spaces.Dict(
        observation=gym.spaces.Box(-1.0, 1.0, (2,)), desired_goal=gym.spaces.Box(-1.0, 1.0, (1,))
    )
    action_space = gym.spaces.Box(-2.0, 2.0, (1,))


def test_policy_takes_the_environments_own_observations(tmp_path):
    task = Task(Goals)
    spec = task.spec(task.make())
    algo = POLICIES["sac"]
    Policy(spec, algo, algo.actor(algo.init(spec, jax.random.key(0)))).save(tmp_path / "p.safetensors")
    policy = bisac.load(tmp_path / "p.safetensors")
    assert policy.spec == spec
    space = Goals.observation_space
    one = space.sample()
    flat = gym.spaces.flatten(space, one)
    np.testing.assert_array_equal(policy.predict(one)[0], policy.predict(flat)[0])
    batch = {name: np.stack([one[name]] * 3) for name in one}
    np.testing.assert_array_equal(policy.predict(batch)[0], policy.predict(np.stack([flat] * 3))[0])
    assert policy.predict(one)[0].shape == (1,)
    for bad in ({"observation": np.zeros(2)}, dict.fromkeys(one, "far"), (1, 2), np.zeros(2)):
        with pytest.raises(bisac.BisacError, match="this policy takes observations of"):
            policy.predict(bad)
