"""What a user sees of a search for hyperparameters in the terminal; it only shows events and numbers."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bisac.display.sweep import LINE_EVERY, duration
from bisac.tuning.best import BEST
from bisac.tuning.record import Tuning, trial_name
from bisac.tuning.search import SearchEvent, SearchFinished, SearchProgressed, TrialEnded, TrialStarted
from bisac.tuning.study import Trial


def show_search(tuning: Tuning, known: Sequence[Trial], trials: int, slots: int, console: Console) -> None:
    """Show what is searched, before anything is run."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("task", escape(tuning.env))
    fixed = ", ".join(f"{name} {value}" for name, value in tuning.contestant.settings)
    table.add_row("algorithm", escape(tuning.contestant.algo + (f"; {fixed}" if fixed else "")))
    for index, (name, dimension) in enumerate(tuning.space.items()):
        table.add_row("" if index else "searched", f"{name}: {dimension}")
    done = sum(trial.state in ("complete", "pruned") for trial in known)
    before = f", {done} done already" if done else ""
    table.add_row("trials", f"{trials}{before}; {slots} at a time, {tuning.settings.steps:,} steps each")
    console.print(table, highlight=False)


class TuningDisplay:
    """Shows a live table on a terminal; elsewhere a line when a trial ends, and one a minute for the whole."""

    def __init__(self, console: Console):
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._told = time.monotonic()

    def __enter__(self):
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_exception: object):
        if self._live:
            self._live.stop()

    def show(self, event: SearchEvent) -> None:
        """Show one event of the search; its end is for `show_search_outcome`."""
        match event:
            case TrialStarted(trial):
                if not self._live:
                    self._say(f"{trial_name(trial.number)}: started")
            case TrialEnded():
                self._show_ended(event)
            case SearchProgressed():
                self._show_progress(event)
            case SearchFinished():
                pass

    def _show_ended(self, event: TrialEnded) -> None:
        trial, name = event.trial, trial_name(event.trial.number)
        match trial.state:
            case "complete":
                leads = ", the best so far" if event.best and event.best.number == trial.number else ""
                self._say(f"{name}: {trial.score:,.1f}{leads}; {duration(event.progress.seconds)}")
            case "pruned":
                self._say(f"{name}: ended early, {escape(trial.problem)}")
            case "failed":
                self._say(f"[red]{name}: failed[/] with {escape(trial.problem)}")
            case "running":
                self._say(f"{name}: stopped at {event.progress.step:,} steps")

    def _show_progress(self, event: SearchProgressed) -> None:
        top = f"; best {event.best.score:,.1f} ({trial_name(event.best.number)})" if event.best else ""
        summary = f"{event.done} of {event.wanted} trials done, {len(event.running)} running{top}"
        if self._live:
            table = Table("trial", "", "step", "return", "steps/s", box=None, pad_edge=False)
            for number, told in event.running.items():
                shown = "" if told.eval_return is None else f"{told.eval_return:,.1f}"
                bar, rate = ProgressBar(event.steps, told.step, width=20), f"{told.rate:,.0f}" if told.rate else ""
                table.add_row(trial_name(number), bar, f"{told.step:,}", shown, rate)
            self._live.update(Group(table, Text(summary, style="bold")), refresh=True)
        elif time.monotonic() - self._told > LINE_EVERY:
            self._told = time.monotonic()
            self._say(summary)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True, emoji=False)


def show_search_outcome(
    outcome: SearchFinished, out: Path, page: Path | None, wanted: int, again: str, console: Console
) -> None:
    """Show what came of a search, and what to type next."""
    counts = {
        state: sum(trial.state == state for trial in outcome.trials) for state in ("complete", "pruned", "failed")
    }
    lines = [f"{counts['complete']} trials complete, {counts['pruned']} ended early in {escape(str(out))}"]
    if counts["failed"]:
        lines.append(f"[red]{counts['failed']} failed[/]; what they said stands in sweep.log of their folders")
    if outcome.stopped_by is not None:
        lines.append("[yellow]stopped early[/] and saved")
    if counts["complete"] + counts["pruned"] < wanted:
        lines.append(f"go on with    {escape(again)}")
    if outcome.best:
        values = ", ".join(f"{name} {_number(value)}" for name, value in outcome.best.values.items())
        lines.append(f"best          {trial_name(outcome.best.number)}, {outcome.best.score:,.1f}: {escape(values)}")
        lines.append(f"page          {escape(str(page))}")
        lines.append(f"next          bisac train --config {escape(str(out / BEST))} --seed 100")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True, emoji=False)


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
