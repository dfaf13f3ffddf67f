"""Environments in processes of their own: what may go wrong there must end, and be told, here."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing

import gymnasium as gym
import numpy as np
import psutil
import pytest
from gymnasium import spaces
from probe_envs import Counter, Probe, Shaped

from bisac.envs.host import asynchronous
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task
from bisac.errors import BisacError

STILL = np.zeros((2, 2), np.float32)


def async_envs(source, args=()):
    return closing(HostEnvs(Task(source, args), 2, 0, "async"))


def test_workers_know_neither_jax_nor_bisac():
    class Confesses(Probe):
        def first_state(self):
            return float("jax" in sys.modules or "bisac" in sys.modules)

    with async_envs(Confesses) as envs:
        np.testing.assert_array_equal(envs.reset(), 0.0)


def test_ids_that_only_this_process_registered_work_with_their_arguments():
    class Starts(Probe):
        def __init__(self, at):
            self.at = at

        def first_state(self):
            return self.at

    gym.register("Starts-v0", entry_point=Starts)
    try:
        with async_envs("Starts-v0", ("at=3",)) as envs:
            np.testing.assert_array_equal(envs.reset(), 3.0)
    finally:
        gym.registry.pop("Starts-v0")


@pytest.mark.parametrize("registered", [True, False])
def test_observations_are_flattened_there_too(registered):
    space = spaces.Dict({"b": spaces.Box(-1, 1, (2, 2)), "a": spaces.Box(-1, 1, (3,))})
    gym.register("Shaped-v0", entry_point=lambda: Shaped(space))
    try:
        with async_envs("Shaped-v0" if registered else lambda: Shaped(space)) as envs:
            assert envs.reset().shape == (2, 7)
    finally:
        gym.registry.pop("Shaped-v0")


def test_functions_that_cannot_be_sent_are_refused():
    lock = threading.Lock()

    def locked():
        with lock:
            return Counter()

    with pytest.raises(BisacError, match=r"Counter cannot be sent to a process of its own .*use --backend sync\.$"):
        HostEnvs(Task(locked), 2, 0, "async")


def test_what_an_environment_raises_is_told_and_that_it_was_long_silent(monkeypatch):
    class Raises(Counter):
        def step(self, action):
            time.sleep(0.3)
            raise ValueError("the arm is stuck")

    with async_envs(Raises) as envs:
        envs.reset()
        monkeypatch.setattr(asynchronous, "PATIENCE", 0.05)
        told = r"Raises \(copy 0\) failed: ValueError: the arm is stuck \(.*, line \d+\)"
        silent = r"Raises \(copy 0\) has not answered for 0 s\."
        with pytest.raises(BisacError, match=told), pytest.warns(UserWarning, match=silent):
            envs.step(STILL)


def test_what_an_environment_raises_when_made_is_told():
    here = os.getpid()

    def fails():
        if os.getpid() != here:
            raise OSError("no licence for a second copy")
        return Counter()

    with pytest.raises(BisacError, match=r"Counter \(copy 0\) failed: OSError: no licence for a second copy"):
        HostEnvs(Task(fails), 2, 0, "async")
    assert not workers_of(os.getpid())


@pytest.mark.parametrize(("end", "how"), [(lambda: os.kill(os.getpid(), 9), "signal 9"), (lambda: os._exit(3), "3")])
def test_a_worker_that_dies_is_told(end, how):
    class Dies(Counter):
        def step(self, action):
            end()

    with async_envs(Dies) as envs:
        envs.reset()
        with pytest.raises(BisacError, match=rf"Dies \(copy 0\) is gone: its process ended with .*{how}\."):
            envs.step(STILL)


def test_a_worker_that_died_between_steps_is_told():
    with async_envs(Counter) as envs:
        envs.reset()
        victim = envs.backend.workers[1].process
        victim.kill()
        victim.wait()
        with pytest.raises(BisacError, match=r"Counter \(copy 1\) is gone: its process ended with signal 9\."):
            envs.step(STILL)


def test_workers_leave_signals_to_their_parent():
    with async_envs(Counter) as envs:
        envs.reset()
        for each in envs.backend.workers:
            each.process.send_signal(signal.SIGINT)
            each.process.send_signal(signal.SIGTERM)
        assert envs.step(STILL).next_obs.tolist() == [[1.0], [1.0]]


def test_closing_closes_the_environments_and_ends_even_those_that_hang(tmp_path, monkeypatch):
    monkeypatch.setattr("bisac.envs.host.asynchronous.GRACE", 2.0)
    folder = str(tmp_path)

    class Leaves(Counter):
        def close(self):
            open(f"{folder}/{os.getpid()}", "w").close()
            time.sleep(60)

    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: None)  # the copy that only told its sizes is closed here
        envs = HostEnvs(Task(Leaves), 2, 0, "async")
    processes = [each.process for each in envs.backend.workers]
    envs.close()
    assert {int(path.name) for path in tmp_path.iterdir()} == {parent, *(process.pid for process in processes)}
    assert [process.returncode for process in processes] == [-9, -9]


def test_a_killed_parent_leaves_no_workers_behind(tmp_path):
    """A script without the guard that multiprocessing asks for, with its environment's class in it."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import time
        import numpy as np
        from probe_envs import Counter
        from bisac.envs.host.envs import HostEnvs
        from bisac.envs.task import Task
        class Own(Counter):
            pass
        envs = HostEnvs(Task(Own), 2, 0, "async")
        envs.reset()
        print("ready", flush=True)
        time.sleep(60)
        """)
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment)
    with parent:
        assert parent.stdout
        assert parent.stdout.readline() == "ready\n"
        orphans = workers_of(parent.pid)
        assert len(orphans) == 2
        parent.kill()
    assert psutil.wait_procs(orphans, timeout=10)[1] == []


def workers_of(pid):
    return [child for child in psutil.Process(pid).children() if any("worker.py" in word for word in child.cmdline())]


def test_mujoco_is_quiet_there_too(tmp_path, monkeypatch, capfd):
    """HalfCheetah's model, Gymnasium's own, has a word that MuJoCo deprecates, and tells it in a file too."""
    monkeypatch.chdir(tmp_path)
    with async_envs("HalfCheetah-v5") as envs:
        envs.reset()
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())
