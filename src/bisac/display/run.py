"""What a terminal shows of a run, from its events."""

import shlex
import time
import warnings

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bisac.display.terminal import open_console
from bisac.envs.solved import judged
from bisac.runs.events import Advanced, EpisodeEnded, Event, Logged, Outcome, Started, Tracked, Warned
from bisac.runs.log import Row


def warn_only(event: Event) -> None:
    """Show nothing of a run but its warnings, as Python's: they must not be lost."""
    if isinstance(event, Warned):
        warnings.warn(event.text, stacklevel=2)


class RunDisplay:
    """A live bar on a terminal; elsewhere a line for each evaluation."""

    def __init__(self, console: Console | None = None):
        self.console = console or open_console()
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[returns]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("training", rate="compiling", returns="", total=None)
        self._episode = self._evaluation = ""
        self._shown = self._mark_time = 0.0
        self._mark_step = 0
        self._several = False

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Advanced():
                self._advance(event.step)
            case EpisodeEnded():
                self._episode = f"episode {event.episode_return:,.1f}"
            case Logged():
                self._row(event.run, event.row)
            case Started():
                self._start(event)
            case Tracked():
                self._say(f"{event.tracker}: {escape(event.where)}")
            case Warned():
                self._warn(event.text)
            case _:
                pass

    def end(self) -> None:
        """Leave the bar as it stands."""
        self._bar.stop()

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def _start(self, event: Started) -> None:
        """Say where the runs lie, and start the bar."""
        self._several = len(event.folders) > 1
        for folder in event.folders:
            self._say(f"run folder: {escape(str(folder.path))}")
        if event.step:
            self._say(f"going on from step {event.step:,}")
        self._bar.update(self._task, completed=event.step, total=event.steps)
        self._bar.start()

    def _advance(self, step: int) -> None:
        """Move the bar, at most ten times a second."""
        now = time.monotonic()
        if now - self._shown < 0.1:
            return
        self._shown = now
        if now - self._mark_time > 2.0:
            rate = f"{(step - self._mark_step) / (now - self._mark_time):,.0f} steps/s" if self._mark_time else ""
            self._mark_time, self._mark_step = now, step
            self._bar.update(self._task, rate=rate)
        self._bar.update(self._task, completed=step, returns=f"{self._evaluation} {self._episode}")

    def _row(self, run: int, row: Row) -> None:
        """Show an evaluation."""
        rate = row.get("eval_success_rate")
        success = "" if rate is None else f"  success {rate:.0%}"
        self._evaluation = f"[bold]return {row['eval_return']:,.1f}[/]{success}"
        self._bar.update(self._task, completed=row["step"], returns=f"{self._evaluation} {self._episode}")
        self._mark_time = 0.0  # evaluation took time that is not the loop's
        if not self.console.is_terminal:
            which = f"run {run}  " if self._several else ""
            text = f"step {row['step']:>9,.0f}  return {row['eval_return']:>9,.1f} ± {row['eval_return_std']:,.1f}"
            self.console.print(f"{which}{text}{success}  {row['wall_time']:,.0f} s", highlight=False, soft_wrap=True)

    def _warn(self, text: str) -> None:
        """Say it above the bar, and where errors go if there is none."""
        console = self.console if self.console.is_terminal else open_console(stderr=True)
        console.print(f"[yellow]bisac:[/] {escape(text)}", highlight=False, soft_wrap=True)


def show_outcome(outcome: Outcome, console: Console) -> None:
    """Print the summary of a run that stopped, and what to type next."""
    rows, folder, curve = outcome.rows, *(escape(str(path)) for path in (outcome.folder.path, outcome.folder.curve))
    typed = escape(shlex.quote(str(outcome.folder.path)))
    evaluated = [
        (average, row["eval_return_std"], row["step"])
        for row in rows
        if row["step"] and (average := row["eval_return"]) is not None
    ]
    lines = []
    if outcome.stopped_by is not None:
        go_on = f"and saved; go on with:  bisac resume {typed}"
        lines.append(f"[yellow]stopped early[/] {go_on if outcome.resumable else 'without a checkpoint to go on from'}")
    if evaluated:
        final, spread, step = evaluated[-1]
        best, _, best_step = max(evaluated, key=lambda item: item[0])
        lines.append(f"final return  [bold]{final:,.1f}[/] ± {spread:,.1f} at step {step:,.0f}")
        if (rate := rows[-1].get("eval_success_rate")) is not None:
            lines.append(f"final success [bold]{rate:.0%}[/]")
        lines.append(f"best return   [bold]{best:,.1f}[/] at step {best_step:,.0f}")
        spec = outcome.policy.spec
        if not spec.env_args and (verdict := judged(spec.env_id, final)):
            lines.append(f"solved        {verdict}")
    lines.append(f"run folder    {folder}")
    lines.append(f"curve         {curve}")
    lines.append(f"next          bisac eval {typed} --episodes 20 --video")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
