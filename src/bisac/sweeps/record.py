"""What a sweep's folder says of the whole: `sweep.json`, all runs ever planned in it and how they were made."""

import dataclasses
import json
import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisac.errors import BisacError
from bisac.runs.config import check_unchanged, to_config
from bisac.runs.folder import RunFolder, provenance
from bisac.storage import read_file, write_atomic
from bisac.sweeps.plan import Contestant, Plan, PlannedRun, fields_of

RECORD = "sweep.json"
FORMAT = 2
"""1 is from before there were normalised critics: its runs have classic ones."""


@dataclass(frozen=True)
class Record:
    """What sweep.json holds: all runs that were ever planned in the folder, and what they have in common."""

    envs: list[str]
    contestants: list[Contestant]
    runs: list[tuple[str, str, int]]
    """Environment, contestant's name and seed of each."""
    settings: dict[str, Any]
    hyperparameters: dict[str, Any]
    commands: list[list[str]]
    provenance: dict[str, Any]
    random_returns: dict[str, float] = dataclasses.field(default_factory=dict)
    """What a random policy gets on each task, from where its scores are counted."""


def enrol(plan: Plan, out: Path, command: Sequence[str], random_return: Callable[[str], float]) -> Record:
    """Record a plan in its folder; one that was there before may grow by tasks, contestants and seeds, not change.

    `command` is what makes the plan when typed; `random_return` measures a task that the record does not
    know yet.
    """
    runs = list(plan.runs(out))
    settings = {
        name: value
        for name, value in dataclasses.asdict(plan.settings).items()
        if name not in ("seed", "out", "overwrite")
    }
    new = Record(
        list(plan.envs),
        list(plan.contestants),
        [(run.env, run.contestant.name, run.seed) for run in runs],
        settings,
        dict(plan.hyperparameters),
        [list(command)],
        provenance() | {"cpu": _cpu()},
    )
    record = new
    if (out / RECORD).exists():
        old = read_record(out)
        _check_alike(old, new, out)
        record = Record(
            list(dict.fromkeys(old.envs + new.envs)),
            list(dict.fromkeys(old.contestants + new.contestants)),
            list(dict.fromkeys(old.runs + new.runs)),
            old.settings,
            old.hyperparameters,
            old.commands if new.commands[0] in old.commands else old.commands + new.commands,
            old.provenance,
            old.random_returns,
        )
    for run in runs:
        _check_begun(run)
    for env in record.envs:
        if env not in record.random_returns:
            record.random_returns[env] = random_return(env)
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / RECORD, (json.dumps({"format": FORMAT} | dataclasses.asdict(record), indent=2) + "\n").encode())
    return record


def read_record(out: Path) -> Record:
    """What `enrol` recorded."""
    path = out / RECORD
    if not path.exists():
        raise BisacError(f"{out} is not a sweep's folder: it has no {RECORD}.")
    try:
        known = json.loads(read_file(path))
        form = known.pop("format")
        contestants = [
            Contestant(c["algo"], tuple((name, _hashable(value)) for name, value in c["settings"]))
            for c in known.pop("contestants")
        ]
        if form == 1 and any("critic_norm" in fields_of(contestant.algo) for contestant in contestants):
            known["hyperparameters"] = {"critic_norm": "none"} | known["hyperparameters"]
        return Record(contestants=contestants, runs=[(e, c, int(s)) for e, c, s in known.pop("runs")], **known)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BisacError(f"{path} is damaged or not one of this bisac's: {error!r}.") from error


def command_line(command: Sequence[str]) -> str:
    """A recorded command as one would type it."""
    return shlex.join(["bisac", *command[1:]])


def _check_alike(old: Record, new: Record, out: Path) -> None:
    """Runs that differ in more than task, contestant and seed do not compare."""
    then, now = (json.loads(json.dumps(record.settings | record.hyperparameters)) for record in (old, new))
    for name in {**then, **now}:
        if then.get(name) != now.get(name):
            flag = name.replace("_", "-")
            again = f"Give --{flag} {then[name]} again, or choose" if name in then else "Leave it out, or choose"
            raise BisacError(
                f"the sweep in {out} was begun with {flag} {then.get(name, 'by default')}, now it is "
                f"{now.get(name, 'by default')}; a sweep grows by tasks, algorithms and seeds only. {again} another "
                f"--out."
            )


def _check_begun(run: PlannedRun) -> None:
    """Refuse to take for one of the sweep's a run that was begun with other settings."""
    run_dir = RunFolder(run.folder)
    if not run_dir.config.exists():
        return
    try:
        check_unchanged(run_dir.read_config(), to_config(run.env, run.algorithm, run.settings))
    except BisacError as error:
        raise BisacError(
            f"{run.folder} holds another run than the sweep's: {error} Or choose another --out."
        ) from error


def _cpu() -> str:
    """The processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
