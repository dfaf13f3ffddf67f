"""What a user sees of a sweep and of its report in the terminal; it only shows events and numbers."""

import time
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bisac.report.analysis import Analysis
from bisac.report.words import plain
from bisac.sweeps.events import RunEnded, RunStarted, SweepEvent, SweepFinished, SweepProgressed
from bisac.sweeps.folders import LOG
from bisac.sweeps.plan import Plan, PlannedRun

LINE_EVERY = 60.0
"""Seconds between the lines that tell of the whole, where there is no terminal."""


def show_plan(
    plan: Plan, runs: int, complete: int, slots: int, seconds: float, guessed: bool, console: Console
) -> None:
    """Show the plan, before anything is run."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("tasks", ", ".join(plan.envs))
    table.add_row("contestants", ", ".join(contestant.name for contestant in plan.contestants))
    table.add_row("seeds", ", ".join(map(str, plan.seeds)))
    each = [f"{name} {plain(value)}" for name, value in plan.hyperparameters.items()]
    if plan.settings.num_envs:
        each.insert(0, f"num_envs {plan.settings.num_envs}")
    table.add_row("each", f"{plan.settings.steps:,} steps" + (f"; {', '.join(each)}" if each else ""))
    done = f", {complete} complete already" if complete else ""
    fit = f"{slots} at a time" if slots else "they wait until the cluster has a node with as many CPUs as --cores"
    table.add_row("runs", f"{runs}{done}; {fit}")
    if complete < runs:
        how = " (guessed from the networks' sizes; measured from the first evaluations on)" if guessed else ""
        table.add_row("time", f"about {duration(seconds)}{how}")
    console.print(table, highlight=False)


def duration(seconds: float) -> str:
    """Return a time in words."""
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02d} min" if hours < 48 else f"{hours / 24:.1f} days"


class SweepDisplay:
    """Shows a live table on a terminal; elsewhere a line when a run starts or ends, and one a minute for the whole."""

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

    def show(self, event: SweepEvent) -> None:
        """Show one event of the sweep; its end is for `show_sweep_outcome`."""
        match event:
            case RunStarted(run):
                if not self._live:
                    self._say(f"{_name(run)}: started")
            case RunEnded():
                self._show_ended(event)
            case SweepProgressed():
                self._show_progress(event)
            case SweepFinished():
                pass

    def _show_ended(self, event: RunEnded) -> None:
        """Say how a run ended; of a failed one, the last it said."""
        process, progress = event.process, event.progress
        run, log = process.run, process.run.folder / LOG
        if progress.complete:
            self._say(f"{_name(run)}: done, return {_number(progress.eval_return)}, {duration(progress.seconds)}")
        elif process.stopped:
            self._say(f"{_name(run)}: stopped" + (", and saved" if (process.code or 0) > 0 else ""))
        else:
            said = log.read_text(errors="replace").splitlines()[-50:] if log.exists() else []
            last = [line for line in said if line.strip()][-3:]
            where = f"; {escape(str(log))} ends with:" if last else ""
            self._say(f"[red]{_name(run)}: failed[/] with {escape(process.reason)}{where}")
            for line in last:
                self._say(f"    {escape(line)}")

    def _show_progress(self, event: SweepProgressed) -> None:
        if self._live:
            self._live.update(self._table(event), refresh=True)
        elif time.monotonic() - self._told > LINE_EVERY:
            self._told = time.monotonic()
            self._say(_summary(event))

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _table(self, event: SweepProgressed) -> RenderableType:
        table = Table("task", "contestant", "seed", "", "step", "return", "steps/s", "left", box=None, pad_edge=False)
        shown = [run for run in event.runs if run.folder in event.running][: max(4, self._console.height - 6)]
        for run in shown:
            told = event.told[run.folder]
            left = duration((run.settings.steps - told.step) / told.rate) if told.rate else ""
            table.add_row(
                run.env,
                run.contestant.name,
                str(run.seed),
                ProgressBar(run.settings.steps, told.step, width=20),
                f"{told.step:,}",
                _number(told.eval_return),
                f"{told.rate:,.0f}" if told.rate else "",
                left,
            )
        return Group(table, Text(_summary(event), style="bold"))


def show_sweep_outcome(
    outcome: SweepFinished, runs: Sequence[PlannedRun], out: str, again: str, console: Console
) -> None:
    """Show the summary at the end of a sweep, and what to type next."""
    lines = [f"{len(outcome.complete)} of {len(runs)} runs complete in {out}"]
    if outcome.failed:
        lines.append(f"[red]{len(outcome.failed)} failed[/]; what they said stands in {LOG} of their folders:")
        lines += [f"    {escape(str(folder))} ({escape(reason)})" for folder, reason in outcome.failed.items()]
    if outcome.stopped_by is not None:
        lines.append("[yellow]stopped early[/] and saved")
    if len(outcome.complete) < len(runs):
        lines.append(f"go on with    {escape(again)}")
    lines.append(f"next          bisac report {out}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def show_findings(analysis: Analysis, console: Console) -> None:
    """Show what a report's statistics say, in short."""
    runs = analysis.data.runs
    console.print(f"{len(runs) - len(analysis.data.incomplete)} of {len(runs)} runs complete", highlight=False)
    table = Table("contestant", "seeds", "IQM", "95%", f"vs {analysis.reference}", "", box=None, pad_edge=False)
    for aggregate in analysis.aggregates:
        difference = aggregate.difference
        verdict = "" if difference is None else "established" if difference.establishes(0.0) else "not established"
        low, high = aggregate.iqm.interval or (None, None)
        table.add_row(
            aggregate.contestant,
            str(aggregate.seeds),
            f"{aggregate.iqm.value:.3f}",
            "" if low is None else f"{low:.3f} to {high:.3f}",
            "" if difference is None else f"{difference.value:+.3f}",
            verdict,
        )
    if analysis.aggregates:
        console.print(f"normalised final scores over {', '.join(analysis.aggregated)}:", highlight=False)
        console.print(table, highlight=False)


def _summary(event: SweepProgressed) -> str:
    complete = sum(told.complete for told in event.told.values())
    failed = f", {len(event.failed)} failed" if event.failed else ""
    left = f"; about {duration(event.remaining)} left" if event.remaining else ""
    return f"{complete} of {len(event.runs)} runs complete, {len(event.running)} running{failed}{left}"


def _name(run: PlannedRun) -> str:
    return f"{run.env} {run.contestant.name} seed {run.seed}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
