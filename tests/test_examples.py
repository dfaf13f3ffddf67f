"""Every script of examples/ runs, in small; and what pages link to is there."""

import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import pytest
from policies import POLICIES, fresh

import bisac
from bisac.algos import REGISTRY
from bisac.types import Spec

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
SMALL = dict(
    critic_norm="none", hidden=(8,), batch_size=16, learning_starts=20, replay_size=1000, steps=300, eval_every=150,
    eval_episodes=1, num_envs=1, verbose=False,
)  # fmt: skip
SPECS = {
    "Pendulum-v1": Spec("Pendulum-v1", 3, (-2.0,), (2.0,)),
    "Park-v0": Spec("Park-v0", 2, (-1.0,), (1.0,)),
}
SAYS = {
    "quickstart": "mean return over 20 episodes: -",
    "own_environment": "of 50 episodes, mean return -",
    "early_stop": "stopped at step ",
    "compare": "established",
    "one_environment": "",
}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Let the examples work in small, in an empty folder.

    Compiling takes the time, so only `early_stop` trains, on the example's own environment. The others get an untrained
    policy for the arguments that `bisac.train` takes; tests/test_docs.py trains in all these ways.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    train, start, evaluate = bisac.train, bisac.start, bisac.evaluate

    def untrained(env, *words, **named):
        inspect.signature(train).bind(env, *words, **named)
        return fresh(POLICIES["sac-classic"], SPECS[env if isinstance(env, str) else env.spec.id])

    monkeypatch.setattr(bisac, "train", untrained)
    monkeypatch.setattr(bisac, "start", lambda *words, **named: start(*words, **named | SMALL))
    monkeypatch.setattr(bisac, "evaluate", lambda *words, episodes: evaluate(*words, episodes=1))
    monkeypatch.setattr(bisac, "resume", lambda path, env, steps: None)


def test_examples_run(small, monkeypatch, capsys):
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"own_algorithm"}  # tests/algos/test_plugins.py has it
    assert scripts == set(SAYS)
    for name in SAYS:
        module = importlib.import_module(name)
        if name == "compare":
            monkeypatch.setattr(module, "SEEDS", range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.main()
        assert SAYS[name] in capsys.readouterr().out
        assert f"python examples/{name}.py" in module.__doc__
    for name in SAYS:
        sys.modules.pop(name, None)


def test_links_between_pages_lead_somewhere(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "site")
    stage = importlib.import_module("stage")
    for page in stage.pages():
        for link, file in stage.targets(page):
            assert file.is_file(), f"{page.name} links to {link}"
            anchor = link.partition("#")[2]
            if anchor and file.suffix == ".md":
                text = re.sub(r"^```.*?^```$", "", file.read_text(), flags=re.DOTALL | re.MULTILINE)
                assert anchor in anchors(text), f"{page.name} links to {link}"


def anchors(text):
    """The names that GitHub and MkDocs give to headings, where both agree."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_the_generated_reference_is_of_this_code():
    settings = (PROJECT / "docs" / "reference" / "settings.md").read_text()
    for name, kind in REGISTRY.items():
        if kind.__module__.startswith("bisac."):
            section = settings.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
            told = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
            assert told == list(kind.__dataclass_fields__), f"run make reference: settings of {name} have changed"
