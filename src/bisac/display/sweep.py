"""What a user sees of a sweep and of its report in the terminal; it only shows events and numbers."""

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from bisac.display.terminal import Watch, duration
from bisac.report.analysis import Analysis
from bisac.report.words import plain
from bisac.sweeps.events import RunEnded, RunLost, RunStarted, SweepEvent, SweepFinished, SweepProgressed
from bisac.sweeps.folders import LOG
from bisac.sweeps.plan import Plan, PlannedRun


def show_plan(
    plan: Plan, runs: int, complete: int, slots: int, seconds: float, guessed: bool, console: Console
) -> None:
    """Show the plan, before anything is run."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("tasks", escape(", ".join(plan.envs)))
    table.add_row("contestants", escape(", ".join(contestant.name for contestant in plan.contestants)))
    table.add_row("seeds", ", ".join(map(str, plan.seeds)))
    each = [f"{name} {plain(value)}" for name, value in plan.hyperparameters.items()]
    if plan.settings.num_envs:
        each.insert(0, f"num_envs {plan.settings.num_envs}")
    table.add_row("each", f"{plan.settings.steps:,} steps" + escape(f"; {', '.join(each)}" if each else ""))
    done = f", {complete} complete already" if complete else ""
    fit = f"{slots} at a time" if slots else "they wait until the cluster has a node with as many CPUs as --cores"
    table.add_row("runs", f"{runs}{done}; {fit}")
    if complete < runs:
        how = " (guessed from the networks' sizes; measured from the first evaluations on)" if guessed else ""
        table.add_row("time", f"about {duration(seconds)}{how}")
    console.print(table, highlight=False)


def show_sweep(event: SweepEvent, watch: Watch) -> None:
    """Show one event of a sweep: a line where a run ends, or starts out of sight; its end is `show_sweep_outcome`'s."""
    match event:
        case RunStarted(run):
            if not watch.live:
                watch.say(f"{_name(run)}: started")
        case RunEnded():
            _show_ended(event, watch)
        case RunLost(process):
            watch.say(f"[yellow]{_name(process.run)}: {escape(process.reason)}[/]; it goes on elsewhere")
        case SweepProgressed():
            watch.tell_whole(_summary(event), lambda: _table(event, watch.console.height))
        case SweepFinished():
            pass


def _show_ended(event: RunEnded, watch: Watch) -> None:
    """Say how a run ended; of a failed one, the last it said."""
    process, progress = event.process, event.progress
    run, log = process.run, process.run.folder / LOG
    if progress.complete:
        watch.say(f"{_name(run)}: done, return {_number(progress.eval_return)}, {duration(progress.seconds)}")
    elif process.stopped:
        watch.say(f"{_name(run)}: stopped" + (", and saved" if (process.code or 0) > 0 else ""))
    else:
        said = log.read_text(errors="replace").splitlines()[-50:] if log.exists() else []
        last = [line for line in said if line.strip()][-3:]
        where = f"; {escape(str(log))} ends with:" if last else ""
        watch.say(f"[red]{_name(run)}: failed[/] with {escape(process.reason)}{where}")
        for line in last:
            watch.say(f"    {escape(line)}")


def _table(event: SweepProgressed, height: int) -> Table:
    """Return the runs at work, as many as a terminal of that height has room for."""
    table = Table("task", "contestant", "seed", "", "step", "return", "steps/s", "left", box=None, pad_edge=False)
    for run in [run for run in event.runs if run.folder in event.running][: max(4, height - 6)]:
        told = event.told[run.folder]
        left = duration((run.settings.steps - told.step) / told.rate) if told.rate else ""
        table.add_row(
            escape(run.env),
            escape(run.contestant.name),
            str(run.seed),
            ProgressBar(run.settings.steps, told.step, width=20),
            f"{told.step:,}",
            _number(told.eval_return),
            f"{told.rate:,.0f}" if told.rate else "",
            left,
        )
    return table


def show_sweep_outcome(
    outcome: SweepFinished, runs: Sequence[PlannedRun], out: str, again: str, console: Console
) -> None:
    """Show the summary at the end of a sweep, and what to type next."""
    lines = [f"{len(outcome.complete)} of {len(runs)} runs complete in {escape(out)}"]
    if outcome.failed:
        where = f"{LOG} of their folders (of seeds that were trained together in the first one's)"
        lines.append(f"[red]{len(outcome.failed)} failed[/]; what they said stands in {where}:")
        lines += [f"    {escape(str(folder))} ({escape(reason)})" for folder, reason in outcome.failed.items()]
    if outcome.stopped_by is not None:
        lines.append("[yellow]stopped early[/] and saved")
    if len(outcome.complete) < len(runs):
        lines.append(f"go on with    {escape(again)}")
    lines.append(f"next          bisac report {escape(shlex.quote(out))}")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def show_findings(analysis: Analysis, console: Console) -> None:
    """Show what a report's statistics say, in short."""
    runs = analysis.data.runs
    console.print(f"{len(runs) - len(analysis.data.incomplete)} of {len(runs)} runs complete", highlight=False)
    table = Table("contestant", "seeds", "IQM", "95%", f"vs {escape(analysis.reference)}", "", box=None, pad_edge=False)
    for aggregate in analysis.aggregates:
        difference = aggregate.difference
        verdict = "" if difference is None else "established" if difference.establishes(0.0) else "not established"
        low, high = aggregate.iqm.interval or (None, None)
        table.add_row(
            escape(aggregate.contestant),
            str(aggregate.seeds),
            f"{aggregate.iqm.value:.3f}",
            "" if low is None else f"{low:.3f} to {high:.3f}",
            "" if difference is None else f"{difference.value:+.3f}",
            verdict,
        )
    if analysis.aggregates:
        console.print(f"normalised final scores over {escape(', '.join(analysis.aggregated))}:", highlight=False)
        console.print(table, highlight=False)


def _summary(event: SweepProgressed) -> str:
    complete = sum(told.complete for told in event.told.values())
    failed = f", {len(event.failed)} failed" if event.failed else ""
    left = f"; about {duration(event.remaining)} left" if event.remaining else ""
    return f"{complete} of {len(event.runs)} runs complete, {len(event.running)} running{failed}{left}"


def _name(run: PlannedRun) -> str:
    return escape(f"{run.env} {run.contestant.name} seed {run.seed}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
