"""Ctrl-C and SIGTERM as requests, so that a run stops between two steps and not inside one."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ECHO = 1.0
"""Seconds in which the same signal again is no second request: Linux tells of a parent's death once for each of its
threads, and a terminal's Ctrl-C may come from the shell and from a wrapper."""


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM ask the loop to end after its step instead of tearing it; a second one is not delayed."""
    requests: list[int] = []
    first = 0.0

    def request(number: int, _frame: Any) -> None:
        nonlocal first
        if not requests:
            first = time.monotonic()
            requests.append(number)
        elif time.monotonic() > first + ECHO:
            signal.signal(number, previous[number])
            signal.raise_signal(number)

    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    except ValueError:  # not the main thread: signals are somebody else's there
        pass
    try:
        yield requests
    finally:
        if requests:  # an echo would find nobody who knows it for one
            time.sleep(max(0.0, first + ECHO - time.monotonic()))
        for number, handler in previous.items():
            signal.signal(number, handler)
