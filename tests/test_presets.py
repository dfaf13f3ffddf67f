import pytest
from probe_envs import Counter

import bisac
from bisac import cli
from bisac.algos import REGISTRY
from bisac.cli.train import parse_train
from bisac.envs.task import PAPER_TASKS
from bisac.errors import BisacError
from bisac.presets import FAST, FAST_ENVS, GAMMA, HYPERPARAMETERS, PAPER, preset
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import parse_contestant
from bisac.sweeps.plan import Plan

TASKS = sorted({*GAMMA, *(task for tasks in HYPERPARAMETERS.values() for task in tasks)})


@pytest.mark.parametrize("algo", REGISTRY)
def test_presets_are_hyperparameters_of_their_algorithm(algo):
    for task in (*PAPER_TASKS, *(f"{name}-v0" for name in TASKS)):
        REGISTRY[algo](**preset(task, algo))


def test_gamma_is_the_tasks():
    for task in PAPER_TASKS:
        assert len({REGISTRY[algo](**preset(task, algo)).gamma for algo in REGISTRY}) == 1
    assert preset("Swimmer-v5", "sac") == preset("pkg:Swimmer-v4", "sac") == {"gamma": 0.999}
    assert preset("Counter", "sac") == preset("SwimmerLike-v5", "sac") == preset("Swimmer-variant-v0", "sac") == {}


@pytest.mark.parametrize("flags", [["--tau", "0.01"], ["--batch-size", "8"]])
@pytest.mark.parametrize("algo", ["sac", "bisac"])
def test_flags_that_a_preset_allows_are_taken_with_it(algo, flags):
    command, _ = parse_train(["Hopper-v5", "--algo", algo, "--preset", "paper", *flags])
    name, value = flags[0].removeprefix("--").replace("-", "_"), float(flags[1])
    assert getattr(command.hyperparameters, name) == value
    assert command.hyperparameters.critic_norm == "none"
    with pytest.raises(BisacError, match=f"{flags[0]} must be"):
        parse_train(["Hopper-v5", "--algo", algo, "--critic-norm", "batch", *flags])


class StoppedError(Exception):
    pass


class Seen(list):
    settings = None


@pytest.fixture
def chosen(monkeypatch):
    """The algorithms that would be trained, and the settings of the last run."""
    seen = Seen()

    def stop(_source, algo, settings, *_rest, **_named):
        seen.append(algo)
        seen.settings = settings
        raise StoppedError

    monkeypatch.setattr("bisac.cli.train.start", stop)
    monkeypatch.setattr("bisac.api.start_runs", stop)
    return seen


@pytest.mark.parametrize(
    ("flags", "gamma"),
    [([], 0.999), (["--preset", "none"], 0.99), (["--preset=none"], 0.99), (["--gamma", "0.5"], 0.5)],
)
def test_flags_override_presets(flags, gamma, chosen):
    with pytest.raises(StoppedError):
        cli.run(["train", "Swimmer-v5", "--algo", "ppo", *flags])
    assert chosen[0].gamma == gamma


def test_preset_is_that_of_the_environment_alone(chosen):
    for words in (["Hopper-v5", "--out", "runs/Swimmer-v5"], ["--out", "Swimmer-v5", "--overwrite", "Hopper-v5"]):
        with pytest.raises(StoppedError):
            cli.run(["train", *words])
    assert [algo.gamma for algo in chosen] == [0.99, 0.99]


def test_python_has_them_too(chosen):
    for settings in ({}, {"preset": "none"}, {"gamma": 0.5}):
        with pytest.raises(StoppedError):
            bisac.train("Swimmer-v5", "sac", verbose=False, **settings)
    for env, algo in ((Counter, "sac"), ("Swimmer-v5", REGISTRY["sac"]())):
        with pytest.raises(StoppedError):
            bisac.train(env, algo, verbose=False)
    assert [algo.gamma for algo in chosen] == [0.999, 0.99, 0.5, 0.99, 0.99]


def fast_settings(algo, settings):
    return algo.gamma, {name: getattr(algo, name) for name in FAST["sac"]}, settings.num_envs


FAST_ON_SWIMMER = (0.999, FAST["sac"], FAST_ENVS)


def test_fast_stacks_on_the_tasks_own_and_yields_to_flags(chosen, capsys):
    with pytest.raises(StoppedError):
        cli.run(["train", "Swimmer-v5", "--algo", "sac", "--preset", "fast"])
    assert fast_settings(chosen[0], chosen.settings) == FAST_ON_SWIMMER
    told = capsys.readouterr().out
    assert f"gamma 0.999, utd {FAST['sac']['utd']}" in told
    assert f"num_envs {FAST_ENVS}" in told
    with pytest.raises(StoppedError):
        cli.run(["train", "Swimmer-v5", "--algo", "sac", "--preset", "fast", "--utd", "0.5", "--num-envs", "3"])
    assert (chosen[1].utd, chosen.settings.num_envs) == (0.5, 3)


def test_fast_in_python(chosen):
    for env in ("Swimmer-v5", Counter):  # a function has no task whose preset is known
        with pytest.raises(StoppedError):
            bisac.train(env, "sac", preset="fast", verbose=False)
    assert fast_settings(chosen[0], chosen.settings) == FAST_ON_SWIMMER
    assert fast_settings(chosen[1], chosen.settings) == (0.99, *FAST_ON_SWIMMER[1:])
    with pytest.raises(BisacError, match="needs the algorithm by its name"):
        bisac.train("Swimmer-v5", REGISTRY["sac"](), preset="fast", verbose=False)


def test_fast_in_a_sweep(tmp_path, chosen):
    contestants = (parse_contestant("sac"), parse_contestant("sac:preset=fast,hidden=8x8"))
    plain, fast = Plan(("Swimmer-v5",), contestants, (0,), Settings(steps=100), {}).runs(tmp_path)
    assert plain.folder.parent.name == "sac"
    assert fast.folder.parent.name == "sac-fast-hidden=8x8"
    assert fast_settings(fast.algorithm, fast.settings) == FAST_ON_SWIMMER
    with pytest.raises(StoppedError):
        cli.run(list(fast.arguments))
    assert chosen[0].settled() == fast.algorithm
    assert chosen.settings.settled(chosen[0]) == fast.settings


def test_the_papers_preset_is_its_algorithm_to_the_letter(chosen):
    with pytest.raises(StoppedError):
        cli.run(["train", "Swimmer-v5", "--preset", "paper"])
    algo = chosen[0].settled()
    assert (algo.decomposition, algo.spread, algo.epsilon, algo.encoder) == ("joint", "var", 1.0, ())
    assert algo.subnetwork == algo.hidden
    assert (algo.critic_norm, algo.tau, algo.critic_lr, algo.actor_lr) == ("none", 0.005, 3e-4, 3e-4)
    assert (algo.gamma, chosen.settings.num_envs) == (0.999, 1)
    for name, settings in PAPER.items():
        REGISTRY[name](**settings)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["train", "Hopper-v5", "--algo", "ppo", "--preset", "paper"],
            "there is no paper preset for ppo; there is one",
        ),
        (["train", "Hopper-v5", "--preset", "fast"], "there is no fast preset for bisac; there is one for sac."),
        (["sweep", "--env", "A", "--algo", "ppo:preset=fast", "--steps", "1", "--out", "x"], "no fast preset for ppo"),
        (["sweep", "--env", "A", "--algo", "sac:preset=fats", "--steps", "1", "--out", "x"], "got 'fats'"),
    ],
)
def test_a_preset_that_is_not_there_is_told(words, sentence, capsys):
    assert cli.run(words) == 2
    assert sentence in capsys.readouterr().err
