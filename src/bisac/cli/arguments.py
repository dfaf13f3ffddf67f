"""Reading arguments: what tyro parses, and what must be known before it can."""

import tomllib
from collections.abc import Callable
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import TypeVar

import tyro

from bisac.errors import BisacError
from bisac.storage import read_file

Command = TypeVar("Command")


def parse(command: Callable[..., Command], name: str, arguments: list[str]) -> Command:
    """What was typed; complains, or shows the help, and exits."""
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(command, prog=f"bisac {name}", args=arguments, config=config)


def flag_value(arguments: list[str], name: str) -> str | None:
    """The last value of a flag, if it is there."""
    found = None
    for flag, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if flag == f"--{name}":
            found = value
        elif flag.startswith(f"--{name}="):
            found = flag.removeprefix(f"--{name}=")
    return found


def flag_words(arguments: list[str], name: str) -> list[str]:
    """The words after a flag of several, read before parsing."""
    found: list[str] = []
    for index, word in enumerate(arguments):
        if word == f"--{name}":
            found = list(takewhile(lambda other: not other.startswith("--"), arguments[index + 1 :]))
    return found


def with_file(arguments: list[str]) -> list[str]:
    """The arguments with those of the TOML file that stands first, before them."""
    if not arguments or not arguments[0].endswith(".toml"):
        return arguments
    try:
        known = tomllib.loads(read_file(Path(arguments[0])).decode())
    except ValueError as error:
        raise BisacError(f"{arguments[0]} is no TOML: {error}.") from error
    words = []
    for name, value in known.items():
        flag, values = f"--{name.replace('_', '-')}", value if isinstance(value, list) else [value]
        if value is True:
            words.append(flag)
        elif name in ("sweep", "env-arg", "env_arg"):  # these are repeated, one value each
            words += [word for each in values for word in (flag, str(each))]
        elif value is not False:
            words += [flag, *map(str, values)]
    return [arguments[0], *words, *arguments[1:]]
