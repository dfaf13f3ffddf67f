"""What a run tells while it goes: a row of progress.csv, TensorBoard events, the learning curve."""

import csv
import io
import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.summary import scalar

from bisac.errors import BisacError, reason
from bisac.runs.folder import RunFolder
from bisac.runs.record import Record
from bisac.storage import read_file, write_atomic, write_from

Row = dict[str, float | None]
"""One line of the log: None where there is nothing to tell yet."""

LEADING = ("step", "wall_time", "eval_return", "eval_return_std", "episode_return", "episode_length", "inexact_resumes")
SUCCESS = ("eval_success_rate", "success_rate")
"""Columns of environments that tell whether an episode succeeded."""


class Log:
    """A run's record as files: progress.csv, TensorBoard's events, the best policy.

    What cannot be written now, because the disk is full say, is written with the next row.
    """

    def __init__(self, folder: RunFolder):
        self.columns: list[str] = []
        self._folder, self._record = folder, Record()
        self._best_written = b""
        self._pending: list[tuple[Row, float]] = []
        self._step = self._written = 0
        self._ours: set[str] = set()
        self._events: EventsWriter | None = None

    def open(self, record: Record, metrics: list[str], step: int) -> None:
        """Begin to write down a record, which may be that of an interrupted run, with these metrics in its rows."""
        self._record, self._step, self._ours = record, step, {*LEADING, *SUCCESS, *metrics}
        if not record.progress:
            record.progress = _line([*LEADING, *sorted(metrics)])
        self.columns = next(csv.reader(io.StringIO(record.progress)))
        # As the record has it: whatever an interrupted run wrote after it was saved is told again.
        write_atomic(self._folder.progress, record.progress.encode())
        self._written = len(record.progress.encode())
        if record.best_policy:
            self._write_best()
        else:
            self._folder.best.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Add a row to the record; what is new in it gets a column."""
        self._widen([name for name in row if name not in self.columns])
        values = [row.get(name) for name in self.columns]
        self._record.progress += _line(["" if value is None else repr(value) for value in values])
        self._pending.append((row, time.time()))

    def flush(self) -> None:
        """Bring the files up to the record."""
        content = self._record.progress.encode()
        if self._written:
            write_from(
                self._folder.progress, self._written, content[self._written :]
            )  # over a line that a full disk tore
        else:
            write_atomic(self._folder.progress, content)
        self._written = len(content)
        self._write_best()
        self._write_events()

    def check_own(self, name: str) -> None:
        """Refuse a name that a user cannot give to a column."""
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise BisacError(f"a logged value needs a name of printable characters, not {name!r}.")
        if name in self._ours:
            raise BisacError(f"'{name}' is a column that bisac fills itself; log under another name.")

    def _widen(self, names: list[str]) -> None:
        """Add columns to all that was told so far, which had nothing to tell there."""
        if names:
            self.columns = [*self.columns, *names]
            _, *lines = self._record.progress.splitlines()
            rows = [f"{line}{',' * len(names)}\n" for line in lines]
            self._record.progress = _line(self.columns) + "".join(rows)
            self._written = 0

    def close(self) -> None:
        """Finish the event file."""
        if self._events:
            with suppress(OSError):
                self._events.close()

    def _write_best(self) -> None:
        if self._best_written != self._record.best_policy:
            write_atomic(self._folder.best, self._record.best_policy)
            self._best_written = self._record.best_policy

    def _write_events(self) -> None:
        # Not tensorboardX's SummaryWriter: its thread dies of a full disk, and the next row would wait for it for ever.
        if self._events is None:
            self._events = EventsWriter(str(self._folder.path / "events"), f".{os.getpid()}.{self._step}")
            # Tells TensorBoard to forget what an interrupted run wrote beyond the step that this one goes on from.
            start = SessionLog(status=SessionLog.START)
            self._events.write_event(Event(wall_time=time.time(), step=self._step + 1, session_log=start))
        while self._pending:
            row, at = self._pending.pop(0)
            for name in self.columns[1:]:
                if (value := row.get(name)) is not None:
                    summary = scalar(tag(name), value)
                    self._events.write_event(Event(wall_time=at, step=int(row["step"] or 0), summary=summary))
        self._events.flush()


def _line(fields: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue()


def mean_or_none(values: Sequence[float]) -> float | None:
    """Return the mean of what a row tells, or None where there is nothing to tell."""
    return sum(values) / len(values) if values else None


def read_progress(text: str) -> list[Row]:
    """Return the rows of a progress.csv."""
    rows = csv.DictReader(io.StringIO(text))
    return [{name: float(value) if value else None for name, value in row.items()} for row in rows]


def read_log(folder: RunFolder) -> list[Row]:
    """Return the whole lines of a run's progress.csv, which another process may be writing."""
    if not folder.progress.exists():
        return []
    content = read_file(folder.progress)
    try:
        rows = read_progress(content[: content.rfind(b"\n") + 1].decode())
        if missing := [name for name in LEADING[:3] if any(name not in row for row in rows)]:
            raise ValueError(f"it has no column {missing[0]}")
        if not all(0 <= (row["step"] or 0) < math.inf for row in rows):
            raise ValueError("a step is no number of steps")
        return rows
    except (TypeError, ValueError, csv.Error) as error:
        raise BisacError(f"{folder.progress} is damaged or not one of this bisac's: {reason(error)}.") from error


def tag(name: str) -> str:
    """Return a column's name as TensorBoard groups it, by the part before a slash; a user may have set one."""
    if "/" in name:
        return name
    group, found, rest = name.partition("_")
    return f"{group}/{rest}" if found and group in ("eval", "episode", "projection", "penalty") else f"train/{name}"
