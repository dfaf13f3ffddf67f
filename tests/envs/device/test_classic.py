"""Our classic tasks beside Gymnasium's: one step from the same state, within the rounding of float32."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from point_mass import PointMass

from bisac.envs.device.classic.mountain_car import CarState
from bisac.envs.device.classic.pendulum import PendulumState
from bisac.envs.device.sources import device_task
from bisac.errors import BisacError


def pendulum_at(twin):
    angle, speed = np.asarray(twin.state, np.float32)
    angle = (angle + np.pi) % (2 * np.pi) - np.pi
    return PendulumState(*(jnp.float32(v) for v in (angle, speed)), jnp.zeros(3), jnp.float32(0), jnp.zeros((), bool))


def car_at(twin):
    return CarState(jnp.asarray(twin.state, jnp.float32), jnp.float32(0), jnp.zeros((), bool))


@pytest.mark.parametrize(
    ("name", "twin_id", "at"),
    [("classic/pendulum", "Pendulum-v1", pendulum_at), ("classic/mountain_car", "MountainCarContinuous-v0", car_at)],
)
def test_a_step_is_gymnasiums(name, twin_id, at):
    task, twin = device_task(name, ()), gym.make(twin_id)
    assert task.limit == twin.spec.max_episode_steps
    assert task.spec.action_high == tuple(twin.action_space.high.tolist())
    step, rng, ended = jax.jit(task.env.step), np.random.default_rng(0), 0
    for episode in range(4):
        twin.reset(seed=episode)
        held = rng.uniform(-1, 1, 1)
        for moment in range(150):
            if moment % 10 == 0:
                held = rng.uniform(-1, 1, 1)
            if name.endswith("car") and episode == 3:  # with its swing, which alone reaches the flag
                held = np.sign(twin.unwrapped.state[1:]) + 0.0
            action = np.float32(held * task.spec.action_high[0] * 0.99)
            twin.unwrapped.state = np.asarray(twin.unwrapped.state, np.float32)  # the same state, to the bit
            ours = step(at(twin.unwrapped), action)
            obs, reward, terminated, _, _ = twin.step(action)
            np.testing.assert_allclose(ours.obs, obs, rtol=1e-6, atol=1e-6)
            assert float(ours.reward) == pytest.approx(float(reward), rel=1e-6, abs=1e-6)
            assert bool(ours.done) == terminated
            ended += terminated
            if terminated:
                break
    assert ended == name.endswith("car")


@pytest.mark.parametrize("name", ["classic/pendulum", "classic/mountain_car"])
def test_episodes_begin_as_gymnasiums(name):
    task = device_task(name, ())
    twin = gym.make({"classic/pendulum": "Pendulum-v1"}.get(name, "MountainCarContinuous-v0"))
    ours = np.asarray(task.obs(task.reset(jax.random.split(jax.random.key(0), 2000))))
    theirs = np.stack([twin.reset(seed=seed)[0] for seed in range(2000)])
    np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.05)
    np.testing.assert_allclose(ours.std(0), theirs.std(0), atol=0.03)
    picture = next(
        iter(task.pictures([jax.tree.map(lambda leaf: leaf[0], task.reset(jax.random.split(jax.random.key(0), 1)))]))
    )
    assert picture.ndim == 3


class Odd:
    """An environment with whatever is wrong with it."""

    action_size = 1

    def __init__(self, **wrong):
        self.wrong = wrong

    def reset(self, rng):
        return CarState(**dict(obs=jnp.zeros(2), reward=jnp.zeros(()), done=jnp.zeros(())) | self.wrong)

    def step(self, state, action):
        return CarState(jnp.zeros(2), jnp.zeros(()), jnp.zeros(()))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            dict(obs=jnp.zeros((2, 2))),
            r"obs is float32\[2, 2\] in the state that reset returns, and float32\[2\] after",
        ),
        (dict(done=jnp.zeros((), bool)), "done is bool.* after a step; they must be alike"),
        (dict(reward=(jnp.zeros(()), 0.0)), "the state that step returns has other parts"),
        (
            dict(obs={"pixels": jnp.zeros(3)}),
            "a dictionary of pixels; bisac learns from its 'state', which is not there",
        ),
    ],
)
def test_environments_that_cannot_be_compiled_say_why(wrong, sentence):
    from bisac.errors import BisacError

    with pytest.raises(BisacError, match=sentence):
        device_task(Odd(**wrong), ())


@pytest.mark.parametrize(
    "told",
    [
        {"action_low": (-1.0,)},
        {"action_low": (-1.0,), "action_high": (np.inf,)},
        {"action_low": (1.0,), "action_high": (-1.0,)},
        {"action_low": (-1.0, -1.0), "action_high": (1.0,)},
        {"action_low": ("low",), "action_high": ("high",)},
    ],
)
def test_wrong_bounds_of_an_own_environment_are_told(told):
    env = type("Mass", (PointMass,), {"action_size": None, **told})()
    with pytest.raises(BisacError, match="Mass: action_low and action_high must be finite numbers, one of each"):
        device_task(env, ())


def test_bounds_of_an_own_environment_may_be_arrays():
    told = {"action_low": np.array([-2.0]), "action_high": np.array([3.0]), "max_episode_steps": None}
    task = device_task(type("Mass", (PointMass,), told)(), ())
    assert (task.spec.action_low, task.spec.action_high) == ((-2.0,), (3.0,))
    with pytest.raises(BisacError, match="max_episode_steps must be from 1 to 2147483647"):
        device_task(PointMass(), (f"max_episode_steps={10**10}",))
