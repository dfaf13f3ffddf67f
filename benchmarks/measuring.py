"""What the benchmarks share: turns, the bar that shows them, and where and with what they were taken."""

import json
import os
import platform
import string
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Name = TypeVar("Name")


def turns(names: Sequence[Name], rounds: int) -> Iterator[Name]:
    """Each name once a round, every round beginning with the next."""
    for number in range(rounds):
        shift = number % len(names)
        yield from (*names[shift:], *names[:shift])


def bar(console: Console) -> Progress:
    """How far it is."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description:30}"), *columns, console=console)


def context(versions: Iterable[dict[str, str]]) -> dict[str, Any]:
    """When, where and with what versions; a package that is there in several has all of them."""
    packages: dict[str, str] = {}
    for found in versions:
        for name, number in found.items():
            packages[name] = " and ".join(dict.fromkeys((*filter(None, [packages.get(name)]), number)))
    return {
        "date": date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "versions": {"Python": platform.python_version(), **packages},
    }


def described(context: dict[str, Any]) -> str:
    """The context in a line."""
    versions = ", ".join(f"{name} {number}" for name, number in context["versions"].items())
    return f"{context['date']}, {context['cpu']}, {context['cores']} virtual cores; {versions}"


def prose(text: str) -> str:
    """A paragraph in lines of fewer than a hundred characters."""
    return textwrap.fill(text, 99, break_long_words=False, break_on_hyphens=False)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def publish(name: str, results: Any, text: str, draw: Callable[[Any, Path], None], out: Path, console: Console) -> None:
    """Show the tables, and leave them, the readings and the chart in a folder."""
    console.print(Markdown(text))
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, out / f"{name}.png")
    if (document := out / "performance.md").exists():
        splice(document, name, text)
    console.print(f"written to {out}", soft_wrap=True)


def splice(document: Path, section: str, text: str) -> None:
    """Replace what stands between the section's two markers in a Markdown document."""
    document.write_text(spliced(document, section, text))


def spliced(document: Path, section: str, text: str) -> str:
    """Return a Markdown document with another text between the section's two markers."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, _, rest = document.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{document} has no place for the results: {begin} and {end} are missing.")
    return f"{before}{begin}\n{text}\n{end}{after}"


@contextmanager
def panels(path: Path, titles: Sequence[str], columns: int, size: tuple[float, float]) -> Iterator[list[Axes]]:
    """The panels of a figure, lettered and titled, which is saved at the end."""
    style: dict[Any, Any] = {
        "font.size": 8,
        "axes.titlesize": 8.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(style):
        figure, axes = plt.subplots(-(-len(titles) // columns), columns, figsize=size, layout="constrained")
        for letter, axis, title in zip(string.ascii_lowercase, axes.flat, titles, strict=False):
            axis.set_title(f"$\\bf{{{letter}}}$  {title}", loc="left")
        yield list(axes.flat)
        figure.savefig(path, dpi=160)
        plt.close(figure)
