"""The command line as a user meets it: in a process of its own, judged by what it prints and its exit code."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from bisac.algos import REGISTRY, SAC
from bisac.cli import run
from bisac.envs.tasks import SHIPPED
from bisac.runs.checkpoint.manifest import read_manifest
from bisac.runs.folder import default_path
from bisac.runs.log import read_progress

SMALL = [
    "--hidden",
    "16",
    "--encoder",
    "8",
    "--subnetwork",
    "8",
    "--embedding",
    "4",
    "--batch-size",
    "16",
    "--replay-size",
    "2000",
    "--num-envs",
    "1",
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """One cache of compiled programs for all commands."""
    cache = str(tmp_path_factory.mktemp("compiled"))
    return os.environ | {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def bisac(arguments, environment, cwd):
    command = [sys.executable, "-m", "bisac", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def trained(environment, tmp_path_factory):
    """The first command of a user, compiled as theirs is: without the tests' own flags."""
    cwd = tmp_path_factory.mktemp("work")
    environment = {name: value for name, value in environment.items() if name != "XLA_FLAGS"}
    result = bisac(["train", "Pendulum-v1", "--steps", "1400", "--eval-every", "700", "--eval-episodes", "2", *SMALL],
                   environment, cwd)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return cwd, result


def test_train_ends_with_a_summary(trained):
    cwd, result = trained
    for expected in (r"final return +-[\d,.]+ ± [\d,.]+ at step 1,400", r"best return", r"learning_curve\.png",
                     r"solved +not yet: from -200 on",
                     r"next +bisac eval runs/Pendulum-v1/bisac/seed0", r"step +700 +return"):  # fmt: skip
        assert re.search(expected, result.stdout)
    assert (cwd / "runs/Pendulum-v1/bisac/seed0/policy.safetensors").exists()
    assert result.stderr == ""


def test_second_run_without_a_folder_takes_a_new_one(trained, monkeypatch):
    cwd, _ = trained
    monkeypatch.chdir(cwd)
    assert default_path("Pendulum-v1", "bisac", 0) == Path("runs/Pendulum-v1/bisac/seed0-2")
    assert default_path("Pendulum-v1", "bisac", 1) == Path("runs/Pendulum-v1/bisac/seed1")


def test_eval_prints_statistics_and_films(trained, environment):
    cwd, _ = trained
    result = bisac(["eval", "runs/Pendulum-v1/bisac/seed0", "--episodes", "3", "--video"], environment, cwd)
    assert result.returncode == 0, result.stderr
    assert re.search(r"over 3 episodes of Pendulum-v1: mean \S+ +std \S+ +min \S+ +max \S+", result.stdout)
    (video,) = (cwd / "runs/Pendulum-v1/bisac/seed0/videos").glob("*.mp4")
    assert b"ftyp" in video.read_bytes()[:16]


def start_run(environment, cwd, arguments):
    """A process that trains in the folder x, once it has logged a row."""
    command = [sys.executable, "-m", "bisac", *arguments]
    process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.PIPE, text=True)
    progress, deadline = cwd / "x" / "progress.csv", time.monotonic() + 100
    while not (progress.exists() and progress.read_text().count("\n") > 1):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


LONG = ["train", "Pendulum-v1", "--algo", "sac", "--critic-norm", "none", "--out", "x", "--eval-every", "300",
        "--eval-episodes", "1", "--learning-starts", "100000", "--checkpoint-every", "200", *SMALL]  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_exit(number, code, environment, tmp_path):
    with start_run(environment, tmp_path, LONG) as process:
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "go on with:  bisac resume x" in output
    assert load_file(tmp_path / "x" / "policy.safetensors")
    assert (tmp_path / "x" / "learning_curve.png").exists()
    step = read_manifest(max((tmp_path / "x" / "checkpoints").glob("step-*"))).step
    result = bisac(["resume", "x", "--steps", str(step + 10)], environment, tmp_path)
    assert result.returncode == 0, result.stderr
    assert f"going on from step {step:,}" in result.stdout
    assert read_progress((tmp_path / "x" / "progress.csv").read_text())[-1]["step"] == step + 10


def test_killed_process_leaves_a_run_that_goes_on(environment, tmp_path):
    with start_run(environment, tmp_path, LONG) as process:
        result = bisac(["resume", "x"], environment, tmp_path)
        assert result.returncode == 2
        assert "another process is training in x" in result.stderr
        process.kill()
    saved = read_manifest(max((tmp_path / "x" / "checkpoints").glob("step-*"))).step
    result = bisac(["resume", "x", "--steps", str(saved + 1)], environment, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "final return" in result.stdout


BAD_INPUT = [
    (["train", "Hoper-v5"], "did you mean Hopper-v5"),
    (["train", "CartPole-v1"], "continuous actions"),
    (["train", "Pendulum-v1", "--algo", "ppp"], "there is no algorithm 'ppp'"),
    (["train", "Pendulum-v1", "--epsilon", "-1"], "--epsilon must be 0 or positive"),
    (["train", "Pendulum-v1", "--steps", "0"], "--steps must be at least 1"),
    (["train", "Pendulum-v1", "--seed", "-4"], "--seed must be from 0"),
    (["train", "Pendulum-v1", "--replay-size", "2000000000"], "choose a smaller --replay-size"),
    (["train", "Pendulum-v1", "--out", "/proc/nowhere"], "cannot be written"),
    (["train", "Pendulum-v1", "--env-arg", "g"], "must be key=value, got 'g'"),
    (["train", "Pendulum-v1", "--env-arg", "h=1"], "'Pendulum-v1' cannot be made with h=1"),
    (["train", "Pendulom-v1", "--backend", "envpool"], "EnvPool has no environment 'Pendulom-v1'"),
    (["resume", "nowhere", "--env-arg", "g=1"], "--env-arg cannot change within a run"),
    (["resume", "nowhere", "--backend=async"], "--backend cannot change within a run"),
    (["eval", "nowhere"], "no run folder or policy file at nowhere"),
    (["eval", "."], "holds no policy"),
    (["eval", "nowhere", "--episodes", "0"], "--episodes must be at least 1"),
    (["eval", "nowhere", "--seed", "-1"], "--seed must be from 0"),
    (["train", "Pendulum-v1", "--algo", "ppo", "--value-clip", "inf"], "--value-clip must be a number or None"),
    (
        ["train", "Pendulum-v1", "--algo", "ppo", "--rollout", "32", "--num-envs", "5"],
        "--minibatches must be at most 15",
    ),
    (["resume", "nowhere"], "nowhere is not a run folder"),
    (["resume", "nowhere", "--gamma", "0.9"], "--gamma cannot change within a run"),
    (["resume", "nowhere", "--algo=sac"], "--algo cannot change within a run"),
    (["train", "Pendulum-v1", "--checkpoint-every", "-1"], "--checkpoint-every must be 0 or positive"),
    (["lisst"], "there is no command 'lisst'"),
    (["list", "--algo", "sack"], "there is no algorithm 'sack'"),
    (["--print-completion", "tcsh"], "takes the shell's name: bash, zsh, fish"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT)
def test_bad_input_gets_one_sentence(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["train", "Pendulum-v1", "--epsilom", "1"], ["train"], ["eval", "--steps"]])
def test_unknown_options_exit_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        run(arguments)
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_policy_of_another_task_is_refused(trained, capsys):
    cwd, _ = trained
    assert run(["eval", str(cwd / "runs/Pendulum-v1/bisac/seed0"), "--env", "Hopper-v5"]) == 2
    assert "does not fit Hopper-v5" in capsys.readouterr().err


def test_full_disk_at_the_end_is_told(capsys, monkeypatch, tmp_path):
    def full(path, _content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("bisac.runs.log.write_atomic", full)
    arguments = [
        "train",
        "Pendulum-v1",
        "--steps",
        "40",
        "--learning-starts",
        "50",
        "--out",
        str(tmp_path / "x"),
        *SMALL,
    ]
    assert run(arguments) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_error_of_the_system_without_a_number_is_told(capsys, monkeypatch):
    def lost(*_arguments):
        raise TimeoutError("the simulator [3] does not answer")

    monkeypatch.setattr("bisac.cli.train.start", lost)
    assert run(["train", "Pendulum-v1"]) == 2
    assert capsys.readouterr().err == "bisac: the simulator [3] does not answer.\n"


def test_bare_command_shows_where_to_start(capsys):
    assert run([]) == 0
    assert "bisac train Pendulum-v1" in capsys.readouterr().out


def test_list_shows_an_algorithm_of_ones_own_to_the_letter(capsys, monkeypatch):
    class Own(SAC):
        """Reads [/tmp] files."""

    monkeypatch.setitem(REGISTRY, "own", Own)
    assert run(["list"]) == 0
    assert "Reads [/tmp] files." in capsys.readouterr().out


def test_list_names_algorithms_and_tasks(capsys):
    assert run(["list"]) == 0
    output = capsys.readouterr().out
    for name in ("bisac", "sac", "forward-sac", "forward-sac-actor", "Hopper-v5", "BipedalWalker-v3", *SHIPPED):
        assert name in output


@pytest.mark.parametrize(
    ("algo", "has", "lacks"), [("sac", "--critic ", "--epsilon"), ("bisac", "--epsilon", "--rollout")]
)
def test_help_shows_the_algorithms_own_settings(algo, has, lacks, capsys):
    with pytest.raises(SystemExit) as stop:
        run(["train", "--algo", algo, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert has in text
    assert lacks not in text
