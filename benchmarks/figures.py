"""Every picture and table of docs/ that committed data can give: `make figures`.

Tables go between their markers in the pages. With --check nothing is written: it ends with 1 where a table is stale.
Figures that need a run's checkpoints (marginals, projection) or minutes (vdna) keep their pictures, beside whose
numbers they were written by `bisac figure`; their tables are made of those numbers.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import acting
import figure_tables
import growth
import published
import report
import returns
import sick_runs
import sweep_tables
import tried
import tyro
import updates
from measuring import spliced

from bisac.figures import FIGURES
from bisac.report.analyse import analyse
from bisac.report.analysis import Analysis
from bisac.report.data import read_sweep
from bisac.report.figures import draw_figures

ROOT = Path(__file__).parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
SWEEPS = {
    "normalised": (RESULTS / "normalised-128", {"curves": "normalised-curves"}),
    "classic": (
        RESULTS / "sweep-100k",
        {name: name for name in ("curves", "aggregates", "improvement", "efficiency")},
    ),
}
"""Sweeps of docs/results.md: where they lie, and which of the report's figures the page shows, under which name."""

LONG = [
    published.Options(RESULTS / "long", "sac-256", 200_000, at, DOCS / "results" / "long.png")
    for at in (100_000, 200_000)
]
"""The runs of docs/results.md that go on beyond 50,000 steps, and the steps at which it tells their returns."""

PICTURES = {
    "figures/gradient.png": ("gradient", {}),
    "figures/curves.png": ("curves", {"runs": (RESULTS / "bisac-128",)}),
    "results/brax.png": ("curves", {"runs": (RESULTS / "brax-hopper-spring",)}),
}
"""Figures of `bisac figure` that need no checkpoints, by their files: their names and their arguments."""


@dataclass(frozen=True)
class Options:
    """What to do with what the data gives."""

    check: bool = False
    """Write nothing; say which tables are stale."""
    quick: bool = False
    """Leave out what takes seconds: the statistics of sweeps."""


def tables(analyses: dict[str, Analysis]) -> Iterator[tuple[Path, str, str]]:
    """Every table: its page, the name of its markers, and its text."""
    yield DOCS / "performance.md", "performance", report.markdown(_read(DOCS / "performance.json"))
    yield DOCS / "performance.md", "returns", returns.table(returns.read_all(returns.Options()))
    yield DOCS / "performance.md", "updates", updates.markdown(_read(DOCS / "updates.json"))
    yield DOCS / "performance.md", "scaling", growth.markdown(_read(DOCS / "scaling.json"))
    yield DOCS / "export.md", "acting", acting.markdown(_read(DOCS / "acting.json"))
    yield DOCS / "results.md", "published", published.markdown(published.Options(RESULTS / "normalised-256"))
    yield DOCS / "results.md", "long", "\n\n".join(map(published.markdown, LONG))
    for name, kept in (("starts", tried.STARTS), ("longer", tried.LONGER)):
        yield DOCS / "explanation" / "tried.md", name, tried.markdown(kept)
    for name in ("marginals", "projection", "vdna"):
        numbers = _read(DOCS / "figures" / f"{name}.json")["numbers"]
        yield DOCS / "figures.md", name, getattr(figure_tables, name)(numbers)
    for name, analysis in analyses.items():
        makers = (sweep_tables.scores, sweep_tables.differences, sweep_tables.aggregates)
        yield DOCS / "results.md", name, "\n\n".join(make(analysis) for make in makers)


def draw(analyses: dict[str, Analysis]) -> None:
    """Draw every picture."""
    report.chart(_read(DOCS / "performance.json"), DOCS / "performance.png")
    growth.chart(_read(DOCS / "scaling.json"), DOCS / "scaling.png")
    returns.chart(returns.read_all(returns.Options()), DOCS / "returns.png")
    published.draw(published.Options(RESULTS / "normalised-256"))
    published.draw(LONG[0])
    (DOCS / "how-to" / "sick-and-healthy.png").write_bytes(sick_runs.draw(RESULTS / "sick-and-healthy"))
    for name, analysis in analyses.items():
        pictures = draw_figures(analysis)
        for figure, file in SWEEPS[name][1].items():
            (DOCS / "results" / f"{file}.png").write_bytes(pictures[figure]["png"])
    for file, (name, arguments) in PICTURES.items():
        made = FIGURES[name](**arguments).make(lambda _: None)
        (DOCS / file).write_bytes(made.pictures["png"])
        print("\n".join(made.summary))


def stale(analyses: dict[str, Analysis]) -> list[str]:
    """The tables that are not what the data gives."""
    return [
        f"{page.relative_to(ROOT)}: {section}"
        for page, section, text in tables(analyses)
        if spliced(page, section, text) != page.read_text()
    ]


def main(options: Options) -> None:
    """Write pictures and tables, or say which tables are stale."""
    found = {} if options.quick else {name: analyse(read_sweep(folder), None) for name, (folder, _) in SWEEPS.items()}
    if options.check:
        if old := stale(found):
            sys.exit(f"run make figures; these tables are not what the data gives: {', '.join(old)}.")
        return
    draw(found)
    for page, section, text in tables(found):
        page.write_text(spliced(page, section, text))


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
