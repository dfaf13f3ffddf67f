"""A run's config.json: all that it is made of, written, read again, and compared before a run goes on."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from bisac.algos import Algorithm, algorithm_from_json, algorithm_name, module_of
from bisac.errors import BisacError, reason
from bisac.runs.folder import provenance
from bisac.runs.settings import OF_WATCHING, Settings
from bisac.validate import require_types

MAY_CHANGE = ("steps", "checkpoint_every", "out", "overwrite", *OF_WATCHING)
"""Settings that a resumed run may have other than before."""

PATHS = ("out", "init")
"""Settings that are paths, which JSON has as strings."""


def to_config(env_id: str, algo: Algorithm[Any], settings: Settings) -> dict[str, Any]:
    """Return all that a run is made of, as config.json and the checkpoints hold it."""
    paths = {name: os.fspath(path) if (path := getattr(settings, name)) else None for name in PATHS}
    run = dataclasses.asdict(settings) | paths
    return {
        "format": 1,
        "env": env_id,
        "algo": algorithm_name(algo),
        **module_of(algo),
        "hyperparameters": dataclasses.asdict(algo),
        "run": run,
    }


def from_config(config: dict[str, Any]) -> tuple[Algorithm[Any], Settings]:
    """Return the algorithm and the settings that a run was started with."""
    try:
        run = dict(config["run"])
        paths: dict[str, Any] = {name: Path(path) if (path := run.pop(name, None)) else None for name in PATHS}
        env_arg = tuple(run.pop("env_arg", ()))
        settings = Settings(**run, **paths, env_arg=env_arg)
        require_types(settings)
        return algorithm_from_json(config["algo"], config["hyperparameters"], config.get("algo_module")), settings
    except (AttributeError, KeyError, TypeError) as error:
        raise BisacError(f"config.json is not one of this bisac's: {reason(error)}.") from error


class Change(NamedTuple):
    """A setting that two configs of one run do not agree on."""

    name: str
    """What it is called."""
    then: Any
    """What it was."""
    now: Any
    """What it is."""


def first_change(then: dict[str, Any], now: dict[str, Any]) -> Change | None:
    """Return a setting that makes two configs those of different runs; None where they are of the same one."""
    old, new = _flat(then), _flat(now)
    names = {**new, **old}  # in their order: a setting comes before those that depend on it
    changes = (Change(name, old.get(name), new.get(name)) for name in names if name not in MAY_CHANGE)
    return next((change for change in changes if change.then != change.now), None)


def check_unchanged(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on under another config than the one that was saved: it would no longer be one run."""
    if change := first_change(then, now):
        raise BisacError(
            f"{change.name} is {change.now!r} in config.json and was {change.then!r} when the run was saved; it "
            f"cannot change within a run. Restore it, or start another run."
        )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that make a run what it is, by name, in JSON's types; an older file's as it means them."""
    try:
        same = json.loads(json.dumps(to_config(config["env"], *from_config(config))))
        return {"env": same["env"], "algo": same["algo"], **same["hyperparameters"], **same["run"]}
    except (KeyError, TypeError) as error:
        raise BisacError(f"the checkpoint's config is not one of this bisac's: {reason(error)}.") from error


def differences(recorded: dict[str, Any]) -> list[str]:
    """Return a sentence where this is not the machine on which the run was saved, which may cost the last bits."""
    then, now = (
        {"cores": source.get("cores"), "platform": source.get("platform"), **source.get("versions", {})}
        for source in (recorded, provenance())
    )
    changed = [
        f"{name} {then[name]} then, {now[name]} now"
        for name in now
        if then.get(name) is not None and then[name] != now[name]
    ]
    if not changed:
        return []
    return [f"not the same machine or versions ({'; '.join(changed)}): the last bits of what follows may differ."]
