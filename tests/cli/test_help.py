"""Help teaches: what it names exists, and its examples can be typed. The tab key knows what help knows."""

import importlib.util
import re
import subprocess
import sys

import pytest

from bisac.__main__ import main
from bisac.algos import REGISTRY
from bisac.cli import COMMANDS, run
from bisac.cli.about import ABOUT, explained
from bisac.cli.examples import EXAMPLES, GROUPS, welcome


def printed(arguments, capsys):
    """What a command line that ends the program prints."""
    with pytest.raises(SystemExit) as stop:
        run(arguments)
    assert not stop.value.code
    return capsys.readouterr().out


def test_help_groups_every_command_in_lines_that_fit():
    assert sorted(name.split()[0] for group in GROUPS.values() for name in group) == sorted(COMMANDS)
    assert max(map(len, welcome().splitlines())) <= 100


@pytest.mark.parametrize("command", [name for name in EXAMPLES if name])
def test_examples_end_the_help_and_use_its_flags(command, capsys):
    text = printed([*command.split(), "--help"], capsys)
    after = text.partition("Examples\n")[2]
    for example in EXAMPLES[command]:
        assert example in after
        assert set(re.findall(r"--[a-z-]+", example)) <= set(re.findall(r"--[a-z-]+", text.partition("Examples")[0]))


@pytest.mark.parametrize("name", list(ABOUT))
def test_an_algorithm_is_told_in_five_lines(name):
    assert explained(name).count("\n") == 4
    assert set(ABOUT) == {name for name, kind in REGISTRY.items() if kind.__module__.startswith("bisac.")}


TRY = """
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _tyro_bisac; echo "${COMPREPLY[*]}"; }
try bisac res; try bisac train Pendulum-v1 --algo forward; try bisac train --roll; try bisac figure proj
"""


def test_the_tab_key_in_bash(capsys):
    script = printed(["--print-completion", "bash"], capsys)
    assert all(name in script for name in COMMANDS)
    told = subprocess.run(["bash"], input=script + TRY, capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.splitlines() == ["resume", "forward-sac forward-sac-actor", "--rollout", "projection"]


def test_modules_of_the_working_folder_are_found(tmp_path, monkeypatch):
    (tmp_path / "here_alone.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["bisac", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert importlib.util.find_spec("here_alone")
