"""Ctrl-C and SIGTERM as requests, so that a run stops between two steps and not inside one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM ask the loop to end after its step instead of tearing it; a second one is not delayed."""
    requests: list[int] = []

    def request(number: int, _frame: Any) -> None:
        requests.append(number)
        signal.signal(number, previous[number])

    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    except ValueError:  # not the main thread: signals are somebody else's there
        pass
    try:
        yield requests
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
