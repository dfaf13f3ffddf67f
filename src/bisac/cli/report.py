"""The command `bisac report`: write a sweep's report, and say in short what it says."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from bisac.cli.arguments import parse
from bisac.display.sweep import show_findings
from bisac.errors import BisacError
from bisac.report.tuning import write_tuning_page
from bisac.report.write import write_report
from bisac.tuning.record import RECORD as TUNING


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Compare the contestants of a sweep: one HTML page, and beside it figures (PNG, PDF) and tables (CSV, LaTeX)."""

    sweep: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SWEEP")]
    """The folder of a sweep, or of a search ('bisac tune'); it may still run."""
    out: Path | None = None
    """The page; by default report/report.html in the sweep's folder."""
    reference: str | None = None
    """The contestant to compare with; by default sac, or the first one where there is none."""


def run_report(arguments: list[str], console: Console) -> int:
    """Run the command; returns its exit code."""
    command = parse(ReportCommand, "report", arguments)
    if (command.sweep / TUNING).exists():
        if command.reference is not None:
            raise BisacError("--reference is for a sweep; the trials of a search are all of one algorithm.")
        told = escape(str(write_tuning_page(command.sweep, command.out)))
        console.print(f"report        {told}", highlight=False, soft_wrap=True)
        return 0
    page = command.out or command.sweep / "report" / "report.html"
    with console.status("gathering and resampling"):
        analysis, paths = write_report(command.sweep, page, command.reference)
    show_findings(analysis, console)
    console.print(f"report        {escape(str(page))}", highlight=False, soft_wrap=True)
    console.print(f"beside it     {', '.join(path.name for path in paths[1:])}", highlight=False, soft_wrap=True)
    return 0
