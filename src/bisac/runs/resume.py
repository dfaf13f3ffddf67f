"""Going on with runs, as if they had never stopped: from their newest whole checkpoint, or from their seed."""

import dataclasses
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from bisac.algos import Algorithm
from bisac.collect.collector import Collector
from bisac.collect.dispatch import Source, source_name
from bisac.envs.task import EnvSource
from bisac.errors import BisacError
from bisac.machine import offer_devices, tune_process
from bisac.policies.policy import load_policy
from bisac.runs.checkpoint.checkpoints import Checkpoints, common_step
from bisac.runs.checkpoint.contents import fitting, load
from bisac.runs.config import check_unchanged, differences, from_config, to_config
from bisac.runs.demos import DIGEST, kept
from bisac.runs.events import Event, EventStream, Finished, Outcome, Started, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import Log, read_log
from bisac.runs.run import Run
from bisac.runs.session import Session
from bisac.runs.settings import Settings, TrackerName
from bisac.runs.start import Attach, begun, fresh_record, opened
from bisac.runs.trackers import check_installed
from bisac.runs.tracking import tracked
from bisac.types import require_float32


class Found(NamedTuple):
    """A run as it was found on disk."""

    folder: RunFolder
    recorded: dict[str, Any]
    """The content of config.json."""
    algo: Algorithm[Any]
    settings: Settings
    """The settings that it goes on with."""
    checkpoints: Checkpoints
    warnings: list[Warned]

    @property
    def config(self) -> dict[str, Any]:
        """What the run is made of from now on."""
        return to_config(str(self.recorded.get("env")), self.algo, self.settings)


def resume(
    paths: Sequence[Path],
    steps: int | None = None,
    checkpoint_every: int | None = None,
    source: Source | None = None,
    eval_env: EnvSource | None = None,
    attach: Attach | None = None,
    track: TrackerName | None = None,
) -> EventStream:
    """Return the events of a run that goes on from its folder, or of several that were started side by side.

    Only how long, how often it is saved and who is told may change. `source` is needed where the run was trained on
    something other than an id, and `eval_env` where it was evaluated in such another. `attach` is given the session
    before its first step.
    """
    changes = {"steps": steps, "checkpoint_every": checkpoint_every, "track": track}
    return EventStream(tracked(_resume(paths, changes, source, eval_env, attach)))


def _resume(
    paths: Sequence[Path],
    changes: dict[str, Any],
    source: Source | None,
    eval_env: EnvSource | None,
    attach: Attach | None,
) -> Generator[Event, None, None]:
    require_float32()
    tune_process()
    offer_devices(len(paths))
    steps = changes["steps"]
    with ExitStack() as held:
        found: list[Found] = []
        for path in paths:
            folder = RunFolder(path)
            if not folder.holds_a_run:
                raise BisacError(f"{path} is not a run folder: it has no config.json.")
            held.enter_context(folder.held())
            found.append(_find(folder, {name: value for name, value in changes.items() if value is not None}))
        for each in found:
            yield from each.warnings
        left = [outcome for each in found if (outcome := _left_without_checkpoints(each, steps))]
        if len(left) == len(found):
            yield Finished(tuple(left))
            return
        if left:
            raise BisacError(f"{left[0].folder.path} is complete, others are not; resume each of them by itself.")
        _meet(found)
        for each in found:
            _check_changes(each, steps)
            if not each.checkpoints.kept and read_log(each.folder):
                yield Warned(f"there is no checkpoint to go on from: {each.folder.path} begins anew, from its seed.")
        first = found[0]
        check_installed(first.settings.track)
        made_of = _id_of(first) if source is None else source
        judged_in = _judged_in(first) if eval_env is None else eval_env
        seeds = [each.settings.seed for each in found]
        demos = kept(first.recorded, first.folder)
        with closing(opened(made_of, first.algo, first.settings, seeds, judged_in, demos)) as collector:
            session, told = _restored(collector, found)
            yield from told
            for each, run in zip(found, session.runs, strict=True):
                run.config |= _sources(each, source, session.state.step)
                each.folder.write_config(run.config)
            yield Started(tuple(each.folder for each in found), session.state.step, first.settings.steps)
            if session.state.step < first.settings.steps:
                for each in found:  # of an earlier stop; its checkpoint has it
                    each.folder.policy.unlink(missing_ok=True)
            yield from begun(session, attach)


def _find(folder: RunFolder, changes: dict[str, Any]) -> Found:
    """Read what a folder says of its run."""
    checkpoints, warnings = Checkpoints(folder.checkpoints), []
    problems = checkpoints.recover()
    if problems and not checkpoints.kept:
        raise BisacError(f"no checkpoint of {folder.path} is whole: {' '.join(problems)}")
    for problem in problems:
        warnings.append(Warned(f"{problem} Using the checkpoint of step {checkpoints.kept[-1].step:,} instead."))
    try:
        recorded = folder.read_config()
        algo, settings = from_config(recorded)
    except BisacError as error:
        if not checkpoints.kept:
            raise
        warnings.append(Warned(f"{error} Using the checkpoint's copy."))
        recorded = checkpoints.kept[-1].config
        algo, settings = from_config(recorded)
    return Found(folder, recorded, algo, dataclasses.replace(settings, **changes), checkpoints, warnings)


def _left_without_checkpoints(found: Found, steps: int | None) -> Outcome | None:
    """Return what a run without checkpoints has come to; None where it goes on, or its seed repeats what was lost.

    What it did learn is not overwritten: a complete run is left as it is, any other refused.
    """
    if found.checkpoints.kept:
        return None
    folder, recorded_for = found.folder, from_config(found.recorded)[1]
    rows = read_log(folder)
    taken = int(rows[-1]["step"] or 0) if rows else 0
    complete = taken >= recorded_for.steps
    if not complete and (taken < recorded_for.checkpoint_every or not folder.policy.exists()):
        return None
    if complete and folder.policy.exists() and taken >= (steps or 0):
        return Outcome(load_policy(folder.policy), folder, rows, None, resumable=False)
    has = f"a policy of step {taken:,}" if folder.policy.exists() else f"the log of a run of {taken:,} steps"
    raise BisacError(
        f"{folder.path} has {has}, but no checkpoint to go on from; 'bisac eval' judges a policy, 'bisac train' starts "
        f"another run."
    )


def _meet(found: Sequence[Found]) -> None:
    """Let runs that are trained side by side go on from the newest step at which each of them was saved.

    Where one of them was never saved, and none more than once, all begin anew: their seeds repeat what was lost.
    """
    for each in found:
        if to_config("", each.algo, _shared(each.settings)) != to_config("", found[0].algo, _shared(found[0].settings)):
            raise BisacError(f"{each.folder.path} has other settings than {found[0].folder.path}.")
    common = common_step([each.checkpoints for each in found])
    saved = [len(each.checkpoints.kept) for each in found]
    if common is None and (all(saved) or max(saved) > 1):  # else one was stopped before the first save of all
        names = ", ".join(str(each.folder.path) for each in found)
        raise BisacError(f"these runs were not saved at one step; resume each of them by itself: {names}.")
    for each in found:
        each.checkpoints.kept = [kept for kept in each.checkpoints.kept if common is not None and kept.step <= common]


def _shared(settings: Settings) -> Settings:
    """Return the settings less those in which runs that go side by side differ."""
    return dataclasses.replace(settings, seed=0, out=None)


def _check_changes(found: Found, steps: int | None) -> None:
    """Refuse to go on where settings changed that make a run what it is, or with fewer steps than were taken."""
    if not found.checkpoints.kept:
        return
    newest = found.checkpoints.kept[-1]
    check_unchanged(newest.config, found.config)
    # A run ends with a whole stride, and so may have taken more steps than it was started for.
    started_for = from_config(found.recorded)[1].steps
    if steps is not None and steps < min(started_for, newest.step):
        raise BisacError(f"the run has taken {newest.step:,} steps already; --steps must be at least that.")


def _restored(collector: Collector, found: Sequence[Found]) -> tuple[Session, list[Warned]]:
    """Return the session that goes on with the runs, and what is not as it was."""
    told = [Warned(text) for text in differences(found[0].recorded)]
    if all(each.checkpoints.kept for each in found):
        loaded = [load(each.checkpoints.kept[-1], collector) for each in found]
        records = [record for _, record in loaded]
        with fitting(found[0].checkpoints.kept[-1]):
            state, strayed = collector.restore([snapshot for snapshot, _ in loaded])
    else:  # stopped before the first checkpoint: the same seed repeats what was lost
        records = [fresh_record(collector) for _ in found]
        state, strayed = collector.start(), [0] * len(found)
    for record, count in zip(records, strayed, strict=True):
        if count:
            record.inexact_resumes += 1
            told.append(
                Warned(
                    f"{collector.spec.env_id} does not repeat itself when seeded: {count} of "
                    f"{collector.request.num_envs} environments begin a new episode, so this resume is not exact "
                    f"(inexact_resumes in progress.csv)."
                )
            )
    runs = [
        Run(each.algo, each.settings, each.folder, each.config, record, each.checkpoints, Log(each.folder))
        for each, record in zip(found, records, strict=True)
    ]
    return Session(collector, state, runs, found[0].settings), told


def _id_of(found: Found) -> str:
    """Return the id that a run was trained on; refuse to guess where it was trained on something else."""
    env, source = str(found.recorded.get("env")), found.recorded.get("env_source")
    if source is not None and source != env:
        raise BisacError(
            f"{found.folder.path} was trained on {source}, which is no id of an environment; resume it in Python: "
            f"bisac.resume({str(found.folder.path)!r}, env=...)."
        )
    return env


def _judged_in(found: Found) -> str | None:
    """Return the id that a run was evaluated in, if that was another than it was trained on; refuse to guess it."""
    if (source := found.recorded.get("eval_env_source")) is not None:
        raise BisacError(
            f"{found.folder.path} was evaluated in {source}, which is no id of an environment; give it again: "
            f"bisac.resume({str(found.folder.path)!r}, env=..., eval_env=...)."
        )
    return found.recorded.get("eval_env")


def _sources(found: Found, source: Source | None, step: int) -> dict[str, Any]:
    """Return what config.json says of where the environments came from: at the start, and at each resume since."""
    names = ("env_source", "eval_env", "eval_env_source", DIGEST)
    began = {name: found.recorded[name] for name in names if name in found.recorded}
    history = list(found.recorded.get("resumed_with", []))
    if source is not None:
        last = history[-1]["env_source"] if history else began.get("env_source")
        if (now := source_name(source)) != last:
            history.append({"step": step, "env_source": now})
    return began | ({"resumed_with": history} if history else {})
