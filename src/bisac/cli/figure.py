"""The command `bisac figure`: draw one of the paper's figures, or list them."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bisac.cli.arguments import parse
from bisac.errors import BisacError
from bisac.figures import FIGURES, write_figure


def run_figure(arguments: list[str], console: Console) -> int:
    """Run the command: draw a figure, or say which there are; returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        figures = Table("figure", "what it shows", title="bisac figure NAME [RUN ...] [--out DIR]", box=None)
        figures.title_justify = "left"
        for name, kind in FIGURES.items():
            figures.add_row(f"[bold]{name}[/]", (kind.__doc__ or "").splitlines()[0])
        console.print(figures)
        console.print("\n'bisac figure NAME --help' tells what it measures, and its arguments.", highlight=False)
        return 0
    name, *rest = arguments
    if name not in FIGURES:
        raise BisacError(f"there is no figure '{name}'; there are {', '.join(FIGURES)}.")
    command = parse(FIGURES[name], f"figure {name}", rest)
    with console.status(name) as status:
        made, paths = write_figure(name, command, lambda text: status.update(escape(text)))
    for line in (*made.summary, f"written: {', '.join(map(str, paths))}"):
        console.print(escape(line), highlight=False, soft_wrap=True)
    return 0
