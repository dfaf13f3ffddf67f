"""The gate around other tasks: what reaches them, and that nothing they can do is lost."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Shaped

import bisac
from bisac.envs.tasks.gate import Gate
from bisac.envs.tasks.gated import Gated
from bisac.errors import BisacError


def test_commands_reach_an_asymmetric_box_through_the_gate():
    low, high = np.array([0.0, -3.0], np.float32), np.array([1.0, 5.0], np.float32)
    task = Shaped(action_space=spaces.Box(low, high))
    env = bisac.tasks.gated(task, centre=0.6, width=0.1, weak=0.5)
    assert env.action_space == spaces.Box(-1.0, 1.0, (2,))
    for command in ([0.6, -0.6], [-0.6, 0.6], [0.0, 0.0], [0.25, 1.0]):
        env.step(np.array(command, np.float32))
    np.testing.assert_allclose(task.received, [[1.0, -3.0], [0.0, 5.0], [0.5, 1.0], [0.75, 1.0]], atol=1e-5)
    assert all(task.action_space.contains(action) for action in task.received)


def test_every_action_has_a_command():
    low, high = np.array([-1.0, 2.0], np.float32), np.array([1.0, 7.0], np.float32)
    task = Shaped(action_space=spaces.Box(low, high))
    env = bisac.tasks.gated(task)
    wanted = np.random.default_rng(0).uniform(low, high, (200, 2))
    for action in (*wanted, low, high):
        env.step(env.command(action))
    np.testing.assert_allclose(task.received, [*wanted, low, high], atol=1e-4)


def test_gated_pendulum_is_pendulum_behind_the_gate():
    plain = gym.make("Pendulum-v1")
    gated = bisac.tasks.gated(gym.make("Pendulum-v1"))
    registered = gym.make("bisac/GatedPendulum-v0")
    first = [env.reset(seed=3)[0] for env in (plain, gated, registered)]
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[0], first[2])
    for command in np.random.default_rng(0).uniform(-1, 1, (200, 1)).astype(np.float32):
        torque = (2.0 * Gate().response(command)).astype(np.float32)
        steps = [env.step(action) for env, action in ((plain, torque), (gated, command), (registered, command))]
        for obs, *rest in steps[1:]:
            np.testing.assert_allclose(obs, steps[0][0], atol=1e-5)
            assert rest[1:3] == list(steps[0][2:4])
    assert steps[0][3], "all are cut off after 200 steps"


def test_an_oracle_swings_the_gated_pendulum_up():
    """It pumps energy until the pole is near the top, and balances it there, by the gate's own commands."""
    env = gym.make("bisac/GatedPendulum-v0")
    gate = env.get_wrapper_attr("gate")
    returns = []
    for seed in range(3):
        (cos, sin, speed), _ = env.reset(seed=seed)
        returns.append(0.0)
        for _ in range(200):
            angle, energy = np.arctan2(sin, cos), speed**2 / 6 + 5 * (cos - 1)
            torque = -(6 * angle + 1.5 * speed) if abs(angle) < 0.5 else -np.sign(energy) * np.sign(speed)
            command = gate.command(np.clip(np.array([torque]), -1, 1)).astype(np.float32)
            (cos, sin, speed), reward, *_ = env.step(command)
            returns[-1] += float(reward)
    assert np.mean(returns) > -400


def test_a_gated_task_can_be_made_again_from_its_spec():
    for env in (
        bisac.tasks.gated(gym.make("Pendulum-v1"), weak=0.2),
        gym.make("bisac/GatedPendulum-v0", weak=0.2, max_episode_steps=7),
    ):
        assert env.spec is not None
        again = gym.make(env.spec)
        assert str(again).count("Gated<") == 1, "gated once"
        assert again.get_wrapper_attr("gate") == Gate(weak=0.2)
        assert again.spec == env.spec


@pytest.mark.parametrize(
    "space", [spaces.Discrete(2), spaces.Box(-np.inf, np.inf, (2,)), spaces.Box(0, 5, (1,), np.int8)]
)
def test_only_bounded_boxes_can_be_gated(space):
    with pytest.raises(BisacError, match=r"only a bounded Box of float actions can be gated, got .*\."):
        Gated(Shaped(action_space=space), Gate())
