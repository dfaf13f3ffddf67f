"""Processes of bisac that are started, watched, and killed while they work."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

SUPPORT = Path(__file__).parents[2] / "tests" / "support"
PATIENCE = 600.0
"""Seconds after which a process that was to end counts as hanging."""


def flags(settings):
    """Python's keywords as the command line's flags."""
    for name, value in settings.items():
        yield f"--{name.replace('_', '-')}"
        yield from map(str, value if isinstance(value, tuple) else (value,))


def command(*arguments: Any) -> dict[str, Any]:
    """A bisac process that can make the environments of the tests, as `subprocess` takes it."""
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    return {"args": [sys.executable, "-m", "bisac", *map(str, arguments)], "env": os.environ | {"PYTHONPATH": path}}


@dataclass(frozen=True)
class Work:
    """Something that bisac does in a folder, and goes on with when it was interrupted."""

    folder: Path
    """Where all of it lies."""
    begin: Sequence[Any]
    """The command that begins it."""
    go_on: Sequence[Any]
    """The command that goes on with it."""

    @property
    def begun(self) -> bool:
        """Whether there is anything to go on with."""
        return any(self.folder.rglob("config.json"))

    def start(self, log: TextIO) -> subprocess.Popen[bytes]:
        """Start the process that is due."""
        return subprocess.Popen(**command(*(self.go_on if self.begun else self.begin)), stdout=log, stderr=log)

    def age(self) -> list[tuple[str, int]]:
        """Return what changes whenever a config or a checkpoint is written."""
        found = [*self.folder.rglob("config.json"), *self.folder.rglob("step-*")]
        ages = []
        for path in found:
            try:
                ages.append((str(path), path.stat().st_mtime_ns))
            except FileNotFoundError:  # the run removed it meanwhile
                continue
        return sorted(ages)

    def wait_for_life(self, process: subprocess.Popen[bytes], moment: float) -> None:
        """Wait until the process has written something, and then so many seconds; or until it has ended."""
        before, deadline = self.age(), time.monotonic() + PATIENCE
        while process.poll() is None and self.age() == before and time.monotonic() < deadline:
            time.sleep(0.02)
        until = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def survive(self, moments: Sequence[float], log: TextIO) -> int:
        """Let processes be killed, `moments` seconds after each shows life, then one finish; returns the kills."""
        kills = 0
        for moment in moments:
            with self.start(log) as process:
                self.wait_for_life(process, moment)
                if process.poll() is None:
                    process.kill()
                    kills += 1
        self.finish(log)
        return kills

    def finish(self, log: TextIO) -> None:
        """Let it come to its end undisturbed."""
        with self.start(log) as process:
            assert process.wait(PATIENCE) == 0, f"{self.folder}: see the log beside it"


def killed_rounds(
    work: Callable[[str], Work], ends: Callable[[Path], Sequence[Any]], rounds: int, each: int, latest: float
) -> tuple[int, int, int]:
    """Do a work once undisturbed, then so many times with `each` kills, up to `latest` seconds after signs of life.

    `work` makes it under a name, `ends` tells what a folder's parts came to. Returns how often it was killed, how many
    parts there were in all the rounds, and how many of them ended equal to those of the undisturbed one.
    """
    rng, straight = random.Random(str(work("straight").begin)), work("straight")
    straight.folder.parent.mkdir(parents=True, exist_ok=True)
    kills = parts = equal = 0
    with (straight.folder.parent / "log").open("w") as log:
        straight.finish(log)
        expected = ends(straight.folder)
        for index in range(rounds):
            again = work(f"killed-{index}")
            kills += again.survive([rng.uniform(0, latest) for _ in range(each)], log)
            pairs = list(zip(ends(again.folder), expected, strict=True))
            parts, equal = parts + len(pairs), equal + sum(one == other for one, other in pairs)
    print(f"{straight.folder.parent.name}: {kills} kills, {equal} of {parts} equal", flush=True)
    return kills, parts, equal
