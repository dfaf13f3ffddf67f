"""Which runs of a sweep one process trains side by side: the seeds of a contestant on a task of the device."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from bisac.envs.device.sources import is_on_device
from bisac.runs.folder import RunFolder
from bisac.sweeps.plan import PlannedRun


def side_by_side(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Return the runs, those that one process can train as one whose `beside` has the others.

    Runs that were begun go on together if they were saved at one step, or none of them was.
    """
    groups: list[list[PlannedRun]] = []
    for run in runs:
        fitting = (group for group in groups if is_on_device(run.env) and _fit([*group, run]))
        if (group := next(fitting, None)) is None:
            groups.append([run])
        else:
            group.append(run)
    return [_joined(group) for group in groups]


def _fit(group: Sequence[PlannedRun]) -> bool:
    """Return whether one process can train these runs."""
    first = group[0]
    if any((run.env, run.contestant) != (first.env, first.contestant) for run in group):
        return False
    begun = {_begun(run.folder) for run in group}
    saved = [{path.name for path in RunFolder(run.folder).checkpoints.glob("step-*")} for run in group]
    return len(begun) == 1 and (not any(saved) or bool(set.intersection(*saved)))


def _begun(folder: Path) -> bool:
    return RunFolder(folder).holds_a_run


def _joined(group: Sequence[PlannedRun]) -> PlannedRun:
    first, *others = group
    if not others:
        return first
    words = iter(first.arguments)
    arguments: list[str] = []
    for word in words:
        if word in ("--seed", "--out"):
            next(words)
        else:
            arguments.append(word)
    seeds = ",".join(str(run.seed) for run in group)
    arguments += ["--seeds", seeds, "--out", str(first.folder.parent)]
    return dataclasses.replace(first, arguments=tuple(arguments), beside=tuple(others))
