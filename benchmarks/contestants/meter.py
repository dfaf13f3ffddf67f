"""How a contestant is measured: it trains as its users have it train, and pauses between two steps to be told.

The harness writes `steps SECONDS` or `updates SECONDS` to its input, and it answers with a line of JSON. So all
contestants stand ready at once and take turns, and slow drift of the machine falls on all alike.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("jax", "torch", "stable-baselines3", "sbx-rl", "rejax", "gymnasium", "mujoco", "numpy")
LEARNING_STARTS = 100
"""Environment steps before the first update, for all that learn from a replay memory."""
WARMED_UP = 150
"""The step from which on their speed counts."""
UPDATES = 10
"""Bare updates asked for at once."""


class Meter:
    """Counts steps; at the end of a slice it reports, and waits until it is told to go on."""

    def __init__(self, learns_at: int, ready_at: int, updates: Callable[[], int] | None = None):
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what libraries print is no answer
        self._learns_at, self._ready_at, self._updates = learns_at, ready_at, updates
        self._count, self._ready = 0, False
        self._begin = self._end = 0.0

    def tick(self, steps: int = 1) -> None:
        """So many environment steps were taken, and learned from if they are to be."""
        before, self._count = self._count, self._count + steps
        if self._ready:
            if (now := time.perf_counter()) >= self._end:
                self._say(count=self._count, seconds=now - self._begin)
                self._wait()
            return
        if before < self._learns_at <= self._count:
            self._say(versions=versions())
        if self._count >= self._ready_at:
            self._ready = True
            self._say()
            self._wait()

    def _wait(self) -> None:
        """Do as told, until told to take steps; the end of the orders ends the process."""
        for order in iter(sys.stdin.readline, ""):
            what, seconds = order.split()
            self._count, self._begin = 0, time.perf_counter()
            self._end = self._begin + float(seconds)
            if what == "steps":
                return
            assert self._updates is not None
            while time.perf_counter() < self._end or not self._count:
                self._count += self._updates()
            self._say(count=self._count, seconds=time.perf_counter() - self._begin)
        sys.exit()

    def _say(self, **answer: object) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps(answer | {"peak_bytes": peak}), file=self._out, flush=True)


def versions() -> dict[str, str]:
    """Of the packages that matter, where they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
