"""What a search's folder says of the whole: tune.json, what is searched and how it was begun.

What was tried is in the study, and what came of it in the trials' own folders.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisac.algos import value_from_json
from bisac.errors import BisacError, reason
from bisac.runs.folder import provenance
from bisac.runs.settings import Settings
from bisac.storage import read_file, write_atomic
from bisac.sweeps.contestants import Contestant
from bisac.sweeps.plan import Plan, PlannedRun
from bisac.sweeps.record import processor
from bisac.tuning.space import Space, from_json, to_json
from bisac.validate import require_types

RECORD = "tune.json"
"""The name of the record in the search's folder."""


@dataclass(frozen=True)
class Tuning:
    """What is searched: everything that makes a trial but the values that are tried."""

    env: str
    """The task's id."""
    contestant: Contestant
    """The algorithm, with the hyperparameters that are the same in all trials."""
    settings: Settings
    """The settings of every trial; trial K has the seed that many above this one."""
    space: Space
    """Where to look for each of the other hyperparameters."""
    prune: bool = True
    """Whether to end trials early that do worse than most did by then."""

    def run(self, out: Path, number: int, values: Mapping[str, Any]) -> PlannedRun:
        """Return the run of a trial."""
        own = dataclasses.replace(self.contestant, settings=(*self.contestant.settings, *values.items()))
        plan = Plan((self.env,), (own,), (self.settings.seed,), self.settings)
        return plan.run(self.env, own, self.settings.seed + number, out / trial_name(number))

    @property
    def evaluations(self) -> int:
        """How often a trial that is not ended early is evaluated, about."""
        settled = self.run(Path(), 0, {}).settings
        return max(1, settled.steps // settled.evaluation_interval)

    def to_json(self) -> dict[str, Any]:
        """Return it as the record has it."""
        return {
            "env": self.env,
            "algo": self.contestant.algo,
            "fixed": dict(self.contestant.settings),
            **self.settings.shared,
            "seed": self.settings.seed,
            "search": {name: to_json(dimension) for name, dimension in self.space.items()},
            "prune": self.prune,
        }


@dataclass(frozen=True)
class TuningRecord:
    """What tune.json holds."""

    tuning: Tuning
    """What is searched."""
    commands: list[list[str]]
    """The commands that searched in this folder, each as its words."""
    provenance: dict[str, Any]
    """The versions and the machine of the first command."""


def trial_name(number: int) -> str:
    """Return the name of a trial's folder."""
    return f"trial-{number:04}"


def enrol(tuning: Tuning, out: Path, command: Sequence[str]) -> None:
    """Record a search in its folder; one that was begun there goes on only as it is."""
    record = TuningRecord(tuning, [list(command)], provenance() | {"cpu": processor()})
    if (out / RECORD).exists():
        old = read_record(out)
        _check_same(old.tuning, tuning, out)
        commands = old.commands if list(command) in old.commands else [*old.commands, list(command)]
        record = dataclasses.replace(old, commands=commands)
    content = {"format": 1, "tuning": tuning.to_json(), "commands": record.commands, "provenance": record.provenance}
    write_atomic(out / RECORD, (json.dumps(content, indent=2) + "\n").encode())


def read_record(out: Path) -> TuningRecord:
    """Read what `enrol` recorded."""
    path = out / RECORD
    if not path.exists():
        raise BisacError(f"{out} is not a search's folder: it has no {RECORD}.")
    try:
        known = json.loads(read_file(path))
        told = dict(known["tuning"])
        contestant = Contestant(told.pop("algo"), tuple((k, value_from_json(v)) for k, v in told.pop("fixed").items()))
        space = {name: from_json(value) for name, value in told.pop("search").items()}
        env, prune = told.pop("env"), told.pop("prune")
        if not (env.isprintable() and isinstance(known["provenance"].get("versions", {}), dict)):
            raise ValueError(f"no search is of {env!r}, or tells so of its versions")
        settings = Settings(**{name: value_from_json(value) for name, value in told.items()})
        require_types(settings)
        tuning = Tuning(env, contestant, settings, space, bool(prune))
        tuning.run(out, 0, {})  # complains where the settings do not go together
        return TuningRecord(tuning, [[*map(str, words)] for words in known["commands"]], dict(known["provenance"]))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, BisacError) as error:
        raise BisacError(f"{path} is damaged or not one of this bisac's: {reason(error)}.") from error


def _check_same(old: Tuning, new: Tuning, out: Path) -> None:
    """Refuse to go on with another search than the one that was begun: its trials would not compare."""
    then, now = (_flat(json.loads(json.dumps(tuning.to_json()))) for tuning in (old, new))
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            raise BisacError(
                f"the search in {out} was begun with {name} {then.get(name, 'not given')}, now it is "
                f"{now.get(name, 'not given')}; a search grows by trials only. Begin as before, or "
                f"choose another --out."
            )


def _flat(told: dict[str, Any]) -> dict[str, Any]:
    looked = {f"--search {name}": _words(value) for name, value in told.pop("search").items()}
    return told | told.pop("fixed") | looked


def _words(dimension: dict[str, Any]) -> str:
    return str(from_json(dimension))
