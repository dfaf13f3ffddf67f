"""What a user sees of a run in the terminal."""

import time
import warnings

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bisac.runs.folder import RunDir
from bisac.runs.log import Row
from bisac.runs.train import Outcome


class Quiet:
    """Shows nothing."""

    def begin(self, run_dir: RunDir, step: int, total: int) -> None:
        """The run is about to start."""

    def tick(self, step: int, episode_return: float | None) -> None:
        """A step was taken."""

    def row(self, row: Row) -> None:
        """A row was logged."""

    def warn(self, text: str) -> None:
        """Pass it on, for it must not be lost."""
        warnings.warn(text, stacklevel=2)

    def end(self) -> None:
        """The run stopped."""


class TrainingDisplay:
    """A live bar on a terminal; elsewhere a line for each evaluation."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console()
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

    def begin(self, run_dir: RunDir, step: int, total: int) -> None:
        """Show where the run lies, and start the bar."""
        self.console.print(f"run folder: {escape(str(run_dir.path))}", highlight=False, soft_wrap=True)
        if step:
            self.console.print(f"going on from step {step:,}", highlight=False)
        self._bar.update(self._task, completed=step, total=total)
        self._bar.start()

    def tick(self, step: int, episode_return: float | None) -> None:
        """Move the bar, at most ten times a second."""
        if episode_return is not None:
            self._episode = f"episode {episode_return:,.1f}"
        now = time.monotonic()
        if now - self._shown < 0.1:
            return
        self._shown = now
        if now - self._mark_time > 2.0:
            rate = f"{(step - self._mark_step) / (now - self._mark_time):,.0f} steps/s" if self._mark_time else ""
            self._mark_time, self._mark_step = now, step
            self._bar.update(self._task, rate=rate)
        self._bar.update(self._task, completed=step, returns=f"{self._evaluation} {self._episode}")

    def row(self, row: Row) -> None:
        """Show an evaluation."""
        self._evaluation = f"[bold]return {row['eval_return']:,.1f}[/]"
        self._bar.update(self._task, completed=row["step"], returns=f"{self._evaluation} {self._episode}")
        self._mark_time = 0.0  # evaluation took time that is not the loop's
        if not self.console.is_terminal:
            text = f"step {row['step']:>9,.0f}  return {row['eval_return']:>9,.1f} ± {row['eval_return_std']:,.1f}"
            self.console.print(f"{text}  {row['wall_time']:,.0f} s", highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Say it above the bar, and where errors go if there is none."""
        console = self.console if self.console.is_terminal else Console(stderr=True)
        console.print(f"[yellow]bisac:[/] {escape(text)}", highlight=False, soft_wrap=True)

    def end(self) -> None:
        """Leave the bar as it stands."""
        self._bar.stop()


def show_outcome(outcome: Outcome, console: Console) -> None:
    """The summary at the end of a run, and what to type next."""
    rows, folder, curve = outcome.rows, *(escape(str(path)) for path in (outcome.run_dir.path, outcome.run_dir.curve))
    evaluated = [(row["eval_return"], row["eval_return_std"], row["step"]) for row in rows if row["step"]]
    lines = []
    if outcome.stopped_by is not None:
        go_on = f"and saved; go on with:  bisac resume {folder}"
        lines.append(f"[yellow]stopped early[/] {go_on if outcome.resumable else 'without a checkpoint to go on from'}")
    if evaluated:
        final, spread, step = evaluated[-1]
        best, _, best_step = max(evaluated, key=lambda item: item[0] or 0.0)
        lines.append(f"final return  [bold]{final:,.1f}[/] ± {spread:,.1f} at step {step:,.0f}")
        lines.append(f"best return   [bold]{best:,.1f}[/] at step {best_step:,.0f}")
    lines.append(f"run folder    {folder}")
    lines.append(f"curve         {curve}")
    lines.append(f"next          bisac eval {folder} --episodes 20 --video")
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
