import pytest
from probe_envs import Counter

import bisac
from bisac import cli
from bisac.algos import REGISTRY
from bisac.envs.spec import PAPER_TASKS
from bisac.presets import GAMMA, SETTINGS, preset

TASKS = sorted({*GAMMA, *(task for tasks in SETTINGS.values() for task in tasks)})


@pytest.mark.parametrize("algo", REGISTRY)
def test_presets_are_settings_of_their_algorithm(algo):
    for task in (*PAPER_TASKS, *(f"{name}-v0" for name in TASKS)):
        REGISTRY[algo](**preset(task, algo))


def test_gamma_is_the_tasks():
    for task in PAPER_TASKS:
        assert len({REGISTRY[algo](**preset(task, algo)).gamma for algo in REGISTRY}) == 1
    assert preset("Swimmer-v5", "sac") == preset("pkg:Swimmer-v4", "sac") == {"gamma": 0.999}
    assert preset("Counter", "sac") == preset("SwimmerLike-v5", "sac") == {}


class StoppedError(Exception):
    pass


@pytest.fixture
def chosen(monkeypatch):
    """The algorithm that would be trained."""
    seen = []

    def stop(_source, algo, *_rest):
        seen.append(algo)
        raise StoppedError

    monkeypatch.setattr("bisac.cli.train.run_training", stop)
    monkeypatch.setattr("bisac.api.run_training", stop)
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
