"""What a run tells while it goes: a row of progress.csv, TensorBoard events, the learning curve."""

import csv
import io
import os
import time
from contextlib import suppress
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.summary import scalar

from bisac.storage import read_file, write_atomic, write_from
from bisac.runs.run import Record
from bisac.runs.folder import RunDir

Row = dict[str, float | None]
"""One line of the log: None where there is nothing to tell yet."""

LEADING = ("step", "wall_time", "eval_return", "eval_return_std", "episode_return", "episode_length", "inexact_resumes")


class Log:
    """A run's record as files: progress.csv, TensorBoard's events, the best policy.

    What cannot be written now, because the disk is full say, is written with the next row.
    """

    def __init__(self, run_dir: RunDir, record: Record, metrics: list[str], step: int):
        self.columns = [*LEADING, *sorted(metrics)]
        self._run_dir, self._record = run_dir, record
        self._best_written = b""
        self._pending: list[tuple[Row, float]] = []
        self._step = step
        self._events: EventsWriter | None = None
        if not record.progress:
            record.progress = _line(self.columns)
        # As the record has it: whatever an interrupted run wrote after it was saved is told again.
        write_atomic(run_dir.progress, record.progress.encode())
        self._written = len(record.progress.encode())
        if record.best_policy:
            self._write_best()
        else:
            run_dir.best.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Add a row to the record."""
        values = [row.get(name) for name in self.columns]
        self._record.progress += _line(["" if value is None else repr(value) for value in values])
        self._pending.append((row, time.time()))

    def flush(self) -> None:
        """Bring the files up to the record."""
        content = self._record.progress.encode()
        write_from(self._run_dir.progress, self._written, content[self._written :])  # over a line that a full disk tore
        self._written = len(content)
        self._write_best()
        self._write_events()

    def close(self) -> None:
        """Finish the event file."""
        if self._events:
            with suppress(OSError):
                self._events.close()

    def _write_best(self) -> None:
        if self._best_written != self._record.best_policy:
            write_atomic(self._run_dir.best, self._record.best_policy)
            self._best_written = self._record.best_policy

    def _write_events(self) -> None:
        # Not tensorboardX's SummaryWriter: its thread dies of a full disk, and the next row would wait for it for ever.
        if self._events is None:
            self._events = EventsWriter(str(self._run_dir.path / "events"), f".{os.getpid()}.{self._step}")
            # Tells TensorBoard to forget what an interrupted run wrote beyond the step that this one goes on from.
            start = SessionLog(status=SessionLog.START)
            self._events.write_event(Event(wall_time=time.time(), step=self._step + 1, session_log=start))
        while self._pending:
            row, at = self._pending.pop(0)
            for name in self.columns[1:]:
                if (value := row.get(name)) is not None:
                    summary = scalar(_tag(name), value)
                    self._events.write_event(Event(wall_time=at, step=int(row["step"] or 0), summary=summary))
        self._events.flush()


def _line(fields: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


def read_progress(text: str) -> list[Row]:
    """The rows of a progress.csv."""
    rows = csv.DictReader(io.StringIO(text))
    return [{name: float(value) if value else None for name, value in row.items()} for row in rows]


def read_log(run_dir: RunDir) -> list[Row]:
    """The whole lines of a run's progress.csv, which another process may be writing."""
    if not run_dir.progress.exists():
        return []
    text = read_file(run_dir.progress).decode()
    return read_progress(text[: text.rfind("\n") + 1])


def draw_curve(rows: list[Row], path: Path, title: str) -> None:
    """The learning curve: evaluation return with its spread, and the training episodes' return."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and wanted only here
    from matplotlib.figure import Figure

    evaluated = [row for row in rows if row["eval_return"] is not None]
    steps = [row["step"] or 0.0 for row in evaluated]
    mean = [row["eval_return"] or 0.0 for row in evaluated]
    spread = [row["eval_return_std"] or 0.0 for row in evaluated]
    explored = [(row["step"] or 0.0, row["episode_return"]) for row in rows if row["episode_return"] is not None]

    figure = Figure(figsize=(7, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if explored:
        axes.plot(*zip(*explored, strict=True), color="0.6", lw=1.2, label="training episodes (exploring)")
    low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
    axes.fill_between(steps, low, high, color="#0072b2", alpha=0.2, lw=0, label="± 1 standard deviation over episodes")
    axes.plot(steps, mean, color="#0072b2", lw=2, label="evaluation (deterministic policy)")
    axes.set(xlabel="environment steps", ylabel="return per episode", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, loc="best", fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomic(path, picture.getvalue())


def _tag(name: str) -> str:
    """TensorBoard groups by the part before the slash."""
    group, found, rest = name.partition("_")
    return f"{group}/{rest}" if found and group in ("eval", "episode", "projection", "penalty") else f"train/{name}"
