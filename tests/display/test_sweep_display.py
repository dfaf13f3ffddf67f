"""What a terminal shows of a sweep's events."""

import io

import pytest
from made_up_sweep import PLAN, pretend
from rich.console import Console

from bisac.display.sweep import show_sweep, show_sweep_outcome
from bisac.display.terminal import duration, follow, open_console
from bisac.sweeps.engines.base import EndedProcess
from bisac.sweeps.events import RunEnded, RunStarted, SweepFinished, SweepProgressed
from bisac.sweeps.progress import progress_of


def shown(*events, terminal=False):
    said = io.StringIO()
    follow(events, show_sweep, Console(file=said, force_terminal=terminal, width=120))
    return said.getvalue()


def test_start_and_end_are_a_line_each(tmp_path):
    planned = next(PLAN.runs(tmp_path))
    pretend(planned, 100, seconds=200.0)
    said = shown(RunStarted(planned), RunEnded(EndedProcess(planned, 0), progress_of(planned)))
    assert said.splitlines() == ["Pendulum-v1 sac seed 0: started", "Pendulum-v1 sac seed 0: done, return 1.5, 3 min"]


def test_failed_run_is_told_with_its_last_words(tmp_path):
    planned = next(PLAN.runs(tmp_path))
    planned.folder.mkdir(parents=True)
    (planned.folder / "sweep.log").write_text("one\ntwo\nbisac: training diverged: [q] became nan\n")
    lines = shown(RunEnded(EndedProcess(planned, 2), progress_of(planned))).splitlines()
    assert lines[0].startswith(f"Pendulum-v1 sac seed 0: failed with exit code 2; {planned.folder}/sweep.log")
    assert lines[-1] == "    bisac: training diverged: [q] became nan"


@pytest.mark.parametrize(
    ("code", "problem", "words"),
    [
        (130, "", "stopped, and saved"),
        (-15, "", "stopped"),  # too early to hear it
        (None, "Permission denied: /x", "failed with Permission denied: /x"),
    ],
)
def test_what_is_said_of_a_run_that_ends_early(code, problem, words, tmp_path):
    planned = next(PLAN.runs(tmp_path))
    said = shown(RunEnded(EndedProcess(planned, code, problem), progress_of(planned)))
    assert said == f"Pendulum-v1 sac seed 0: {words}\n"


def test_terminal_shows_the_runs_at_work_and_the_whole(tmp_path):
    runs = list(PLAN.runs(tmp_path))
    pretend(runs[0], 100)
    pretend(runs[1], 40, seconds=20.0)
    told = {run.folder: progress_of(run) for run in runs}
    event = SweepProgressed(runs, told, {runs[1].folder}, {runs[2].folder: "exit code 2"}, 3600.0)
    assert shown(event) == ""  # elsewhere once a minute
    said = shown(event, terminal=True)
    assert "1 of 4 runs complete, 1 running, 1 failed; about 60 min left" in said
    assert "bisac" in said
    assert " 40 " in said
    assert "30 s" in said  # 60 steps at two a second


@pytest.mark.parametrize(
    ("seconds", "words"), [(80, "80 s"), (600, "10 min"), (7000, "1 h 57 min"), (200_000, "2.3 days")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_what_was_typed_is_shown_as_it_was(tmp_path, capsys):
    runs, again = list(PLAN.runs(tmp_path)), "bisac sweep --actor-lr linear:1:100:200 --out '[b]'"
    show_sweep_outcome(SweepFinished([], {}, None), runs, "[b]", again, open_console())
    assert capsys.readouterr().out == (
        f"0 of 4 runs complete in [b]\ngo on with    {again}\nnext          bisac report '[b]'\n"
    )
