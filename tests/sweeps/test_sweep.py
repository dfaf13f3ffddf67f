"""Sweeps as a user meets them: commands in processes, on this machine and on a Ray cluster."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from bisac.cli import run
from bisac.cli.arguments import from_file
from bisac.cli.sweep import parse_sweep
from bisac.errors import BisacError
from bisac.runs.folder import RunFolder
from bisac.storage import exclusive
from bisac.sweeps.record import read_record

PLAN_FILE = """
env = ["Pendulum-v1"]
algo = ["sac"]
critic-norm = "none"
seeds = "0:2"
steps = 4000
eval-every = 500
eval-episodes = 1
checkpoint-every = 500
hidden = [8]
batch-size = 16
replay-size = 4000
learning-starts = 100
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """One cache of compiled programs for all processes."""
    cache = str(tmp_path_factory.mktemp("compiled"))
    return os.environ | {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "plan.toml").write_text(PLAN_FILE)
    return folder


def start(arguments, environment, cwd):
    command = [sys.executable, "-m", "bisac", "sweep", *arguments]
    return subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


def finish(process):
    with process:
        output, _ = process.communicate(timeout=300)
    return process.returncode, output


def until(holds):
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(run_folder):
    return run_folder.progress.read_text().count("\n") if run_folder.progress.exists() else 0


@pytest.fixture(scope="module")
def swept(environment, folder):
    """Exit code, output, folder and the addresses at which it listened, of a sweep that nobody interrupted."""
    process, listened = start(["plan.toml", "--out", "local"], environment, folder), set()
    while process.poll() is None:
        listened |= listening(process.pid)
        time.sleep(0.2)
    return *finish(process), folder / "local", listened


def listening(pid):
    """The addresses at which a process and those that it started wait for others to connect."""
    found = set()
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found |= {each.laddr for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN}
    return found


def test_nobody_can_connect_to_a_sweep_or_its_runs(swept):
    assert swept[3] == set()
    with socket.create_server(("127.0.0.1", 0)) as server:  # it would be seen
        assert server.getsockname() in {tuple(address) for address in listening(os.getpid())}


def test_sweep_trains_what_the_file_says(swept):
    code, output, out, _ = swept
    assert code == 0, output
    assert "2 of 2 runs complete in local" in output
    for seed in range(2):
        run_folder = RunFolder(out / f"Pendulum-v1/sac/seed{seed}")
        assert run_folder.policy.exists()
        config = json.loads(run_folder.config.read_text())
        assert config["hyperparameters"]["hidden"] == [8]
        assert (config["run"]["seed"], config["run"]["steps"]) == (seed, 4000)
        assert config["cores"] == 1  # pinned
        assert f"Pendulum-v1 sac seed {seed}: done, return" in output


def test_killed_sweep_leaves_nobody_behind_and_a_stopped_one_saves(environment, folder):
    arguments = ["plan.toml", "--out", "stopped", "--seeds", "0:1", "--steps", "100000"]
    run_folder = RunFolder(folder / "stopped/Pendulum-v1/sac/seed0")
    with start(arguments, environment, folder) as process:
        until(lambda: rows(run_folder) > 2)  # the heading, the evaluation before the first step, and one more
        process.kill()
    until(lambda: not trainers(run_folder.path))
    before = rows(run_folder)

    with start(arguments, environment, folder) as process:
        until(lambda: rows(run_folder) > before)
        process.send_signal(signal.SIGINT)
        code, output = finish(process)
    assert code == 130
    assert "stopped, and saved" in output
    assert f"go on with    bisac sweep {' '.join(arguments)}" in output
    log = (run_folder.path / "sweep.log").read_text()
    assert "going on from step" in log
    assert log.count("stopped early and saved") == 2  # by the death of the first sweep, and by the second one's word
    assert trainers(run_folder.path) == []


def trainers(folder):
    """Processes that have a folder among their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended since
            continue
        found += [words for word in words if word and str(folder).endswith(f"/{word}")]
    return found


def without_clock(path):
    table = csv.DictReader(path.read_text().splitlines())
    return [{name: value for name, value in row.items() if name != "wall_time"} for row in table]


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_run_of_a_lost_ray_node_goes_on_elsewhere_to_the_same_end(swept, environment, folder, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")
    # Ray holds its workers back (nice), and on a busy machine they would take minutes.
    for name, value in (environment | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}).items():
        monkeypatch.setenv(name, value)
    from ray.cluster_utils import Cluster

    quick = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}  # to notice that a node is lost
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        lost = cluster.add_node(num_cpus=1)
        run_folders = [RunFolder(folder / f"ray/Pendulum-v1/sac/seed{seed}") for seed in range(2)]
        arguments = ["plan.toml", "--out", "ray", "--engine", "ray", "--address", cluster.address]
        with start(arguments, environment, folder) as process:
            until(
                lambda: any(rows(run_folder) > 1 and trains_below(lost, run_folder.path) for run_folder in run_folders)
            )
            cluster.remove_node(lost, allow_graceful=False)
            code, output = finish(process)
    finally:
        cluster.shutdown()
    assert code == 0, output
    assert output.count("its worker was lost; it goes on elsewhere") == 1
    assert "2 of 2 runs complete" in output
    starts = [(run_folder.path / "sweep.log").read_text().count("run folder: ") for run_folder in run_folders]
    assert sorted(starts) == [1, 2]  # or the node was not lost in the middle
    for run_folder in run_folders:
        local = RunFolder(swept[2] / run_folder.path.relative_to(folder / "ray"))
        assert without_clock(run_folder.progress) == without_clock(local.progress)
        assert run_folder.policy.read_bytes() == local.policy.read_bytes()


@pytest.mark.ray
def test_a_signal_to_all_processes_saves_the_runs_of_a_ray_cluster(environment, folder):
    """As `timeout` and batch systems send it: Ray's own processes hear it too."""
    arguments = ["plan.toml", "--out", "all", "--seeds", "0:1", "--steps", "100000", "--engine", "ray"]
    run_folder = RunFolder(folder / "all/Pendulum-v1/sac/seed0")
    with start(arguments, environment | {"RAY_worker_niceness": "0"}, folder) as process:
        until(lambda: rows(run_folder) > 2)
        os.killpg(process.pid, signal.SIGTERM)
        code, output = finish(process)
    assert code == 143, output
    assert f"go on with    bisac sweep {' '.join(arguments)}" in output
    assert "stopped early and saved" in (run_folder.path / "sweep.log").read_text()
    assert trainers(run_folder.path) == []


def trains_below(node, folder):
    """Whether a process of a Ray node trains in a folder."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return any(str(folder) in process.cmdline() for process in raylet.children(recursive=True) if process.is_running())


def test_folder_of_a_running_sweep_is_refused(tmp_path, capsys):
    known = ["--env", "Pendulum-v1", "--algo", "sac", "--steps", "10", "--out", str(tmp_path)]
    with exclusive(tmp_path, ""):
        assert run(["sweep", *known]) == 2
    assert f"another sweep runs in {tmp_path}" in "".join(capsys.readouterr().err.splitlines())


def test_dry_run_prints_the_plan_and_leaves_nothing(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    swept = ["--sweep", "critic_lr=1e-3,1e-4", "--num-envs", "3"]
    assert run(["sweep", "plan.toml", "--out", "dry", *swept, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "steps; num_envs 3" in said
    assert "sac-critic_lr=0.001, sac-critic_lr=0.0001" in said
    assert "4; " in said
    assert not (folder / "dry").exists()


def test_recorded_command_needs_no_file(swept):
    [command] = read_record(swept[2]).commands
    assert "plan.toml" not in command
    known, plan = parse_sweep(command[2:])
    assert (plan.seeds, plan.hyperparameters["hidden"], str(known.out)) == ((0, 1), (8,), "local")


def test_values_of_a_file(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("seeds = [1, 3]\nnormalise_rewards = false\nanneal = true\ndry-run = false\nencoder = []\n")
    words = ["--env", "Pendulum-v1", "--algo=ppo", "--steps", "10", "--out", "x", *from_file(path)[:-1]]
    _, plan = parse_sweep(words)
    assert plan.seeds == (1, 3)
    assert plan.hyperparameters == {"normalise_rewards": False, "anneal": True}
    assert from_file(path)[-1] == "--encoder"
    path.write_text('seeds = "0:5"\nnum_envs = 8\nenv_arg = ["a=1"]\n')
    after = ["--seeds", "5:9", "--num-envs=4", "--env-arg", "b=2"]
    assert from_file(path, after) == ["--env-arg", "a=1"]
    path.write_text("[table]\nx = 1\n")
    with pytest.raises(BisacError, match=r"\[table\] is a table"):
        from_file(path)


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
        (["--checkpoint-every", "0"], "--checkpoint-every must be at least 1 here"),
        (["--address", "here"], "--address is for --engine ray"),
        (["plan.toml"], "a file of flags comes first"),
    ],
)
def test_bad_input_is_told_before_anything_runs(arguments, problem, tmp_path, capsys):
    known = ["--env", "Pendulum-v1", "--algo", "sac", "--steps", "10", "--out", str(tmp_path / "s")]
    assert run(["sweep", *known, *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_missing_ray_is_told_with_a_command_that_works_from_a_clone(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    known = ["--env", "Pendulum-v1", "--algo", "sac", "--steps", "10", "--out", str(tmp_path / "s")]
    assert run(["sweep", *known, "--engine", "ray"]) == 2
    assert "in bisac's folder: pip install '.[ray]'." in " ".join(capsys.readouterr().err.split())
