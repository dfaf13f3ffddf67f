"""Every script of examples/ runs, in small; and what pages link to is there."""

import importlib
import json
import platform
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from policies import POLICIES, fresh

import bisac
from bisac.algos import REGISTRY
from bisac.algos.plugins import VARIABLE
from bisac.cli.train import parse_train
from bisac.runs.log import read_progress
from bisac.sweeps.plan import parse_seeds
from bisac.types import Spec

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
SMALL = dict(critic_norm="none", hidden=(8,), batch_size=16, learning_starts=20, replay_size=1000)
SHORT = dict(steps=100, eval_every=100, eval_episodes=1, verbose=False)
FEW = {"compare": {"SEEDS": range(1)}, "demonstrations": {"EPISODES": 1}, "device_seeds": {"SEEDS": 2}}
SAYS = {
    "quickstart": "mean return over 20 episodes: -",
    "own_environment": "of 50 episodes, mean return -",
    "early_stop": "stopped at step ",
    "compare": "not established",
    "one_environment": "",  # it leaves a run instead
    "demonstrations": "without demonstrations: -",
    "device_seeds": "standard error",
    "goals": "of 50 episodes, mean return -",
}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Let the examples train in small, in an empty folder; what one has compiled serves the next.

    So each learns by SAC, also where it says TD3.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    train, start, resume, evaluate = bisac.train, bisac.start, bisac.resume, bisac.evaluate
    monkeypatch.setattr(bisac, "train", lambda env, *_, **named: train(env, **named | SMALL | SHORT | {"algo": "sac"}))
    monkeypatch.setattr(bisac, "start", lambda *words, **named: start(*words, **named | SMALL | SHORT))
    monkeypatch.setattr(bisac, "resume", lambda path, env, steps: resume(path, 200, env=env, verbose=False))
    monkeypatch.setattr(bisac, "evaluate", lambda *words, episodes: evaluate(*words, episodes=1))
    platform.platform()  # it asks a process the first time
    monkeypatch.setattr(subprocess, "run", untrained)


def untrained(command, check):
    """Leave policies where a command would train them; tests/collect/test_device.py trains seeds side by side."""
    given, _ = parse_train(command[4:])
    assert command[3] == "train"
    assert given.seeds is not None
    for seed in parse_seeds(given.seeds):
        policy = fresh(POLICIES["sac-classic"], Spec(given.env, 3, (-2.0,), (2.0,)))
        folder = given.run.out / f"seed{seed}"
        folder.mkdir(parents=True)
        policy.save(folder / "policy.safetensors")


@pytest.mark.xdist_group("examples")
def test_examples_run(small, monkeypatch, capsys):
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"own_algorithm"}  # tests/algos/test_plugins.py has it
    assert scripts == set(SAYS)
    for name in SAYS:
        module = importlib.import_module(name)
        for few, value in FEW.get(name, {}).items():
            monkeypatch.setattr(module, few, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.main()
        assert SAYS[name] in capsys.readouterr().out
        assert f"python examples/{name}.py" in module.__doc__
    assert read_progress(Path("runs/robot/progress.csv").read_text())[-1]["step"] >= 200
    for name in SAYS:
        sys.modules.pop(name, None)


def test_the_notebook_was_executed_from_top_to_bottom_and_is_small():
    path = EXAMPLES / "figures.ipynb"
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run make notebook"
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert kinds == {"execute_result", "stream"}
    assert path.stat().st_size < 300_000


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


def test_the_page_of_events_is_of_this_code(monkeypatch):
    monkeypatch.syspath_prepend(PROJECT / "site")
    text = importlib.import_module("events").events()
    page = (PROJECT / "docs" / "reference" / "events.md").read_text()
    assert text.partition("\n\n")[2] in page, "run make reference: events have changed"


def test_tables_of_the_pages_are_what_the_data_gives(monkeypatch):
    """All but the statistics of sweeps, which make docs looks at."""
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    assert importlib.import_module("figures").stale({}) == [], "run make figures"


def test_variables_that_the_code_reads_have_a_place_in_the_reference():
    page = (PROJECT / "docs" / "reference" / "shell.md").read_text()
    source = "".join(path.read_text() for path in (PROJECT / "src").rglob("*.py"))
    read = set(re.findall(r"environ(?:\.get\(|\.setdefault\(|\[)\"(\w+)\"", source)) | {VARIABLE}
    assert {"XLA_FLAGS", "BISAC_IMPORT"} <= read
    assert {name for name in read if f"`{name}`" not in page} == set()
