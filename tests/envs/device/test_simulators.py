"""Brax's and Playground's tasks, where they are installed: `make test-device`."""

import warnings

import jax
import numpy as np
import pytest
from small_runs import fingerprint

import bisac
from bisac.collect.dispatch import random_return
from bisac.envs.device.sources import FAMILIES, device_task
from bisac.runs.events import Saved
from bisac.runs.settings import Settings
from bisac.runs.start import start

pytestmark = [pytest.mark.device, pytest.mark.filterwarnings("ignore")]

SHORT = "max_episode_steps=10"
SETTINGS = dict(steps=120, num_envs=4, eval_every=60, eval_episodes=2, checkpoint_every=40)


@pytest.fixture(autouse=True)
def as_simulators_expect():
    """They mix dtypes and ranks more freely than our own code does in tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize(
    ("name", "args", "sizes"),
    [
        ("brax/inverted_pendulum", ("backend=spring",), (4, 1)),
        ("brax/inverted_pendulum", ("backend=mjx",), (4, 1)),
        ("brax/hopper", ("backend=generalized",), (11, 3)),
        ("playground/CartpoleBalance", (), (5, 1)),
    ],
)
def test_simulators_tasks_are_played(name, args, sizes):
    task = device_task(name, (*args, SHORT))
    assert (task.spec.obs_dim, task.spec.action_dim, task.limit) == (*sizes, 10)
    assert np.isfinite(random_return(name, (*args, SHORT)))


def test_names_are_those_of_the_simulators():
    from brax import envs
    from mujoco_playground import dm_control_suite

    assert set(FAMILIES["brax"].names) == set(envs._envs) - {"fast"}
    assert set(FAMILIES["playground"].names) == set(dm_control_suite.ALL_ENVS)


def test_a_run_in_brax_resumes_to_the_bit(tmp_path):
    algo = bisac.api.make_algorithm("td3", dict(hidden=(8,), batch_size=16, learning_starts=20, replay_size=200))
    args = ("backend=spring", SHORT)

    def events(out):
        return start("brax/inverted_pendulum", algo, Settings(**SETTINGS, out=out, env_arg=args))

    list(events(tmp_path / "whole"))
    for event in events(tmp_path / "torn"):
        if isinstance(event, Saved) and event.step >= 40:
            break
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bisac.resume(tmp_path / "torn", verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize(
    ("name", "args", "sentence"),
    [
        ("brax/hoper", (), "there is no task 'brax/hoper'; did you mean brax/hopper"),
        ("brax/hopper", ("backend=flat",), "backend must be one of generalized, mjx, positional, spring, got 'flat'"),
        ("brax/hopper", ("wings=2",), "brax/hopper cannot be made with wings=2"),
        ("playground/CheetahRun", ("wings=2",), "playground/CheetahRun cannot be made: .*wings"),
    ],
)
def test_mistakes_are_told_in_a_sentence(name, args, sentence):
    with pytest.raises(bisac.BisacError, match=sentence):
        device_task(name, args)
