"""Another place of environments needs a collector and no more: sessions, logs and checkpoints serve it as it is."""

import signal
import subprocess
import sys
from contextlib import closing

import numpy as np
import point_mass
import pytest
from point_mass import PointMass
from small_runs import Crash, fingerprint

import bisac
from bisac.algos import SAC
from bisac.runs.events import Evaluated, Finished, Saved, Started, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.runs.resume import resume
from bisac.runs.run import Run
from bisac.runs.settings import Settings
from bisac.runs.start import start

ALGO = dict(hidden=(16, 16), batch_size=32, learning_starts=64, replay_size=400, critic_norm="none", gamma=0.9)
SETTINGS = dict(steps=480, num_envs=4, eval_every=160, eval_episodes=4, checkpoint_every=80)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    out = tmp_path_factory.mktemp("device") / "run"
    bisac.train(PointMass(), algo="sac", seed=3, out=out, verbose=False, **SETTINGS, **ALGO)
    return out


def test_device_run_leaves_what_every_run_leaves(straight):
    rows = read_log(RunFolder(straight))
    assert [row["step"] for row in rows] == [160, 320, 480]
    assert all(row["episode_length"] == point_mass.EPISODE for row in rows)
    assert bisac.load(straight).predict(np.zeros(2))[0].shape == (1,)
    assert sorted(path.name for path in (straight / "checkpoints").glob("step-*")) == [
        "step-000000000400",
        "step-000000000480",
    ]


def test_device_run_learns(tmp_path):
    longer = SETTINGS | {"steps": 3200, "eval_every": 1600, "checkpoint_every": 0, "eval_episodes": 16}
    algo = SAC(**ALGO | {"hidden": (32, 32), "replay_size": 4000, "actor_lr": 3e-3, "temperature": 0.01})
    *_, finished = start(PointMass(), algo, Settings(**longer, seed=0, out=tmp_path / "run"))
    # Resting wherever the episode begins costs the mean of 20 x^2: 6.7.
    assert finished.outcomes[0].rows[-1]["eval_return"] > -4.0


def test_killed_device_run_is_resumed_to_the_bit(straight, tmp_path):
    code = f"""
import os, signal, bisac
from point_mass import PointMass, PointMassCollector
advance = PointMassCollector.advance
def dying(self, state, until):
    if state.step >= 250:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self, state, until)
PointMassCollector.advance = dying
bisac.train(PointMass(), algo="sac", seed=3, out={str(tmp_path / "torn")!r}, verbose=False, **{SETTINGS!r}, **{ALGO!r})
"""
    process = subprocess.run([sys.executable, "-c", code], cwd=point_mass.__file__.rpartition("/")[0], check=False)
    assert process.returncode == -signal.SIGKILL
    bisac.resume(tmp_path / "torn", env=PointMass(), verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(straight)


def test_runs_side_by_side_have_a_folder_each_and_go_on_together(straight, tmp_path):
    def events(out):
        return start(PointMass(), SAC(**ALGO), Settings(**SETTINGS, out=out), seeds=[3, 4])

    *told, finished = events(tmp_path / "whole")
    assert isinstance(finished, Finished)
    assert [outcome.folder.path.name for outcome in finished.outcomes] == ["seed3", "seed4"]
    assert [(event.run, event.step) for event in told if isinstance(event, Evaluated)] == [
        (run, step) for step in (160, 320, 480) for run in (0, 1)
    ]
    rows = [read_log(RunFolder(tmp_path / "whole" / f"seed{seed}")) for seed in (3, 4)]
    assert rows[0][-1]["eval_return"] != rows[1][-1]["eval_return"]
    # The run of seed 3 is the one that it is alone, but for the order of sums in a batched product.
    alone = read_log(RunFolder(straight))
    assert rows[0][0]["critic_loss"] == pytest.approx(alone[0]["critic_loss"], rel=1e-3)

    with closing(events(tmp_path / "torn")) as torn:
        for event in torn:
            if isinstance(event, Saved) and event.step >= 240:
                break
    folders = [tmp_path / "torn" / f"seed{seed}" for seed in (3, 4)]
    began = [event for event in resume(folders, source=PointMass()) if isinstance(event, Started)]
    assert began[0].step == 240
    for seed in (3, 4):
        assert fingerprint(tmp_path / "torn" / f"seed{seed}") == fingerprint(tmp_path / "whole" / f"seed{seed}")


@pytest.mark.parametrize("torn", ["before the first save", "a disk that failed for one of them"])
def test_runs_side_by_side_meet_again(torn, tmp_path, monkeypatch):
    def events(out):
        return start(PointMass(), SAC(**ALGO), Settings(**SETTINGS, out=out), seeds=[3, 4])

    save, saves = Run.save, []

    def failing(self, snapshot, *rest):
        saves.append(snapshot.step)
        if torn.startswith("before") and len(saves) == 2:
            raise Crash
        if torn.startswith("a disk") and self.settings.seed == 4 and snapshot.step > 80:
            if snapshot.step > 240:
                raise Crash
            return [Warned("no space")]
        return save(self, snapshot, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", failing)
        with pytest.raises(Crash):
            list(events(tmp_path / "torn"))
    folders = [tmp_path / "torn" / f"seed{seed}" for seed in (3, 4)]
    began = [event.step for event in resume(folders, source=PointMass()) if isinstance(event, Started)]
    assert began == [0 if torn.startswith("before") else 80]
    list(events(tmp_path / "whole"))
    for seed in (3, 4):
        assert fingerprint(tmp_path / "torn" / f"seed{seed}") == fingerprint(tmp_path / "whole" / f"seed{seed}")


def test_source_with_a_collector_refuses_what_it_cannot_use(tmp_path):
    for bad, sentence in (
        (dict(env=PointMass), "PointMass is a class; give one of its instances"),
        (dict(env=PointMass(), backend="async"), "takes neither environment arguments nor a backend"),
        (dict(env=PointMass(), env_args={"g": 1}), "takes neither environment arguments nor a backend"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            bisac.train(algo="sac", out=tmp_path / "run", verbose=False, **SETTINGS, **ALGO, **bad)


def test_breaking_off_an_iteration_leaves_the_run_saved(straight, tmp_path):
    settings = Settings(**SETTINGS, seed=3, out=tmp_path / "run")
    for event in start(PointMass(), SAC(**ALGO), settings):
        if isinstance(event, Evaluated):
            break
    assert bisac.load(tmp_path / "run")
    *_, finished = resume([tmp_path / "run"], source=PointMass())
    assert finished.outcomes[0].stopped_by is None
    assert fingerprint(tmp_path / "run") == fingerprint(straight)
