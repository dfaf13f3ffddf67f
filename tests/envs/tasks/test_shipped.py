"""The tasks as users meet them: registered, checked by Gymnasium, refused in a sentence; one is in test_her.py."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task
from bisac.envs.tasks import SHIPPED, arguments
from bisac.errors import BisacError


@pytest.mark.parametrize("task", SHIPPED)
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")  # a gated task is a wrapper
@pytest.mark.filterwarnings("ignore:.*Box observation space m..imum value is -?infinity")  # so it is in Hopper itself
def test_gymnasium_finds_nothing_to_complain_of(task):
    check_env(gym.make(task, disable_env_checker=True), skip_render_check=True)


@pytest.mark.parametrize(
    ("task", "arg", "message"),
    [
        ("bisac/Peaks-v0", "dims=9", "cannot be made with dims=9: dims must be a whole number from 1 to 8, got 9."),
        ("bisac/GatedReach-v0", "speed=2", "speed must be a number above 0 and at most 1, got 2."),
        ("bisac/GatedPendulum-v0", "weak=-1", "weak must be a number 0 or more and at most 1, got -1."),
        ("bisac/GatedHopper-v0", "wek=1", "unexpected keyword argument 'wek'"),
        ("bisac/Peeks-v0", "dims=1", "did you mean bisac/Peaks-v0"),
    ],
)
def test_arguments_are_refused_in_a_sentence(task, arg, message):
    with pytest.raises(BisacError) as refused:
        Task(task, (arg,)).make()
    assert message in str(refused.value)


@pytest.mark.parametrize("value", ["two", None, True, 1.5, [2]])
def test_values_of_another_kind_are_refused(value):
    """On the command line anything may be typed."""
    with pytest.raises(BisacError, match="dims must be a whole number from 1 to 8, got "):
        arguments.whole("dims", value, 1, 8)
    if value != 1.5:
        with pytest.raises(BisacError, match="width must be a number above 0 and at most 1, got "):
            arguments.number("width", value, 0, 1, above=True)
        with pytest.raises(BisacError, match="centre must be a number 0 or more, got "):
            arguments.number("centre", value, 0, float("inf"))


def test_flags_are_true_or_false():
    assert arguments.flag("crossed", True) is True
    with pytest.raises(BisacError, match="crossed must be true or false, got 'yes'"):
        arguments.flag("crossed", "yes")


def test_processes_of_their_own_find_the_tasks():
    task = Task("bisac/GatedPendulum-v0", ("weak=0.2", "g=9.81"))
    commands = np.random.default_rng(0).uniform(-1, 1, (5, 1, 1)).astype(np.float32)
    seen = []
    for backend in ("sync", "async"):
        envs = HostEnvs(task, 1, 0, backend)
        seen.append([envs.reset(), *(envs.step(command).next_obs for command in commands)])
        envs.close()
    np.testing.assert_array_equal(*seen)


def test_importing_bisac_registers_them_for_gymnasium_without_mujoco():
    code = (
        "import sys, bisac, gymnasium as gym; gym.make('bisac/Peaks-v0').reset(seed=0); print('mujoco' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
