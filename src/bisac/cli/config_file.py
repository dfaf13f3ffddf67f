"""Flags of `bisac train` that stand in a file: a TOML file of them, or the config.json of a run."""

import dataclasses
import json
import math
import tomllib
from pathlib import Path
from typing import Any

from bisac.algos import Algorithm, make_algorithm
from bisac.cli.arguments import flag_value
from bisac.errors import BisacError, did_you_mean, reason
from bisac.runs.config import from_config
from bisac.runs.settings import Settings
from bisac.storage import read_file

OTHERS = ("env", "algo", "preset")
"""What can stand in the file beside settings and hyperparameters."""


def with_config(arguments: list[str]) -> list[str]:
    """Return what was typed with the flags of the file that --config names; what was typed counts more."""
    if (name := flag_value(arguments, "config")) is None:
        return arguments
    path, typed = Path(name), _without_config(arguments)
    values = _read(path)
    algo = make_algorithm(flag_value(typed, "algo") or str(values.get("algo", "bisac")), {})
    defaults = _defaults(algo)
    for key in values:
        if key not in defaults:
            raise BisacError(f"{path}: there is no flag '{key}' of bisac train{did_you_mean(key, defaults)}")
    env = values.pop("env", None)
    flags = [word for key, value in values.items() for word in _words(path, key, value, defaults[key])]
    if (place := _place_of_env(typed, defaults)) is not None:
        env = typed.pop(place)
    return [*([] if env is None else [str(env)]), *flags, *typed]


def _place_of_env(typed: list[str], defaults: dict[str, Any]) -> int | None:
    """Return which of the words is the task: the first that is neither a flag nor a flag's value."""
    takes = 0.0  # words that the flag before may still take
    for place, word in enumerate(typed):
        if word.startswith("--"):
            name, assigned, _ = word.removeprefix("--").replace("-", "_").partition("=")
            default = defaults.get(name, defaults.get(name.removeprefix("no_")))
            several = isinstance(default, tuple) and name != "env_arg"
            takes = 0.0 if assigned or isinstance(default, bool) else math.inf if several else 1.0
        elif takes:
            takes -= 1.0
        else:
            return place
    return None


def _without_config(arguments: list[str]) -> list[str]:
    kept, skipped = [], False
    for word in arguments:
        if not skipped and word != "--config" and not word.startswith("--config="):
            kept.append(word)
        skipped = word == "--config"
    return kept


def _defaults(algo: Algorithm[Any]) -> dict[str, Any]:
    """Return every key that a file can have, with its default."""
    fields = {field.name: getattr(of, field.name) for of in (Settings(), algo) for field in dataclasses.fields(of)}
    return dict.fromkeys(OTHERS) | fields


def _read(path: Path) -> dict[str, Any]:
    """Return the values of a file by the names that they have in Python."""
    text = read_file(path).decode(errors="replace")
    try:
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BisacError(f"{path} is no {'JSON' if path.suffix == '.json' else 'TOML'}: {error}.") from error
    if path.suffix == ".json":
        return _of_run(path, values)
    for name, value in values.items():
        if isinstance(value, dict):
            raise BisacError(f"{path}: [{name}] is a table; flags stand alone, such as {name} = ... or steps = 100000.")
    return {name.replace("-", "_"): value for name, value in values.items()}


def _of_run(path: Path, config: Any) -> dict[str, Any]:
    """Return what a run's config.json says of how to train; the new run has a folder of its own."""
    try:
        settings, env = dict(config["run"]), config["env"]
        algo, _ = from_config(config)  # which knows what a file means that is older than some of the hyperparameters
        values = {"env": env, "algo": config["algo"], "preset": "none"} | settings | dataclasses.asdict(algo)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BisacError(f"{path} is not the config.json of a run: {reason(error)}.") from error
    if config.get("env_source", env) != env:
        del values["env"]  # no id: it has to be typed
    return {name: value for name, value in values.items() if value is not None and name not in ("out", "overwrite")}


def _words(path: Path, key: str, value: Any, default: Any) -> list[str]:
    """Return a flag and its values as they are typed."""
    flag, values = f"--{key.replace('_', '-')}", value if isinstance(value, list | tuple) else [value]
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise BisacError(f"{path}: {key} is true or false, not {value!r}.")
        return [] if value == default else [flag if value else flag.replace("--", "--no-", 1)]
    if key == "env_arg":
        return [word for each in values for word in (flag, str(each))]
    return [flag, *map(str, values)]
