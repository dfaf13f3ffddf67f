"""What a user sees of a search for hyperparameters in the terminal; it only shows events and numbers."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from bisac.display.terminal import Watch, duration
from bisac.tuning.best import BEST
from bisac.tuning.record import Tuning, trial_name
from bisac.tuning.search import SearchEvent, SearchFinished, SearchProgressed, TrialEnded, TrialLost, TrialStarted
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


def show_trials(event: SearchEvent, watch: Watch) -> None:
    """Show one event of a search: a line where a trial ends, or starts out of sight; its end is another's."""
    match event:
        case TrialStarted(trial):
            if not watch.live:
                watch.say(f"{trial_name(trial.number)}: started")
        case TrialEnded():
            watch.say(_ended(event))
        case TrialLost(trial, reason):
            watch.say(f"[yellow]{trial_name(trial.number)}: {escape(reason)}[/]; it goes on elsewhere")
        case SearchProgressed():
            top = f"; best {event.best.score:,.1f} ({trial_name(event.best.number)})" if event.best else ""
            summary = f"{event.done} of {event.wanted} trials done, {len(event.running)} running{top}"
            watch.tell_whole(summary, lambda: _table(event, watch.console.height))
        case SearchFinished():
            pass


def _ended(event: TrialEnded) -> str:
    """Return how a trial ended, as a line."""
    trial, name = event.trial, trial_name(event.trial.number)
    match trial.state:
        case "complete":
            leads = ", the best so far" if event.best and event.best.number == trial.number else ""
            return f"{name}: {trial.score:,.1f}{leads}; {duration(event.progress.seconds)}"
        case "pruned":
            return f"{name}: ended early, {escape(trial.problem)}"
        case "failed":
            return f"[red]{name}: failed[/] with {escape(trial.problem)}"
        case "running":
            return f"{name}: stopped at {event.progress.step:,} steps"


def _table(event: SearchProgressed, height: int) -> Table:
    """Return the trials at work, as many as a terminal of that height has room for."""
    table = Table("trial", "", "step", "return", "steps/s", box=None, pad_edge=False)
    for number, told in list(event.running.items())[: max(4, height - 6)]:
        shown = "" if told.eval_return is None else f"{told.eval_return:,.1f}"
        bar, rate = ProgressBar(event.steps, told.step, width=20), f"{told.rate:,.0f}" if told.rate else ""
        table.add_row(trial_name(number), bar, f"{told.step:,}", shown, rate)
    return table


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
        lines.append(f"next          bisac train --config {escape(shlex.quote(str(out / BEST)))} --seed 100")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
