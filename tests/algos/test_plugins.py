"""Algorithms that are not ours: registered, they have all that ours have; else their files say what to import."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.algos import REGISTRY, SAC, OffPolicy, plugins
from bisac.cli import run
from bisac.runs.log import read_progress

EXAMPLES = Path(__file__).parents[2] / "examples"


register = getattr(plugins.register, "__wrapped__", plugins.register)  # without the tests' own check of types


@pytest.fixture
def gentle(monkeypatch):
    """The example's algorithm, registered for a test."""
    monkeypatch.syspath_prepend(EXAMPLES)
    sys.modules.pop("own_algorithm", None)
    import own_algorithm

    yield own_algorithm.GentleSAC
    REGISTRY.pop("gentle-sac", None)


def test_the_example_trains_resumes_and_is_loaded(gentle, tmp_path, capsys):
    changes = SMALL | SHORT | dict(algo="gentle-sac", effort=0.5, critic_norm="none")
    bisac.train(Counter, out=tmp_path / "straight", **changes)
    with dying_at(50):
        bisac.train(Counter, out=tmp_path / "torn", **changes)
    bisac.resume(tmp_path / "torn", env=Counter, verbose=False)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")
    assert "effort" in (tmp_path / "torn" / "progress.csv").read_text().splitlines()[0]
    assert bisac.load(tmp_path / "torn").algo.effort == 0.5
    with pytest.raises(SystemExit):
        run(["train", "--algo", "gentle-sac", "--help"])
    assert "--effort" in capsys.readouterr().out
    run(["list"])
    assert "pays for the effort" in capsys.readouterr().out
    sweep = ["--env", "Pendulum-v1", "--seeds", "0:1", "--steps", "10", "--out", str(tmp_path / "sweep"), "--dry-run"]
    assert run(["sweep", "--algo", "gentle-sac:effort=0.2", *sweep]) == 0

    del REGISTRY["gentle-sac"]
    for use in (bisac.load, lambda folder: bisac.resume(folder, env=Counter)):
        with pytest.raises(
            bisac.BisacError, match=r"registered by own_algorithm; import .* BISAC_IMPORT=own_algorithm"
        ):
            use(tmp_path / "torn")


def test_an_algorithm_may_have_no_metrics(monkeypatch, tmp_path):
    @dataclass(frozen=True)
    class Quiet(SAC):
        def update(self, state, batch, key):
            return super().update(state, batch, key)[0], {}

    monkeypatch.setitem(REGISTRY, "quiet", Quiet)
    bisac.train(Counter, out=tmp_path / "run", **SMALL | SHORT | dict(algo="quiet", critic_norm="none"))
    columns = read_progress((tmp_path / "run" / "progress.csv").read_text())[-1]
    assert "eval_return" in columns
    assert not {"critic_loss", "q", "alpha"} & columns.keys()


def test_modules_that_the_environment_names_are_imported(gentle, monkeypatch):
    del REGISTRY["gentle-sac"], sys.modules["own_algorithm"]
    monkeypatch.setenv("BISAC_IMPORT", "own_algorithm")
    plugins.find_installed.__wrapped__()
    assert REGISTRY["gentle-sac"].__module__ == "own_algorithm"
    monkeypatch.setenv("BISAC_IMPORT", "no_such_module")
    with pytest.raises(bisac.BisacError, match="BISAC_IMPORT names no_such_module, which cannot be imported"):
        plugins.find_installed.__wrapped__()


def test_installed_packages_are_found(gentle, monkeypatch):
    del REGISTRY["gentle-sac"]
    points = [EntryPoint("gentle-sac", "own_algorithm:GentleSAC", plugins.GROUP),
              EntryPoint("broken", "no_such_module:Mine", plugins.GROUP)]  # fmt: skip
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="the algorithm 'broken' of no_such_module:Mine cannot be used"):
        plugins.find_installed.__wrapped__()
    assert REGISTRY["gentle-sac"] is gentle


class Undecorated(SAC):
    more: float = 1.0


@dataclass(frozen=True)
class Needy(SAC):
    more: float = 1.0

    def __post_init__(self):
        raise TypeError("missing")


@dataclass(frozen=True)
class Unfinished(OffPolicy):
    pass


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("sac", Undecorated, r"must be a @dataclass\(frozen=True\)"),
        ("sac", Unfinished, r"'sac' is the name of bisac\.algos\.sac\.SAC"),
        ("my algo", SAC, "lower-case letters"),
        ("mine", dict, "is no class that extends"),
        ("mine", SAC(), "is no class that extends"),
        ("mine", Needy, r"Needy\(\) fails: missing"),
        ("mine", Unfinished, r"Unfinished\(\) fails: .*abstract"),
    ],
)
def test_what_is_no_algorithm_is_refused(name, kind, sentence):
    with pytest.raises(bisac.BisacError, match=sentence):
        register(name, kind)
    assert "mine" not in REGISTRY
