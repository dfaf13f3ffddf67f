import sys
from collections import OrderedDict

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium import spaces
from probe_envs import Probe, Shaped

from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import PAPER_TASKS, Task, to_args
from bisac.errors import BisacError
from bisac.types import Spec


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_task_of_the_paper_can_be_stepped(task):
    envs = HostEnvs(Task(task), 1, seed=0)
    assert envs.reset().shape == (1, envs.spec.obs_dim)
    result = envs.step(np.zeros((1, envs.spec.action_dim), np.float32))
    assert result.next_obs.dtype == np.float32
    envs.close()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Hoper-v5", "did you mean Hopper-v5"),
        ("no_such_package:Env-v0", "no_such_package"),
        ("CartPole-v1", "continuous actions"),
        (lambda: Shaped(action_space=spaces.Box(-np.inf, np.inf, (2,))), "unbounded action space"),
        (lambda: Shaped(action_space=spaces.Box(0, 5, (2,), np.int64)), "continuous actions"),
        (lambda: Shaped(observation_space=spaces.Box(0, 255, (8, 8, 3), np.uint8)), "observes images"),
        (lambda: Shaped(action_space=spaces.Box(-3e38, 3e38, (1,))), "too wide for float32"),
        (lambda: Shaped(observation_space=spaces.Sequence(spaces.Box(-1, 1, (2,)))), "no fixed size; wrap it"),
    ],
)
def test_unusable_environments_are_refused(source, message):
    with pytest.raises(BisacError, match=message):
        Task(source).make()


@pytest.mark.parametrize(
    ("space", "order"),
    [
        (spaces.Dict({"b": spaces.Box(-1, 1, (2, 2)), "a": spaces.Box(-1, 1, (3,))}), "ab"),  # Gymnasium sorts a dict
        (spaces.Dict(OrderedDict(b=spaces.Box(-1, 1, (2, 2)), a=spaces.Box(-1, 1, (3,)))), "ba"),
    ],
)
def test_dict_observations_are_flattened_in_the_spaces_own_order(space, order):
    task = Task(lambda: Shaped(observation_space=space))
    env = task.make()
    assert task.spec(env).obs_dim == 7
    raw = space.sample()
    flat = env.observation(raw)  # pyright: ignore
    np.testing.assert_array_equal(flat, np.concatenate([raw[key].ravel() for key in order]))


def test_observations_of_float64_become_float32():
    wide = spaces.Box(-1, 1, (2, 3), np.float64)
    envs = HostEnvs(Task(lambda: Shaped(observation_space=wide)), 1, seed=0)
    assert envs.reset().dtype == np.float32
    result = envs.step(np.zeros((1, 2), np.float32))
    assert result.next_obs.dtype == result.obs.dtype == np.float32
    assert result.next_obs.shape == (1, 6)


def test_arguments_reach_the_environment():
    task = Task("Hopper-v5", ("max_episode_steps=7", "reset_noise_scale=0", "healthy_z_range=[0.5, 9]"))
    env = task.make()
    assert env.spec is not None
    assert env.spec.max_episode_steps == 7
    assert env.unwrapped._healthy_z_range == [0.5, 9]  # pyright: ignore
    np.testing.assert_array_equal(env.reset(seed=0)[0], env.reset(seed=1)[0])
    assert task.spec(env).env_args == task.args


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", 1), ("0.5", 0.5), ("[1, 2]", [1, 2]), ("null", None), ("fast", "fast"), ('"1"', "1"),
     ("", ""), ("a=b", "a=b")],
)  # fmt: skip
def test_values_are_json_where_that_works(text, value):
    assert Task("Env-v0", (f"key={text}",)).kwargs == {"key": value}


def test_pythons_arguments_survive_being_typed():
    kwargs = {"a": True, "b": "true", "c": [1, 2.5], "d": "x", "e": None}
    assert Task("Env-v0", to_args(kwargs)).kwargs == kwargs
    with pytest.raises(BisacError, match="a function that makes the environment"):
        to_args({"a": np.zeros(2)})


def test_the_last_argument_of_a_key_counts():
    assert Task("Env-v0", ("a=1", "b=2", "a=3")).kwargs == {"a": 3, "b": 2}


@pytest.mark.parametrize("arg", ["gravity", "=1", " =1"])
def test_arguments_need_a_key_and_a_value(arg):
    with pytest.raises(BisacError, match="must be key=value"):
        Task("Hopper-v5", (arg,))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense=1",), r"'Hopper-v5' cannot be made with nonsense=1: .*unexpected keyword argument 'nonsense'"),
        (("xml_file=/nowhere.xml",), r"cannot be made with xml_file=/nowhere.xml: .*nowhere"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args, message):
    with pytest.raises(BisacError, match=message):
        Task("Hopper-v5", args).make()


def test_functions_take_no_arguments():
    with pytest.raises(BisacError, match="environment arguments are for an id"):
        Task(Probe, ("a=1",))


def test_specs_without_arguments_are_read():
    fields = {"env_id": "Env-v0", "obs_dim": 1, "action_low": [-1], "action_high": [1]}
    assert Spec.from_json(fields).env_args == ()
    assert Spec.from_json(fields | {"env_args": ["a=1"]}).env_args == ("a=1",)


def test_registered_environments_of_a_user_work():
    gym.register("UserCounter-v0", entry_point="probe_envs:Counter", max_episode_steps=3)
    try:
        assert HostEnvs(Task("UserCounter-v0"), 1, seed=0).spec.env_id == "UserCounter-v0"
    finally:
        gym.registry.pop("UserCounter-v0")


def test_a_package_registers_its_environments_when_named(tmp_path, monkeypatch):
    code = "import gymnasium\ngymnasium.register('OwnCounter-v0', entry_point='probe_envs:Counter')\n"
    (tmp_path / "own_package.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        task = Task("own_package:OwnCounter-v0")
        assert task.spec(task.make()).env_id == "own_package:OwnCounter-v0"
    finally:
        gym.registry.pop("OwnCounter-v0", None)
        sys.modules.pop("own_package", None)


def test_the_control_suite_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    with pytest.raises(BisacError, match=r"pip install '\.\[dm-control\]'"):
        Task("dm_control/cheetah-run-v0").make()


def test_shimmy_registers_the_control_suite(tmp_path, monkeypatch):
    """MuJoCo's present version is too new for dm_control: two modules stand in for it and for shimmy."""
    code = "import gymnasium\ngymnasium.register('dm_control/probe-count-v0', entry_point='probe_envs:Counter')\n"
    (tmp_path / "shimmy.py").write_text(code)
    (tmp_path / "dm_control.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("shimmy", "dm_control"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        assert HostEnvs(Task("dm_control/probe-count-v0"), 1, seed=0).spec.obs_dim == 1
    finally:
        gym.registry.pop("dm_control/probe-count-v0", None)
        sys.modules.pop("shimmy", None)
        sys.modules.pop("dm_control", None)


def test_mujoco_warns_once_and_of_what_matters(tmp_path, monkeypatch, capfd):
    """HalfCheetah's model, Gymnasium's own, has a word that MuJoCo deprecates."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        Task("HalfCheetah-v5").make().close()
    warn = mujoco.get_mju_user_warning()
    for text in ("the simulation is unstable", "the simulation is unstable"):
        warn(text)
    assert capfd.readouterr() == ("", "MuJoCo: the simulation is unstable\n")
    assert not list(tmp_path.iterdir())
