"""Every script of examples/ runs, with tiny networks and few steps; and what pages link to is there."""

import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

import pytest

import bisac
from bisac.algos import REGISTRY

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
SMALL = dict(
    critic_norm="none", hidden=(8,), batch_size=16, learning_starts=20, replay_size=1000, steps=300, eval_every=150,
    eval_episodes=1, num_envs=1, verbose=False,
)  # fmt: skip
SAYS = {
    "quickstart": "mean return over 20 episodes: -",
    "own_environment": "of 50 episodes, mean return -",
    "early_stop": "stopped at step ",
    "compare": "established",
    "one_environment": "",
}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Let everything train in small, in an empty folder, and each task once: compiling is what takes time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    train, start, known = bisac.train, bisac.start, {}

    def train_once(env, *words, **named):
        task = env if isinstance(env, str) else env.spec.id
        if task not in known:
            known[task] = train(env, *words, **named | SMALL)
        inspect.signature(train).bind(env, *words, **named)
        return known[task]

    monkeypatch.setattr(bisac, "train", train_once)
    monkeypatch.setattr(bisac, "start", lambda *words, **named: start(*words, **named | SMALL))
    monkeypatch.setattr(bisac, "resume", lambda path, env, steps: None)  # tests/test_docs.py does that


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
