from importlib.metadata import version

import pytest

import bisac
from bisac.cli import run


def test_version_is_that_of_the_package(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"bisac {version('bisac')}\n"
    assert bisac.__version__ == version("bisac")


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_welcome_names_the_flag(arguments, capsys):
    assert run(arguments) == 0
    assert "bisac --version" in capsys.readouterr().out
