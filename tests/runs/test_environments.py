"""Runs on environments with arguments and on other backends: recorded, resumed and evaluated as they were trained."""

import json
import re

import numpy as np
import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.cli import run
from bisac.runs.log import read_progress
from bisac.runs.settings import Settings


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """A run in episodes of one step."""
    out = tmp_path_factory.mktemp("pendulum") / "run"
    arguments = ["--env-arg", "max_episode_steps=1", "--env-arg", "g=9.5", "--steps", "20", "--eval-episodes", "1",
                 "--algo", "sac", "--learning-starts", "10", "--hidden", "8", "--replay-size", "100",
                 "--num-envs", "1"]  # fmt: skip
    assert run(["train", "Pendulum-v1", "--out", str(out), *arguments]) == 0
    return out


def test_arguments_are_recorded(pendulum):
    args = ["max_episode_steps=1", "g=9.5"]
    assert json.loads((pendulum / "config.json").read_text())["run"]["env_arg"] == args
    assert bisac.load(pendulum).spec.env_args == tuple(args)


def test_a_resume_uses_the_arguments_and_they_cannot_change(pendulum):
    bisac.resume(pendulum, steps=30, verbose=False)
    rows = read_progress((pendulum / "progress.csv").read_text())
    assert [(row["step"], row["episode_length"]) for row in rows] == [(20, 1.0), (30, 1.0)]
    config = json.loads((pendulum / "config.json").read_text())
    edited = config | {"run": config["run"] | {"env_arg": ["max_episode_steps=2", "g=9.5"]}}
    (pendulum / "config.json").write_text(json.dumps(edited))
    try:
        with pytest.raises(bisac.BisacError, match=r"env_arg is \['max_episode_steps=2', 'g=9.5'\] in config.json and"):
            bisac.resume(pendulum, steps=40, verbose=False)
    finally:
        (pendulum / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("arguments", "steps"), [([], 1), (["--env-arg", "max_episode_steps=2"], 2), (["--env", "Pendulum-v1"], 200)]
)
def test_evaluation_uses_the_arguments_unless_told_otherwise(pendulum, arguments, steps, capsys, monkeypatch):
    lengths = []
    monkeypatch.setattr("gymnasium.wrappers.TimeLimit.__init__", watched_limit(lengths))
    assert run(["eval", str(pendulum), "--episodes", "1", "--video", *arguments]) == 0
    assert re.search(r"over 1 episodes of Pendulum-v1: mean", capsys.readouterr().out)
    assert lengths == [steps, steps]


def watched_limit(lengths):
    from gymnasium.wrappers import TimeLimit

    original = TimeLimit.__init__

    def init(self, env, max_episode_steps):
        lengths.append(max_episode_steps)
        original(self, env, max_episode_steps)

    return init


def test_pythons_arguments_are_those_of_the_command_line(tmp_path):
    policy = bisac.train("Pendulum-v1", env_args={"max_episode_steps": 5}, out=tmp_path / "run", **SMALL, **SHORT)
    assert policy.spec.env_args == ("max_episode_steps=5",)


def test_processes_learn_the_same_and_resume_exactly(tmp_path):
    bisac.train(Counter, out=tmp_path / "sync", **SMALL | SHORT | {"num_envs": 2})
    with dying_at(50):
        bisac.train(Counter, out=tmp_path / "async", **SMALL | SHORT | dict(num_envs=2, backend="async"))
    bisac.resume(tmp_path / "async", env=Counter, verbose=False)
    assert fingerprint(tmp_path / "async") == fingerprint(tmp_path / "sync")
    assert json.loads((tmp_path / "async" / "config.json").read_text())["run"]["backend"] == "async"


def test_envpool_says_that_its_resume_is_not_exact(tmp_path):
    with dying_at(50):
        bisac.train("Hopper-v5", out=tmp_path / "run", **SMALL | SHORT | dict(num_envs=2, backend="envpool"))
    with pytest.warns(UserWarning, match="Hopper-v5 does not repeat itself when seeded: 2 of 2 environments begin"):
        bisac.resume(tmp_path / "run", verbose=False)
    assert read_progress((tmp_path / "run" / "progress.csv").read_text())[-1]["inexact_resumes"] == 1


def test_evaluation_for_programs_with_drawn_actions(pendulum, capsys):
    def told(*arguments):
        assert run(["eval", str(pendulum), "--episodes", "3", "--json", *arguments]) == 0
        return json.loads(capsys.readouterr().out)

    plain, drawn = told(), told("--stochastic")
    assert (plain["env"], plain["episodes"], plain["lengths"]) == ("Pendulum-v1", 3, [1, 1, 1])
    assert (plain["success_rate"], plain["successes"]) == (None, None)
    assert plain["returns"] != drawn["returns"] == told("--stochastic")["returns"]
    policy = bisac.load(pendulum)
    evaluation = bisac.evaluate(policy, episodes=3)
    assert evaluation.returns.tolist() == plain["returns"]
    assert bisac.evaluate(policy, episodes=3, deterministic=False).returns.tolist() == drawn["returns"]
    longer = bisac.evaluate(policy, "Pendulum-v1", episodes=1, env_args={"max_episode_steps": 4})
    assert longer.lengths.tolist() == [4]
    evaluate = getattr(bisac.evaluate, "__wrapped__", bisac.evaluate)  # without the tests' own check of types
    assert evaluate(policy, episodes=np.int64(3)).returns.tolist() == plain["returns"]
    for env in (None, "classic/pendulum"):
        with pytest.raises(bisac.BisacError, match="an evaluation has 1,000,000 episodes at most"):
            bisac.evaluate(policy, env, episodes=10**400)
    with pytest.raises(bisac.BisacError, match="--eval-episodes must be from 1 to 1,000,000"):
        Settings(eval_episodes=10**400)
    for bad in (0, 2.5):
        with pytest.raises(bisac.BisacError, match="episodes must be a whole number, and at least 1"):
            evaluate(policy, episodes=bad)
    with pytest.raises(bisac.BisacError, match="seed must be from 0 to 4294967295, got -1"):
        bisac.evaluate(policy, seed=-1)
