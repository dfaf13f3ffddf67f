"""Plans: what is run, under which names, by which commands."""

import dataclasses
from pathlib import Path

import pytest

from bisac.cli.train import parse_train
from bisac.errors import BisacError
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import Contestant, parse_contestant, parse_hyperparameters, vary
from bisac.sweeps.estimate import OVERHEAD, RATE, START, guess_seconds
from bisac.sweeps.plan import Plan, parse_seeds
from bisac.types import Spec


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sac", "sac"),
        ("sac:critic=vdn-a", "sac-vdn-a"),
        ("bisac:spread=kl,epsilon=1", "bisac-kl-epsilon=1"),
        ("bisac:hidden=64x32", "bisac-hidden=64x32"),
        ("td3:learning-starts=5", "td3-learning_starts=5"),
        ("bisac:encoder=", "bisac-encoder="),
        ("sac:critic-norm=none", "sac-none"),
        ("bisac:margin=none", "bisac-margin=none"),  # a word that others take too does not tell which is meant
        ("bisac:epsilon-half-life=none", "bisac-epsilon_half_life=none"),
        ("sac:actor-lr=linear:1e-3:1e-4:2000", "sac-actor_lr=linear:1e-3:1e-4:2000"),
    ],
)
def test_contestants_have_names_for_people_and_folders(text, name):
    assert parse_contestant(text).name == name


def test_a_contestant_of_an_earlier_version_keeps_its_name():
    """Its setting is gone, so nothing tells which words it took; its folders have the name."""
    assert Contestant("bisac", (("refinement", "correction"),)).name == "bisac-correction"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("scc", "there is no algorithm 'scc'"),
        ("sac:epsilon=1", "SAC has no hyperparameter 'epsilon'"),
        ("sac:tau=2", "--tau must be in"),
        ("sac:critic", "must be name=value"),
        ("bisac:hidden=64x0", "--hidden must be one or more widths from 1 to 1048576"),
        (f"sac:hidden=64x{10**30}", "--hidden must be one or more widths from 1 to 1048576"),
    ],
)
def test_wrong_contestants_are_told(text, problem):
    with pytest.raises(BisacError, match=problem):
        parse_contestant(text)


def test_seeds():
    assert parse_seeds("0:3") == (0, 1, 2)
    assert parse_seeds("4,1,4") == (4, 1)
    for text in ("x", "3:3", "1:", "", "-1", "-2:3", "0:5000000000", f"0:{10**30}"):
        with pytest.raises(BisacError, match="--seeds"):
            parse_seeds(text)


def test_swept_hyperparameters_multiply_those_that_have_them():
    contestants = [parse_contestant(text) for text in ("sac", "bisac", "forward-sac-actor")]
    names = [c.name for c in vary(contestants, ["epsilon=0.1,1", "spread=std,kl"])]
    assert names == [
        "sac",
        *(f"bisac-epsilon={e}-{s}" for e in (0.1, 1) for s in ("std", "kl")),
        "forward-sac-actor-std",
        "forward-sac-actor-kl",
    ]
    with pytest.raises(BisacError, match="no algorithm of this sweep has the hyperparameter 'clip'"):
        vary(contestants, ["clip=1"])


def test_hyperparameters_are_taken_out_of_the_command_line():
    contestants = [parse_contestant(text) for text in ("sac", "ppo")]
    words = ["--env", "A", "B", "--hidden", "64", "32", "--steps", "7", "--gamma=0.5", "--no-normalise-rewards"]
    rest, found = parse_hyperparameters(words, contestants)
    assert rest == ["--env", "A", "B", "--steps", "7"]
    assert found == {"hidden": (64, 32), "gamma": 0.5, "normalise_rewards": False}
    assert parse_hyperparameters(["--her", "A", "--gamma", "0.5", "B"], contestants) == (
        ["A", "B"],
        {"her": True, "gamma": 0.5},
    )


def plan_of(**changes):
    settings = Settings(steps=5000, eval_episodes=3, env_arg=("a=1", "b=2"))
    contestants = tuple(parse_contestant(text) for text in ("sac", "bisac:epsilon=2", "ppo:normalise_rewards=false"))
    hyperparameters = {"hidden": (64, 32), "epsilon": 0.5, "gae_lambda": 0.5}
    known = Plan(("Pendulum-v1", "dm_control/cheetah"), contestants, (0, 5), settings, hyperparameters)
    return dataclasses.replace(known, **changes)


def test_runs_cover_everything_seed_by_seed():
    runs = list(plan_of().runs(Path("out")))
    assert [run.seed for run in runs] == [0] * 6 + [5] * 6
    assert len({run.folder for run in runs}) == 12
    assert runs[4].folder == Path("out/dm_control-cheetah/bisac-epsilon=2/seed0")


def test_commands_give_what_was_planned():
    """Parsed by the command line itself, each run's arguments are its algorithm and its settings."""
    for run in plan_of().runs(Path("out")):
        words = list(run.arguments[1:])
        command, _ = parse_train(words)
        assert (command.env, command.algo) == (run.env, run.contestant.algo)
        assert command.hyperparameters.settled() == run.algorithm
        assert command.run.settled(command.hyperparameters) == run.settings


def test_settings_of_a_contestant_come_before_common_ones_and_presets_last():
    sac, bisac, ppo = list(plan_of().runs(Path("out")))[:3]
    assert (sac.algorithm.hidden, sac.algorithm.gamma) == ((64, 32), 0.9)  # the preset of Pendulum
    assert bisac.algorithm.epsilon == 2
    assert (ppo.algorithm.gae_lambda, ppo.algorithm.normalise_rewards) == (0.5, False)


def test_same_names_are_refused():
    twice = (parse_contestant("bisac:spread=std"), parse_contestant("bisac:spread=std"))
    with pytest.raises(BisacError, match="two contestants called bisac-std"):
        plan_of(contestants=twice)
    with pytest.raises(BisacError, match="two environments called Pendulum-v1"):
        plan_of(envs=("Pendulum-v1", "Pendulum-v1"))


def test_guess_counts_the_products_of_an_update():
    """A classic SAC update multiplies a hidden layer with a batch 16 times."""
    narrow, wide = (
        guess_seconds(
            Plan(
                ("Pendulum-v1",),
                (parse_contestant("sac:critic_norm=none"),),
                (0, 1),
                Settings(steps=10),
                {"hidden": (w, w)},
            ).runs(Path("out")),
            {"Pendulum-v1": Spec("Pendulum-v1", 3, (-1.0,), (1.0,))},
            slots=2,
            cores=1,
        )
        for w in (16, 512)
    )
    # At s' the actor and two targets (3); two critics, and twice that backward (6); for the actor itself and back (3),
    # and two critics of which only the way back to the action is needed (4).
    products = (wide - narrow) * RATE / 10 / (2 * 512 * 512 * 256)
    assert products == pytest.approx(3 + 6 + 3 + 4, rel=0.06)
    assert START + 10 * OVERHEAD < narrow < START + 12 * OVERHEAD
