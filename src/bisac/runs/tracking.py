"""Runs in a tracker: a consumer of their events, which passes them on. Whatever a tracker does, the training goes on.

tracking.json in a run's folder says what the tracker knows the run by, and the step until which it was told for good.
So a run that is resumed goes on in the same place, and what was told, or could not be told, is not lost or told
twice.
"""

import json
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

from bisac.runs.events import Event, Finished, Logged, Started, Tracked, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import Row, read_log, tag
from bisac.runs.settings import OF_WATCHING, TrackerName
from bisac.runs.trackers import Ending, Identity, Tracker, open_tracker
from bisac.storage import read_file, write_atomic

RARELY = 20.0
"""A tracker that failed is left alone for so many times as long as it took to fail."""
QUICK = 1.0
"""Seconds to fail in that do not matter: the next row may do better."""


def tracked(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    """Yield the events of runs, having told the trackers that the runs' settings name."""
    runs: list[Tracking] = []
    ending: Ending = "failed"
    try:
        with closing(events):
            for event in events:
                told: list[Event] = []
                match event:
                    case Started():  # a tracker may ask its user something, before the display begins
                        runs = list(_of(event))
                        told = [note for run in runs for note in run.begin(event.step)]
                    case Logged():
                        told = [note for run in runs if run.index == event.run for note in run.tell([event.row])]
                    case Finished():
                        ending = "finished" if event.outcomes[0].stopped_by is None else "stopped"
                        while runs:
                            yield from runs.pop().end(ending)
                    case _:
                        pass
                yield event
                yield from told
    except GeneratorExit:  # left by whoever watches; by now it is saved
        ending = "finished"
        raise
    finally:
        for run in runs:
            for event in run.end(ending):
                warnings.warn(event.text, stacklevel=2)


def _of(started: Started) -> Iterator["Tracking"]:
    for index, folder in enumerate(started.folders):
        config = folder.read_config()
        if (name := config["run"]["track"]) != "none":
            yield Tracking(name, index, folder, config)


class Tracking:
    """What a tracker was told of a run, and what it is still to be told."""

    def __init__(self, name: TrackerName, index: int, folder: RunFolder, config: dict[str, Any]):
        self.index = index
        self._name: TrackerName = name
        self._folder, self._config = folder, config
        self._tracker: Tracker | None = None
        self._told = self._kept = -1
        """The steps of the last row that it was told, and of the last that a kill of this process cannot take away."""
        self._fresh: list[tuple[float, int]] = []
        """When the rows between these two were told, and their steps."""
        self._pending: list[Row] = []
        self._not_before = 0.0
        self._complained = False

    def begin(self, step: int) -> list[Event]:
        """Open the tracker, and tell it the rows until this step that it does not know."""
        problems = self._attempt(lambda: self._pending.extend(self._rows(step))) + self.tell([])
        where = [Tracked(self.index, self._name, self._tracker.where)] if self._tracker else []
        return [*where, *problems]

    def _rows(self, step: int) -> list[Row]:
        return [row for row in read_log(self._folder) if (row["step"] or 0) <= step]

    def tell(self, rows: list[Row]) -> list[Warned]:
        """Tell the tracker these rows, and those that could not be told before."""
        self._pending += rows
        return self._attempt(self._tell_pending)

    def end(self, ending: Ending) -> list[Warned]:
        """Tell what is left, and close the tracker."""
        self._not_before = 0.0
        return [*self.tell([]), *self._attempt(lambda: self._end(ending))]

    def _end(self, ending: Ending) -> None:
        tracker = self._open()
        tracker.end(ending)
        self._kept, self._fresh = self._told, []
        self._remember(tracker)

    def _tell_pending(self) -> None:
        tracker, before = self._open(), self._told
        try:
            while self._pending:
                step = int(self._pending[0]["step"] or 0)
                if step > self._told:
                    values = {name: value for name, value in self._pending[0].items() if value is not None}
                    tracker.tell(step, {tag(name): value for name, value in values.items() if name != "step"})
                    self._told = step
                    self._fresh.append((time.monotonic(), step))
                del self._pending[0]
        finally:
            if self._told != before:
                self._remember(tracker)

    def _open(self) -> Tracker:
        """Return the tracker, which is opened the first time that it can be."""
        if self._tracker is None:
            known = self._known().get(self._name, {})
            self._tracker = open_tracker(self._name, _identity(self._folder, self._config), known.get("id"))
            self._told = self._kept = known.get("told", -1)
            self._remember(self._tracker)
        return self._tracker

    def _known(self) -> dict[str, Any]:
        return json.loads(read_file(self._folder.tracking)) if self._folder.tracking.exists() else {}

    def _remember(self, tracker: Tracker) -> None:
        while self._fresh and self._fresh[0][0] <= time.monotonic() - tracker.delay:
            self._kept = self._fresh.pop(0)[1]
        known = self._known() | {self._name: {"id": tracker.id, "told": self._kept}}
        write_atomic(self._folder.tracking, (json.dumps(known, indent=2) + "\n").encode())

    def _attempt(self, call: Callable[[], object]) -> list[Warned]:
        """Call the tracker, unless it failed not long ago. That it fails is told once."""
        began = time.monotonic()
        if began < self._not_before:
            return []
        try:
            call()
        except Exception as error:  # whatever a stranger's package raises
            now = time.monotonic()
            self._not_before = now + RARELY * (now - began) if now - began > QUICK else 0.0
            if not self._complained:
                self._complained = True
                return [Warned(f"{self._name} could not be told of the run: {_why(error)}. Training goes on.")]
        return []


def _why(error: Exception) -> str:
    """Return what an error says, in a part of a sentence."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return f"{line[:200]}..." if len(line) > 200 else line.rstrip(".")


def _identity(folder: RunFolder, config: dict[str, Any]) -> Identity:
    env, algo, settings = config["env"], config["algo"], config["run"]
    own = {name: value for name, value in settings.items() if name not in (*OF_WATCHING, "overwrite")}
    parameters = {"env": env, "algo": algo} | config["hyperparameters"] | own
    name = "/".join(folder.path.parts[-3:])  # a sweep's has the task, the contestant and the seed
    return Identity(name, settings["track_group"], env, algo, settings["seed"], parameters, folder.path)
