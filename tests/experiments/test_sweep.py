"""Sweeps: what is begun, gone on with and left alone; and as a user meets them, in processes."""

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bisac.errors import BisacError
from bisac.experiments.plan import Plan, parse_contestant
from bisac.experiments.sweep import Progress, enrol, execute, progress_of, read_record, remaining_seconds
from bisac.training.run_dir import RunDir
from bisac.training.settings import TrainSettings, to_config

pytestmark = pytest.mark.xdist_group("cli")  # one worker, one cache of compiled programs

PLAN = Plan(
    ("Pendulum-v1",), (parse_contestant("sac"), parse_contestant("bisac")), (0, 1), TrainSettings(steps=100), {}
)


def pretend(run, step, seconds=None, policy=True):
    """A run folder that has come so far."""
    folder = RunDir(run.folder)
    run.folder.mkdir(parents=True, exist_ok=True)
    folder.write_config(to_config(run.env, run.algorithm, run.settings))
    folder.progress.write_text(f"step,wall_time,eval_return\n{step},{seconds or step / 10},1.5\n{step + 1},")
    if policy:
        folder.policy.write_bytes(b"")


class PretendEngine:
    """Ends each run at the next look; `codes` says how, by folder's last two names."""

    slots = 2

    def __init__(self, codes=(), on_start=None):
        self.codes, self.on_start, self.started, self.running, self.told = dict(codes), on_start, [], [], []

    def room(self):
        return len(self.running) < self.slots

    def start(self, run):
        self.started.append("/".join(run.folder.parts[-2:]))
        self.running.append(run)
        if self.on_start:
            self.on_start(self)

    def ended(self):
        ended = [(run, self.codes.get("/".join(run.folder.parts[-2:]), 0)) for run in self.running]
        for run, code in ended:
            pretend(run, 50 if code else 100)
        self.running = []
        return ended

    def stop(self, number):
        self.told.append(number)

    def close(self):
        self.told.append("closed")


class Silent:
    """Watches, and says nothing."""

    def started(self, run): ...

    def ended(self, run, progress, code): ...

    def show(self, watched): ...


def test_only_what_is_not_complete_is_run_and_a_failure_stops_nothing_else(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    pretend(runs[0], 100)
    pretend(runs[1], 100, policy=False)  # killed before it wrote its policy
    engine = PretendEngine({"bisac/seed0": 2})
    outcome = execute(runs, engine, Silent())
    assert engine.started == ["bisac/seed0", "sac/seed1", "bisac/seed1"]
    assert outcome.failed == {runs[1].folder: 2}
    assert outcome.complete == [runs[0], runs[2], runs[3]]
    again = PretendEngine()
    assert execute(runs, again, Silent()).failed == {}
    assert again.started == ["bisac/seed0"]


def test_signal_is_passed_on_and_nothing_more_is_started(tmp_path):
    engine = PretendEngine(on_start=lambda _: signal.raise_signal(signal.SIGTERM))
    outcome = execute(list(PLAN.runs(tmp_path)), engine, Silent())
    assert engine.started == ["sac/seed0"]
    assert outcome.stopped_by == signal.SIGTERM
    assert engine.told[-1] == "closed"


def test_progress_ignores_a_line_that_is_being_written(tmp_path):
    run = next(PLAN.runs(tmp_path))
    assert progress_of(run) == Progress(0, 0.0, None, None, False)
    pretend(run, 40, seconds=20.0)
    assert progress_of(run) == Progress(40, 20.0, 1.5, 2.0, False)


def test_remaining_time_is_what_steps_cost_so_far(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    told = {run.folder: progress_of(run) for run in runs}
    assert remaining_seconds(runs, told, 2) is None
    pretend(runs[0], 100, seconds=50.0)  # sac: half a second a step
    pretend(runs[1], 10, seconds=20.0)  # bisac: two
    told = {run.folder: progress_of(run) for run in runs}
    # 90 steps of bisac, 100 of sac, 100 of bisac.
    assert remaining_seconds(runs, told, 2) == pytest.approx((180 + 50 + 200) / 2)
    assert remaining_seconds(runs, told, 8) == pytest.approx(200)


def test_sweep_grows_but_does_not_change(tmp_path):
    enrol(PLAN, tmp_path)
    record = enrol(dataclasses.replace(PLAN, seeds=(2,), contestants=(parse_contestant("bisac:hidden=8x8"),)), tmp_path)
    assert record == read_record(tmp_path)
    assert [contestant.name for contestant in record.contestants] == ["sac", "bisac", "bisac-hidden=8x8"]
    assert ("Pendulum-v1", "bisac-hidden=8x8", 2) in record.runs
    assert len(record.runs) == 5  # what was asked for, not every combination
    with pytest.raises(BisacError, match="was begun with steps 100, now it is 200"):
        enrol(dataclasses.replace(PLAN, settings=TrainSettings(steps=200)), tmp_path)
    with pytest.raises(BisacError, match=r"was begun with gamma by default, now it is 0\.5"):
        enrol(dataclasses.replace(PLAN, hyperparameters={"gamma": 0.5}), tmp_path)


def test_foreign_run_in_the_folder_is_refused(tmp_path):
    run = next(PLAN.runs(tmp_path))
    run.folder.mkdir(parents=True)
    other = dataclasses.replace(run.algorithm, tau=0.5)
    RunDir(run.folder).write_config(to_config(run.env, other, run.settings))
    with pytest.raises(BisacError, match=r"sac/seed0 holds another run than the sweep's: tau is 0.005"):
        enrol(PLAN, tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "contestants": [1], "runs": []}'])
def test_damaged_record_is_told(text, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(BisacError, match="is damaged"):
        read_record(tmp_path)


# As a user meets it.

SMALL = [
    "--hidden",
    "8",
    "--batch-size",
    "8",
    "--replay-size",
    "2000",
    "--learning-starts",
    "100",
    "--eval-episodes",
    "1",
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("compiled"))
    unlike_tests = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"} | unlike_tests


def start(arguments, environment, cwd):
    command = [sys.executable, "-m", "bisac", *arguments]
    return subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def bisac(arguments, environment, cwd):
    with start(arguments, environment, cwd) as process:
        output, _ = process.communicate(timeout=240)
    return process.returncode, output


def until(holds):
    deadline = time.monotonic() + 100
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_sweep_is_stopped_killed_and_gone_on_with(environment, tmp_path):
    """Ctrl-C saves every run; kill -9 leaves none behind; run again, it ends as if nothing had happened."""
    sweep = ["sweep", "--env", "Pendulum-v1", "--algo", "sac", "--seeds", "0:1", "--eval-every", "250", "--steps",
             "3000", "--checkpoint-every", "500", *SMALL, "--out", "s"]  # fmt: skip
    run = RunDir(tmp_path / "s/Pendulum-v1/sac/seed0")

    with start(sweep, environment, tmp_path) as process:
        until(lambda: run.progress.exists() and run.progress.read_text().count("\n") > 1)
        code, said = bisac(sweep, environment, tmp_path)
        assert code == 2
        assert "another sweep runs in s" in said
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped, and saved" in output
    assert f"go on with    bisac {' '.join(sweep)}" in output
    before = run.progress.read_text()
    assert "stopped early and saved" in (run.path / "sweep.log").read_text()

    with start(sweep, environment, tmp_path) as process:
        until(lambda: run.progress.read_text().count("\n") > before.count("\n"))
        process.kill()
        process.wait()
    until(lambda: not trainers(run.path))

    code, output = bisac(sweep, environment, tmp_path)
    assert code == 0, output
    assert "1 of 1 runs complete in s" in output
    code, again = bisac(sweep, environment, tmp_path)
    assert code == 0
    assert "1 complete already" in again

    # Without the sweep, and never interrupted, it is the same run.
    config = json.loads(run.config.read_text())
    assert config["cores"] == 1
    code, _ = bisac(
        ["train", "Pendulum-v1", "--algo", "sac", "--eval-every", "250", "--steps", "3000", *SMALL, "--out", "alone"],
        environment,
        tmp_path,
    )
    assert code == 0
    alone = RunDir(tmp_path / "alone")
    assert without_clock(run.progress) == without_clock(alone.progress)
    if len(os.sched_getaffinity(0)) == 1:  # else the lone run had more cores
        assert run.policy.read_bytes() == alone.policy.read_bytes()


def trainers(folder):
    """Processes that train in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(str(folder.relative_to(folder.parents[3])).encode()) for word in words):
            found.append(path)
    return found


def without_clock(path):
    rows = csv.DictReader(path.read_text().splitlines())
    return [{name: value for name, value in row.items() if name != "wall_time"} for row in rows]


def test_plan_from_a_file_and_a_failed_run(environment, tmp_path):
    (tmp_path / "plan.toml").write_text(
        'env = ["Pendulum-v1"]\nalgo = ["ddpg", "td3"]\nseeds = "3"\nsteps = 300\nout = "s"\n'
        'hidden = [8]\nbatch_size = 8\nreplay_size = 2000\nlearning_starts = 100\neval_episodes = 1\neval_every = 100\n'
        'sweep = ["critic_lr=1e-3,1e-4"]\n'
    )  # fmt: skip
    code, output = bisac(["sweep", "plan.toml", "--dry-run"], environment, tmp_path)
    assert code == 0
    assert "ddpg-critic_lr=0.0001" in output
    assert not (tmp_path / "s").exists()
    code, output = bisac(["sweep", "plan.toml", "--algo", "sac:actor_lr=1e30", "ddpg"], environment, tmp_path)
    assert code == 1, output
    assert "training diverged" in output
    assert "2 of 4 runs complete" in output
    assert "2 failed" in output
    assert "s/Pendulum-v1/sac-actor_lr=1e+30-critic_lr=0.001/seed3" in output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--env", "Hoper-v5"], "did you mean Hopper-v5"),
        (["--algo", "sacc"], "there is no algorithm 'sacc'"),
        (["--algo", "sac", "sac"], "two contestants called sac"),
        (["--sweep", "epsilon=1"], "no algorithm of this sweep has the hyperparameter 'epsilon'"),
        (["--algo", "bisac:epsilon=1", "--sweep", "epsilon=2"], "bisac-epsilon=1 sets epsilon itself"),
        (["--seeds", "x"], "--seeds must be like 0:5"),
        (["--jobs", "0"], "must be at least 1"),
        (["--address", "here"], "--address is for --engine ray"),
    ],
)
def test_bad_input_is_told_before_anything_runs(arguments, problem, tmp_path, capsys):
    from bisac.cli import run

    known = ["--env", "Pendulum-v1", "--algo", "sac", "--steps", "10", "--out", str(tmp_path / "s")]
    assert run(["sweep", *known, *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "s").exists()
