"""EnvPool on its own Hopper: the semantics of the other backends."""

import sys
from contextlib import closing

import envpool
import numpy as np
import pytest
from probe_envs import Counter

from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import PAPER_TASKS, Task
from bisac.errors import BisacError


def trajectory(task, count, seed, steps):
    with closing(HostEnvs(task, count, seed, "envpool")) as envs:
        first = envs.reset()
        actions = np.random.default_rng(0).uniform(-1, 1, (steps, count, envs.spec.action_dim)).astype(np.float32)
        return first, [envs.step(action) for action in actions]


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_task_of_the_paper_is_gymnasiums(task):
    with closing(HostEnvs(Task(task), 1, 0, "envpool")) as envs, closing(HostEnvs(Task(task), 1, 0)) as gymnasiums:
        assert envs.spec == gymnasiums.spec
        assert envs.reset().shape == gymnasiums.reset().shape


def test_fallen_hoppers_keep_their_last_observation():
    obs, steps = trajectory(Task("Hopper-v5"), 4, 0, 300)
    ended = 0
    for result in steps:
        assert result.next_obs.dtype == result.obs.dtype == result.reward.dtype == np.float32
        assert np.isfinite(result.reward).all()
        begun = (result.obs != result.next_obs).any(axis=1)
        np.testing.assert_array_equal(begun, result.terminated)  # 1,000 steps, the time's limit, are not reached
        assert len(result.finished) == begun.sum()
        # A first observation is within 0.005 of standing upright, unlike that of one who fell; steps are small.
        upright = np.abs(result.obs - [1.25, *[0] * 10]).max(axis=1) < 0.01
        assert upright[begun].all()
        fallen = (result.next_obs[:, 0] < 0.7) | (np.abs(result.next_obs[:, 1]) > 0.2)
        np.testing.assert_array_equal(fallen, result.terminated)
        assert (np.abs(result.next_obs[:, 0] - obs[:, 0]) < 0.1).all()
        ended += int(begun.sum())
        obs = result.obs
    assert ended > 20


def test_time_runs_out_without_an_end():
    args = ("max_episode_steps=20", "terminate_when_unhealthy=false")
    _, steps = trajectory(Task("Hopper-v5", args), 3, 0, 60)
    assert not np.any([result.terminated for result in steps])
    finished = [i for i, result in enumerate(steps, 1) if result.finished]
    assert finished == [20, 40, 60]
    assert [episode.length for episode in steps[19].finished] == [20, 20, 20]
    assert (steps[19].obs != steps[19].next_obs).any(axis=1).all()


def test_seeds_repeat_a_run():
    (first, steps), (again, _), (other, _) = (trajectory(Task("Hopper-v5"), 2, seed, 50) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(axis=1).all()
    assert (first[0] != first[1]).any()
    np.testing.assert_array_equal(steps[-1].obs, trajectory(Task("Hopper-v5"), 2, 0, 50)[1][-1].obs)


def test_a_restored_run_begins_new_episodes():
    with closing(HostEnvs(Task("Hopper-v5"), 2, 0, "envpool")) as envs:
        first = envs.reset()
        obs = envs.step(np.zeros((2, 3), np.float32)).obs
        saved = envs.steps, envs.started, envs.episodes
    with closing(HostEnvs(Task("Hopper-v5"), 2, 0, "envpool")) as again:
        restored = obs.copy()
        assert again.restore(*saved, restored) == [0, 1]
        assert (restored != obs).any(axis=1).all()
        assert (restored != first).any(axis=1).all()
        again.step(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(
    ("source", "args", "message"),
    [
        ("Hoper-v5", (), r"EnvPool has no environment 'Hoper-v5'; did you mean .*Hopper-v5"),
        ("HopperHop-v1", (), r"evaluates in Gymnasium's environment of the same id: there is no environment 'HopperH"),
        ("CartPole-v1", (), "continuous actions"),
        ("Hopper-v5", ("healthy_z_range=[0.5, 9]",), r"EnvPool cannot make 'Hopper-v5' with healthy_z_range=.*unexp"),
        (Counter, (), "not a function"),
    ],
)
def test_what_envpool_cannot_do_is_told(source, args, message):
    with pytest.raises(BisacError, match=message):
        HostEnvs(Task(source, args), 1, 0, "envpool")


def test_an_environment_that_is_not_gymnasiums_is_refused(monkeypatch):
    walker = envpool.make_spec("Walker2d-v5")
    monkeypatch.setattr(envpool, "make_spec", lambda _: walker)
    with pytest.raises(BisacError, match=r"EnvPool's 'Hopper-v5' is not Gymnasium's: Spec\(.*obs_dim=17.*obs_dim=11"):
        HostEnvs(Task("Hopper-v5"), 1, 0, "envpool")


def test_envpool_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(BisacError, match=r"pip install '\.\[envpool\]'"):
        HostEnvs(Task("Hopper-v5"), 1, 0, "envpool")
