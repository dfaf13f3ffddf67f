"""The terminal: where everything is printed, and how many runs at work are watched there."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

Event = TypeVar("Event")

LINE_EVERY = 60.0
"""Seconds between the lines that tell of the whole, where there is no terminal."""


def open_console(stderr: bool = False) -> Console:
    """Return where to print; what a user typed is shown as it is, for :100: is no picture."""
    return Console(stderr=stderr, emoji=False)


def duration(seconds: float) -> str:
    """Return a time in words."""
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02d} min" if hours < 48 else f"{hours / 24:.1f} days"


class Watch:
    """A live table of what is at work, below the lines that are said; without a terminal, a line a minute instead."""

    def __init__(self, console: Console):
        self.console = console
        self.live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._told = time.monotonic()

    def __enter__(self) -> "Watch":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.live:
            self.live.stop()

    def say(self, text: str) -> None:
        """Print a line, in which Rich's markup counts."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def tell_whole(self, summary: str, table: Callable[[], Table]) -> None:
        """Show how far the whole has come: always on a terminal, with the table; else once a minute."""
        if self.live:
            self.live.update(Group(table(), Text(summary, style="bold")), refresh=True)
        elif time.monotonic() - self._told > LINE_EVERY:
            self._told = time.monotonic()
            self.say(summary)


def follow(events: Iterable[Event], show: Callable[[Event, Watch], None], console: Console) -> Event | None:
    """Show events while they come, and return the last of them."""
    last = None
    with Watch(console) as watch:
        for event in events:
            show(event, watch)
            last = event
    return last
