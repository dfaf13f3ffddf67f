"""What a sweep begins, goes on with and leaves alone, and what it tells of that; with an engine that only pretends."""

import dataclasses
import errno
import signal

import pytest
from made_up_sweep import PLAN, pretend

from bisac.runs.folder import RunFolder
from bisac.sweeps import execute as module
from bisac.sweeps.engines import launch, local
from bisac.sweeps.engines.base import EndedProcess, Engine
from bisac.sweeps.events import RunEnded, RunLost, RunStarted, SweepFinished, SweepProgressed
from bisac.sweeps.execute import execute


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "INTERVAL", 0.01)


def name(run):
    return "/".join(run.folder.parts[-2:])


class PretendEngine:
    """Ends each run at the next look; `codes` says how, by the last two names of its folder."""

    slots = 2

    def __init__(self, codes=(), on_start=None):
        self.codes, self.on_start, self.started, self.running, self.told = dict(codes), on_start, [], [], []

    def room(self):
        return len(self.running) < self.slots

    def start(self, run):
        self.started.append(name(run))
        self.running.append(run)
        if self.on_start:
            self.on_start(self)
        run.folder.mkdir(parents=True, exist_ok=True)
        with (run.folder / "sweep.log").open("a") as log:
            log.write("begun\n")

    def ended(self):
        ended = [EndedProcess(run, self.codes.get(name(run), 0)) for run in self.running]
        for each in ended:
            pretend(each.run, 50 if each.code else 100)
        self.running = []
        return ended

    def stop(self, number):
        self.told.append(number)

    def close(self):
        self.told.append("closed")


class PatientEngine(PretendEngine):
    """Ends no run before it is told to."""

    def ended(self):
        return super().ended() if self.told else []


def all_events(runs, engine):
    with execute(runs, engine) as events:
        return list(events)


def outcome_of(runs, engine):
    *_, last = all_events(runs, engine)
    assert isinstance(last, SweepFinished)
    return last


def fail_at(kind, error, runs, engine):
    """Watch a sweep, and fail at the first event of a kind."""
    with execute(runs, engine) as events:
        for event in events:
            if isinstance(event, kind):
                raise error


def test_pretended_engine_is_an_engine():
    assert isinstance(PretendEngine(), Engine)


def test_only_what_is_not_complete_is_run_and_a_failure_stops_nothing_else(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    pretend(runs[0], 100)
    pretend(runs[1], 100, policy=False)  # killed before it wrote its policy
    engine = PretendEngine({"bisac/seed0": 2})
    outcome = outcome_of(runs, engine)
    assert engine.started == ["bisac/seed0", "sac/seed1", "bisac/seed1"]
    assert engine.told == ["closed"]
    assert outcome.failed == {runs[1].folder: "exit code 2"}
    assert outcome.complete == [runs[0], runs[2], runs[3]]
    again = PretendEngine()
    assert outcome_of(runs, again).failed == {}
    assert again.started == ["bisac/seed0"]


def test_events_tell_each_start_and_end_and_how_far_all_have_come(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    events = all_events(runs, PretendEngine({"bisac/seed0": 2}))
    told = [
        (type(event).__name__, name(event.run if isinstance(event, RunStarted) else event.process.run))
        for event in events
        if isinstance(event, RunStarted | RunEnded)
    ]
    assert told == [
        *(("RunStarted", which) for which in ("sac/seed0", "bisac/seed0")),
        *(("RunEnded", which) for which in ("sac/seed0", "bisac/seed0")),
        *(("RunStarted", which) for which in ("sac/seed1", "bisac/seed1")),
        *(("RunEnded", which) for which in ("sac/seed1", "bisac/seed1")),
    ]
    ended = {name(event.process.run): event for event in events if isinstance(event, RunEnded)}
    assert ended["sac/seed0"].progress.complete
    assert (ended["bisac/seed0"].progress.step, ended["bisac/seed0"].process.code) == (50, 2)
    first, second = (event for event in events if isinstance(event, SweepProgressed))
    assert [sum(progress.complete for progress in event.told.values()) for event in (first, second)] == [1, 3]
    assert first.failed == second.failed == {runs[1].folder: "exit code 2"}
    assert first.remaining == pytest.approx((10 + 10 + 5) / 2)  # a tenth of a second a step, two at a time


def test_runs_that_failed_side_by_side_go_on_each_by_itself(tmp_path, monkeypatch):
    """One of them may have failed them all; the next try would end as that one did."""
    runs = [run for run in PLAN.runs(tmp_path) if run.contestant.algo == "sac"]
    together = dataclasses.replace(runs[0], beside=(runs[1],))
    monkeypatch.setattr(module, "side_by_side", lambda _: [together])

    class Engine(PretendEngine):
        def ended(self):
            for run in self.running:
                for each in run.all:
                    pretend(each, 50)
            return super().ended()

    engine = Engine({"sac/seed0": 1})
    outcome = outcome_of(runs, engine)
    assert engine.started == ["sac/seed0", "sac/seed0", "sac/seed1"]
    assert (outcome.complete, outcome.failed) == ([runs[1]], {runs[0].folder: "exit code 1"})
    for run in runs:
        pretend(run, 50)
    stopped = Engine({"sac/seed0": 128 + signal.SIGTERM})  # as somebody wished
    assert outcome_of(runs, stopped).failed.keys() == {run.folder for run in runs}
    assert stopped.started == ["sac/seed0"]


class LosingEngine(PretendEngine):
    """Loses what the first runs ran on, once."""

    def ended(self):
        if len(self.started) > self.slots:
            return super().ended()
        lost, self.running = [EndedProcess(run, None, "its worker was lost", lost=True) for run in self.running], []
        return lost


def test_runs_that_lost_their_workers_are_told_and_go_on_before_the_others(tmp_path):
    runs, engine = list(PLAN.runs(tmp_path)), LosingEngine()
    *events, outcome = all_events(runs, engine)
    assert isinstance(outcome, SweepFinished)
    lost = [event.process for event in events if isinstance(event, RunLost)]
    assert [(name(process.run), process.reason) for process in lost] == [
        ("sac/seed0", "its worker was lost"),
        ("bisac/seed0", "its worker was lost"),
    ]
    assert sorted(engine.started[2:4]) == ["bisac/seed0", "sac/seed0"]
    assert (outcome.complete, outcome.failed) == (runs, {})
    begun = [name(event.run) for event in events if isinstance(event, RunStarted)]
    assert sorted(begun) == sorted([*engine.started])  # the second time is told too


def test_lost_run_is_not_begun_again_once_the_sweep_is_to_stop(tmp_path):
    engine = LosingEngine(on_start=lambda _: signal.raise_signal(signal.SIGTERM))
    outcome = outcome_of(list(PLAN.runs(tmp_path)), engine)
    assert engine.started == ["sac/seed0"]
    assert outcome.stopped_by == signal.SIGTERM


def test_run_that_waits_in_the_engine_has_not_started(tmp_path):
    engine = PatientEngine()
    engine.start = lambda run: engine.running.append(run)
    with execute(list(PLAN.runs(tmp_path)), engine) as events:
        first = next(events)
    assert isinstance(first, SweepProgressed)
    assert first.running == set()


def test_signal_is_passed_on_and_nothing_more_is_started(tmp_path):
    engine = PatientEngine(on_start=lambda _: signal.raise_signal(signal.SIGTERM))
    outcome = outcome_of(list(PLAN.runs(tmp_path)), engine)
    assert engine.started == ["sac/seed0"]
    assert outcome.stopped_by == signal.SIGTERM
    assert engine.told == [signal.SIGTERM, "closed"]


def test_run_that_cannot_be_started_stops_no_other(tmp_path):
    def refuse_first(engine):
        if len(engine.started) == 1:
            engine.running.pop()
            raise OSError(errno.ENOSPC, "No space left on device", "sweep.log")

    runs = list(PLAN.runs(tmp_path))
    outcome = outcome_of(runs, PretendEngine(on_start=refuse_first))
    assert outcome.failed == {runs[0].folder: "No space left on device: sweep.log"}
    assert outcome.complete == runs[1:]


def test_runs_save_themselves_when_whoever_watches_fails(tmp_path):
    engine = PatientEngine()
    with pytest.raises(RuntimeError, match="no terminal"):
        fail_at(SweepProgressed, RuntimeError("no terminal"), list(PLAN.runs(tmp_path)), engine)
    assert engine.told == [signal.SIGTERM, "closed"]
    assert engine.running == []  # it was waited for


def test_runs_save_themselves_when_the_sweep_is_left(tmp_path):
    engine = PatientEngine()
    with execute(list(PLAN.runs(tmp_path)), engine) as events:
        for event in events:
            if isinstance(event, SweepProgressed):
                break
    assert engine.told == [signal.SIGTERM, "closed"]
    assert engine.running == []


def test_second_interruption_waits_for_nobody(tmp_path):
    engine = PatientEngine()
    with pytest.raises(KeyboardInterrupt):
        fail_at(SweepProgressed, KeyboardInterrupt, list(PLAN.runs(tmp_path)), engine)
    assert engine.told == ["closed"]


def test_failure_at_the_first_of_several_ends_waits_for_none_of_them(tmp_path):
    """Those have ended already, and the engine will not say so again."""
    engine = PretendEngine()
    with pytest.raises(RuntimeError, match="no terminal"):
        fail_at(RunEnded, RuntimeError("no terminal"), list(PLAN.runs(tmp_path)), engine)
    assert engine.told == ["closed"]  # there was nobody to tell to save


def test_runs_of_which_only_numbers_were_kept_are_left_alone(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    for planned in runs:
        pretend(planned, 100, policy=False)
        (planned.folder / "sweep.log").unlink()
    RunFolder(runs[1].folder).checkpoints.mkdir()  # there is something to go on with
    engine = PretendEngine()
    outcome_of(runs, engine)
    assert engine.started == ["bisac/seed0"]


def test_paths_may_have_colons(tmp_path, monkeypatch):
    """Two folders, of which neither was begun: the process becomes the training itself; then, that it goes on."""
    folders = [tmp_path / "12:30" / name for name in ("seed0", "seed1")]
    commands, become, begin = [], [], local.subprocess.Popen
    monkeypatch.setattr(local.subprocess, "Popen", lambda command, **_: commands.append(command) or begin(["true"]))
    monkeypatch.setattr(launch.os, "execv", lambda _, words: become.append(words[3:]))
    for name in ("die_with", "take_cores"):
        monkeypatch.setattr(launch, name, lambda *_: None)
    for _ in range(2):
        assert local.start_process(folders, ["train", "Pendulum-v1"], 1).wait() == 0
        monkeypatch.setattr(launch.sys, "argv", commands[-1][2:])
        launch.main()
        (folders[1] / "config.json").touch()
    assert become == [["train", "Pendulum-v1"], ["resume", *map(str, folders)]]
