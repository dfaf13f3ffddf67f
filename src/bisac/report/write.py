"""From a sweep's folder to a report's files; the one module of the report that writes."""

from pathlib import Path

from bisac.report import tables
from bisac.report.analyse import analyse
from bisac.report.analysis import Analysis
from bisac.report.data import read_sweep
from bisac.report.figures import draw_figures
from bisac.report.page import render_page
from bisac.storage import write_atomic


def write_report(sweep: Path, page: Path, reference: str | None = None) -> tuple[Analysis, list[Path]]:
    """Write the page and, beside it and under its name, figures and tables; returns what they say, and their paths."""
    analysis = analyse(read_sweep(sweep), reference)
    contents = {page: render_page(analysis, f"Sweep {sweep.resolve().name}").encode()}
    for name, pictures in draw_figures(analysis).items():
        contents |= {beside(page, f"{name}.{ending}"): picture for ending, picture in pictures.items()}
    contents |= {
        beside(page, "scores.csv"): tables.to_csv(tables.result_rows(analysis)).encode(),
        beside(page, "aggregates.csv"): tables.to_csv(tables.aggregate_rows(analysis)).encode(),
        beside(page, "runs.csv"): tables.to_csv(tables.run_rows(analysis)).encode(),
        beside(page, "scores.tex"): tables.to_latex(analysis).encode(),
    }
    page.parent.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_atomic(path, content)
    return analysis, list(contents)


def beside(page: Path, name: str) -> Path:
    """Return where a file that belongs to a page lies."""
    return page.with_name(f"{page.stem}-{name}")
