"""What a sweep's folder says of the whole: sweep.json, all runs ever planned in it and how they were made.

It must not know how far the runs have come: their own folders tell that.
"""

import dataclasses
import json
import math
import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisac.algos import value_from_json
from bisac.errors import BisacError, reason
from bisac.runs.config import first_change, to_config
from bisac.runs.folder import RunFolder, provenance
from bisac.storage import read_file, write_atomic
from bisac.sweeps.contestants import Contestant, by_name, fields_of
from bisac.sweeps.plan import Plan, PlannedRun

LONGEST_NAME = 256
"""Bytes that no name of a folder has."""

RECORD = "sweep.json"
"""The name of the record in the sweep's folder."""
FORMAT = 2
"""The form of the record. Form 1 is from before there were normalised critics: its runs have classic ones."""


@dataclass(frozen=True)
class SweepRecord:
    """What sweep.json holds: all runs that were ever planned in the folder, and what they have in common."""

    envs: list[str]
    """The tasks' ids, in the order they were given in."""
    contestants: list[Contestant]
    """Whoever is compared, in the order they were given in."""
    runs: list[tuple[str, str, int]]
    """The task, the contestant's name and the seed of each run."""
    settings: dict[str, Any]
    """The settings that all runs share."""
    hyperparameters: dict[str, Any]
    """The hyperparameters that were given for all contestants that have them."""
    commands: list[list[str]]
    """The commands that planned runs in this folder, each as its words."""
    provenance: dict[str, Any]
    """The versions and the machine of the first command."""
    random_returns: dict[str, float] = dataclasses.field(default_factory=dict)
    """The return of a random policy on each task, from which the task's scores are counted."""


def enrol(plan: Plan, out: Path, command: Sequence[str], random_return: Callable[[str], float]) -> SweepRecord:
    """Record a plan in its folder; one that was there before may grow by tasks, contestants and seeds, not change.

    `command` is what makes the plan when typed; `random_return` measures a task that the record does not
    know yet.
    """
    runs = list(plan.runs(out))
    new = SweepRecord(
        list(plan.envs),
        list(plan.contestants),
        [(run.env, run.contestant.name, run.seed) for run in runs],
        plan.settings.shared,
        dict(plan.hyperparameters),
        [list(command)],
        provenance() | {"cpu": processor()},
    )
    record = new
    if (out / RECORD).exists():
        old = read_record(out)
        _check_alike(old, new, out)
        record = SweepRecord(
            list(dict.fromkeys(old.envs + new.envs)),
            by_name(old.contestants + new.contestants),
            list(dict.fromkeys(old.runs + new.runs)),
            old.settings,
            old.hyperparameters,
            old.commands if new.commands[0] in old.commands else old.commands + new.commands,
            old.provenance,
            old.random_returns,
        )
    for run in runs:
        check_begun(run)
    for env in record.envs:
        if env not in record.random_returns:
            record.random_returns[env] = random_return(env)
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / RECORD, (json.dumps({"format": FORMAT} | dataclasses.asdict(record), indent=2) + "\n").encode())
    return record


def read_record(out: Path) -> SweepRecord:
    """Read what `enrol` recorded."""
    path = out / RECORD
    if not path.exists():
        raise BisacError(f"{out} is not a sweep's folder: it has no {RECORD}.")
    try:
        known = json.loads(read_file(path))
        form = known.pop("format")
        contestants = [
            Contestant(c["algo"], tuple((name, value_from_json(value)) for name, value in c["settings"]))
            for c in known.pop("contestants")
        ]
        if form == 1 and any("critic_norm" in fields_of(contestant.algo) for contestant in contestants):
            known["hyperparameters"] = {"critic_norm": "none"} | known["hyperparameters"]
        record = SweepRecord(contestants=contestants, runs=[(e, c, int(s)) for e, c, s in known.pop("runs")], **known)
        _check_names(record, path)
        _check_sound(record)
        return record
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BisacError(f"{path} is damaged or not one of this bisac's: {reason(error)}.") from error


def _check_names(record: SweepRecord, path: Path) -> None:
    """Say how a sweep goes on whose folders have the names of an earlier version."""
    unknown = {name for _, name, _ in record.runs} - {contestant.name for contestant in record.contestants}
    for contestant in record.contestants:
        if contestant.earlier_name in unknown and contestant.earlier_name.isprintable():
            raise BisacError(
                f"{contestant.earlier_name} is called {contestant.name} now: rename the folders of that name in "
                f"{path.parent}, and replace it in the runs of {path.name}."
            )


def _check_sound(record: SweepRecord) -> None:
    """Refuse what no sweep wrote: a stranger's file can claim anything."""
    names = [contestant.name for contestant in record.contestants]
    steps, versions = record.settings["steps"], record.provenance.get("versions", {})
    sound = (
        all(isinstance(word, str) and word.isprintable() for word in (*record.envs, *names))
        and all(len(word.encode()) < LONGEST_NAME for word in (*record.envs, *names))
        and all(env in record.envs and name in names for env, name, _ in record.runs)
        and isinstance(steps, int)
        and steps > 0
        and all(math.isfinite(value) for value in record.random_returns.values())
        and all(isinstance(command, list) for command in record.commands)
        and all(isinstance(word, str) for command in record.commands for word in command)
        and all(isinstance(part, dict) for part in (record.settings, record.hyperparameters, versions))
        and bool(record.envs and record.contestants and record.commands)
    )
    if not sound:
        raise ValueError("its fields contradict each other")


def command_line(command: Sequence[str]) -> str:
    """Return a recorded command as one would type it."""
    return shlex.join(["bisac", *command[1:]])


def _check_alike(old: SweepRecord, new: SweepRecord, out: Path) -> None:
    """Refuse a plan whose runs differ from the folder's in more than task, contestant and seed: they do not compare."""
    then, now = (json.loads(json.dumps(record.settings | record.hyperparameters)) for record in (old, new))
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            flag = name.replace("_", "-")
            told, now_told = (_told(values.get(name)) for values in (then, now))
            again = f"Give {_flag(flag, then[name])} again" if told else f"Leave --{flag} out"
            raise BisacError(
                f"the sweep in {out} was begun with {flag} {told or 'by default'}, now it is "
                f"{now_told or 'by default'}; a sweep grows by tasks, algorithms and seeds only. {again}, or choose "
                f"another --out."
            )


def _told(value: Any) -> str:
    """Return a setting's value as words of a command line; nothing for one that is left to the defaults."""
    return "" if value is None else " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _flag(flag: str, value: Any) -> str:
    """Return a flag with its value as one types it."""
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    several = value if isinstance(value, list) and flag == "env-arg" else [value]
    return " ".join(f"--{flag} {_told(each)}" for each in several)


def check_begun(run: PlannedRun) -> None:
    """Refuse to take for a planned run one that was begun in its folder with other settings."""
    found = RunFolder(run.folder)
    if not found.config.exists():
        return
    config = found.read_config()
    steps, planned = config["run"].get("steps"), run.settings.steps
    if isinstance(steps, int) and steps < planned:
        again = command_line(["bisac", "resume", str(run.folder), "--steps", str(planned)])
        raise BisacError(f"{run.folder} was ended at {steps:,} steps, the sweep has {planned:,}: type '{again}' first.")
    if change := first_change(config, to_config(run.env, run.algorithm, run.settings)):
        versions = (source.get("versions", {}).get("bisac") for source in (config, provenance()))
        then, now = versions
        finish = "" if then is None or then == now else f", or finish what is there with bisac {then}, which began it"
        raise BisacError(
            f"{run.folder} holds another run than the planned one: there {change.name} is {change.then!r}, here it is "
            f"{change.now!r}. Choose another --out{finish}."
        )


def processor() -> str:
    """Return the processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
