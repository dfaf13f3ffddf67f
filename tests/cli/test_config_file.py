"""Flags of `bisac train` in a file: every one as a key, what is typed counts more, and typing errors are told."""

import json

import pytest

from bisac.algos import PPO, SAC
from bisac.cli.train import parse_train
from bisac.errors import BisacError
from bisac.runs.config import to_config
from bisac.runs.settings import Settings


@pytest.fixture
def written(tmp_path):
    def write(content, name="best.toml"):
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write


def test_flags_of_a_file_are_those_of_the_command_line(written):
    path = written(
        'env = "Hopper-v5"\nalgo = "sac"\nsteps = 5000\nhidden = [64, 32]\nactor-lr = 1e-3\nlearn_at = "episode"\n'
        'normalise_observations = true\nnormalise_rewards = false\nenv_arg = ["a=1", "b=2"]\ntemperature = 0.1\n'
    )
    command, _ = parse_train(["--config", path])
    assert command.env == "Hopper-v5"
    expected = SAC(hidden=(64, 32), actor_lr=1e-3, learn_at="episode", normalise_observations=True, temperature=0.1)
    assert command.hyperparameters == expected
    assert command.run == Settings(steps=5000, env_arg=("a=1", "b=2"))
    assert parse_train(["--seed", "3", "--config", path])[0].run.seed == 3
    path_without_env = written("steps = 100\n", "plain.toml")
    command, _ = parse_train(["--seed", "1", "Hopper-v5", "--config", path_without_env])
    assert (command.env, command.run.seed, command.run.steps) == ("Hopper-v5", 1, 100)
    before = ["--normalise-observations", "--hidden", "8", "9", "--env-arg", "c=3", "--seed=2", "Ant-v5"]
    command, _ = parse_train([*before, "--steps", "9", "--config", path])  # whose own task is another
    assert (command.env, command.run.seed, command.run.steps) == ("Ant-v5", 2, 9)
    assert (command.hyperparameters.hidden, command.run.env_arg) == ((8, 9), ("a=1", "b=2", "c=3"))
    command, _ = parse_train(["Walker2d-v5", f"--config={path}", "--steps", "7", "--hidden", "8"])
    assert (command.env, command.run.steps, command.hyperparameters.hidden) == ("Walker2d-v5", 7, (8,))


def test_true_and_false_are_set_whatever_the_default(written):
    command, _ = parse_train(["Hopper-v5", "--config", written('algo = "ppo"\nanneal = false\n')])
    assert command.hyperparameters == PPO(anneal=False)
    command, _ = parse_train(["Hopper-v5", "--config", written('algo = "ppo"\nanneal = true\n')])
    assert command.hyperparameters == PPO()


def test_a_run_can_be_made_again_from_its_config(written, tmp_path):
    algo = SAC(critic_norm="none", encoder=(), normalise_rewards=True).settled()
    settings = Settings(steps=50, seed=4, out=tmp_path / "there", env_arg=("g=9",)).settled(algo)
    config = to_config("Pendulum-v1", algo, settings)
    path = written(json.dumps(config | {"env_source": "Pendulum-v1"}), "config.json")
    command, begin = parse_train(["--config", path])
    assert (command.env, command.hyperparameters, begin.hyperparameters) == ("Pendulum-v1", algo, {})
    assert to_config("", algo, command.run)["run"] == config["run"] | {"out": None}
    older = config | {"algo": "bisac", "hyperparameters": {"critic_norm": "batch", "refinement": "penalty"}}
    command, _ = parse_train(["--config", written(json.dumps(older), "config.json")])
    assert (command.hyperparameters.quorum, command.hyperparameters.patience) == (0.1, 0)  # as that run, not as today
    path = written(json.dumps(config | {"env_source": "my_module:make"}), "config.json")
    assert parse_train(["Other-v0", "--config", path])[0].env == "Other-v0"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('algo = "sac"\nstep = 5', "there is no flag 'step' of bisac train; did you mean steps"),
        ('algo = "sac"\nclip = 0.1', "there is no flag 'clip'"),
        ('algo = "sca"', "there is no algorithm 'sca'"),
        ("[sac]\nsteps = 5", r"\[sac\] is a table"),
        ("steps = ", "is no TOML"),
        ("normalise_rewards = 3", "normalise_rewards is true or false"),
    ],
)
def test_mistakes_are_told(content, sentence, written):
    with pytest.raises(BisacError, match=sentence):
        parse_train(["Hopper-v5", "--config", written(content)])


def test_files_that_are_none_are_told(written):
    with pytest.raises(BisacError, match="cannot be read"):
        parse_train(["Hopper-v5", "--config", "nowhere.toml"])
    with pytest.raises(BisacError, match=r"is not the config\.json of a run"):
        parse_train(["Hopper-v5", "--config", written("[1]", "config.json")])
