"""Write the pages of docs/reference/ that the code knows best: commands, settings, events and file formats."""

import contextlib
import dataclasses
import inspect
import io
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}  # what help is laid out for

from events import events
from formats import formats
from tables import fields

from bisac.algos import REGISTRY
from bisac.cli import COMMANDS, run
from bisac.presets import FAST, GAMMA, HYPERPARAMETERS, PAPER, chosen, listed
from bisac.runs.settings import Settings

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
ORIGIN = "*Written by `make reference` from the code; do not edit.*"


def command_line() -> str:
    """Return the page of all commands and their flags."""
    parts = ["# Command line", "[Exit codes](shell.md) have a page of their own.", "## bisac", _fenced(_help([]))]
    for name in COMMANDS:
        parts += [f"## bisac {name}", _fenced(_help([name]))]
    return "\n\n".join(parts) + "\n"


def settings() -> str:
    """Return the page of all algorithms' settings."""
    parts = [
        "# Settings",
        "In Python a setting is an argument of `bisac.train`, such as `batch_size=128`; on the command line it is "
        "a flag, `--batch-size 128`. `auto` is settled when a run starts and stands in its `config.json`. "
        "What the defaults rest on is in [the algorithms](../algorithm.md).",
        "## Of every run",
        _table(Settings),
    ]
    for name, kind in REGISTRY.items():
        parts += [f"## {name}", inspect.cleandoc(kind.__doc__ or ""), _table(kind)]
    return "\n\n".join([*parts, "## Presets", *_presets()]) + "\n"


def pages() -> dict[Path, str]:
    """Return what belongs into each page."""
    made = {"command-line": command_line, "settings": settings, "events": events, "files": formats}
    return {REFERENCE / f"{name}.md": make() for name, make in made.items()}


def _help(words: list[str]) -> str:
    """Return what a command prints with --help."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        run([*words, "--help"])
    return "\n".join(line.rstrip() for line in told.getvalue().strip().splitlines())


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _table(kind: type[Any]) -> str:
    """Return a class's settings as a table: name, default, what the class says of it."""
    told = {field.name: field.text for field in fields(kind)}
    rows = ["| setting | default | |", "|---|---|---|"]
    for field in dataclasses.fields(kind):
        text = told[field.name].replace("|", "\\|")
        rows.append(f"| `{field.name}` | {_shown(field)} | {text} |")
    return "\n".join(rows)


def _shown(field: "dataclasses.Field[Any]") -> str:
    if field.default is dataclasses.MISSING:
        return ""
    if isinstance(field.default, tuple):
        return " ".join(map(str, field.default)) or "none"
    return str(field.default)


def _presets() -> list[str]:
    """Return what presets set, by task and by algorithm."""
    rows = ["| task | algorithm | auto sets |", "|---|---|---|"]
    rows += [f"| {task} | all | gamma {gamma} |" for task, gamma in GAMMA.items()]
    own = ((task, algo, values) for algo, tasks in HYPERPARAMETERS.items() for task, values in tasks.items())
    rows += [f"| {task} | `{algo}` | {listed(values)} |" for task, algo, values in own]
    more = ["| algorithm | preset | sets |", "|---|---|---|"]
    for preset, table in (("fast", FAST), ("paper", PAPER)):
        more += [f"| `{algo}` | {preset} | {chosen(preset, None, algo).listed()} |" for algo in table]
    intro = "`--preset auto` is what holds unless you say otherwise; `--preset none` is the plain defaults."
    return [intro, "\n".join(rows), "\n".join(more)]


if __name__ == "__main__":
    for page, text in pages().items():
        title, _, rest = text.partition("\n\n")
        page.write_text(f"{title}\n\n{ORIGIN}\n\n{rest}")
        sys.stdout.write(f"{page.relative_to(REFERENCE.parents[1])}\n")
