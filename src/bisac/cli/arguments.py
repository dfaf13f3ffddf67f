"""Reading arguments: what tyro parses, and what must be known before it can."""

import tomllib
from collections.abc import Callable, Sequence
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import TypeVar

import tyro

from bisac.cli.examples import examples
from bisac.display.terminal import open_console
from bisac.errors import BisacError
from bisac.storage import read_file

Command = TypeVar("Command")

LAYOUT = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
"""How tyro turns a dataclass into flags: by the field's name alone, and a boolean one into one flag."""


def parse(command: Callable[..., Command], name: str, arguments: list[str]) -> Command:
    """Return what was typed as the command's dataclass; bad words and --help end the program."""
    try:
        return tyro.cli(command, prog=f"bisac {name}", args=arguments, config=LAYOUT)
    except SystemExit as end:
        if not end.code:  # --help: examples come last, where the eye is
            open_console().print(examples(name), highlight=False, soft_wrap=True)
        raise


def flag_value(arguments: list[str], name: str) -> str | None:
    """Return the last value of a flag, if it is there."""
    found = None
    for flag, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if flag == f"--{name}":
            found = value
        elif flag.startswith(f"--{name}="):
            found = flag.removeprefix(f"--{name}=")
    return found


def flag_words(arguments: list[str], name: str) -> list[str]:
    """Return the words after a flag of several, read before parsing."""
    found: list[str] = []
    for index, word in enumerate(arguments):
        if word == f"--{name}":
            found = list(takewhile(lambda other: not other.startswith("--"), arguments[index + 1 :]))
        elif word.startswith(f"--{name}="):
            found = [word.removeprefix(f"--{name}=")]
    return found


REPEATED = ("sweep", "env-arg")
"""Flags of one value that may stand there several times."""


def from_file(path: Path, after: Sequence[str] = ()) -> list[str]:
    """Return the flags that a TOML file holds under their names, less those that the words after it replace."""
    replaced = {word.removeprefix("--").partition("=")[0] for word in after if word.startswith("--")} - {*REPEATED}
    try:
        known = tomllib.loads(read_file(path).decode())
    except (ValueError, RecursionError) as error:
        raise BisacError(f"{path} is no TOML: {error}.") from error
    words: list[str] = []
    for name, value in known.items():
        if isinstance(value, dict):
            raise BisacError(f"{path}: [{name}] is a table; flags stand alone, such as {name} = ... or steps = 100000.")
        if (flag := name.replace("_", "-")) not in replaced:
            words += _as_flag(flag, value if isinstance(value, list) else [value])
    return words


def _as_flag(name: str, values: list[object]) -> list[str]:
    """Return a flag and its values as they are typed."""
    if name in REPEATED:
        return [word for value in values for word in (f"--{name}", str(value))]
    if name == "seeds":
        return ["--seeds", ",".join(map(str, values))]
    if values[:1] and isinstance(values[0], bool):
        on, off = [f"--{name}"], [] if name == "dry-run" else [f"--{name}=false"]
        return on if values[0] else off
    return [f"--{name}", *map(str, values)]
