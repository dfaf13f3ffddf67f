"""A report's numbers as tables: CSV for programs, LaTeX for papers. Nothing is computed here."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from bisac.plotting.statistics import Estimate
from bisac.report.analysis import Analysis, TaskResult
from bisac.report.scores import final_score
from bisac.report.words import decimals

TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    c: f"\\{c}" for c in "_%&#${}"
}
"""What LaTeX has for the characters that mean something to it."""


def result_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a row for each task and contestant."""
    return [
        {
            "task": result.env,
            "contestant": result.contestant,
            "seeds_complete": result.seeds,
            "seeds_planned": result.planned,
            **_columns("score_iqm", result.score),
            **_columns("difference", result.difference),
            "difference_established": _established(result.difference, 0.0),
            **_columns("probability_of_improvement", result.improvement),
            "improvement_established": _established(result.improvement, 0.5),
            "seeds_that_reached_reference": sum(math.isfinite(steps) for steps in result.reached),
            "median_steps_to_reference": _finite(result.median_reached) if result.reached else None,
            "median_seconds": round(result.median_seconds, 1),
            "success_rate": result.success_rate,
        }
        for result in analysis.results
    ]


def aggregate_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a row for each contestant, over the tasks that can be normalised."""
    return [
        {
            "contestant": aggregate.contestant,
            "tasks": " ".join(analysis.aggregated),
            "seeds": aggregate.seeds,
            **_columns("iqm", aggregate.iqm),
            **_columns("median", aggregate.median),
            **_columns("mean", aggregate.mean),
            **_columns("iqm_difference", aggregate.difference),
            "difference_established": _established(aggregate.difference, 0.0),
            **_columns("probability_of_improvement", aggregate.improvement),
            "improvement_established": _established(aggregate.improvement, 0.5),
        }
        for aggregate in analysis.aggregates
    ]


def run_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a row for each run, complete or not."""
    return [
        {
            "task": run.env,
            "contestant": run.contestant,
            "seed": run.seed,
            "complete": run.complete,
            "steps": run.evaluations.taken,
            "final_score": final_score(run) if run.complete else None,
            "seconds": round(float(run.evaluations.seconds[-1]), 1) if len(run.evaluations) else None,
            "final_success_rate": run.evaluations.success_rate if run.complete else None,
        }
        for run in analysis.data.runs
    ]


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows of the same columns as CSV; an empty field where there is nothing to tell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_latex(analysis: Analysis) -> str:
    """Return the final scores by task, for a paper with booktabs; bold is what is established to differ."""
    shown = analysis.looks
    seeds = sorted({result.seeds for result in analysis.results})
    lines = [
        f"% Interquartile mean of the final scores with 95% stratified bootstrap intervals; seeds: {_range(seeds)}.",
        f"% Bold: the difference from {_tex(analysis.reference_label)} is established (interval without 0).",
        f"\\begin{{tabular}}{{l{'r' * len(analysis.data.envs)}}}",
        "\\toprule",
        " & ".join(["", *map(_tex, analysis.data.envs)]) + r" \\",
        "\\midrule",
    ]
    for name in analysis.names:
        cells = [_cell(analysis.result(env, name)) for env in analysis.data.envs]
        lines.append(" & ".join([_tex(shown[name].label), *cells]) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _cell(result: TaskResult | None) -> str:
    if result is None:
        return "--"
    digits = f".{decimals(result.score, 1)}f"
    value = f"{result.score.value:{digits}}"
    if result.difference and result.difference.establishes(0.0):
        value = f"\\textbf{{{value}}}"
    if result.score.interval is None:
        return f"{value} (one seed)"
    low, high = result.score.interval
    return f"{value} {{\\scriptsize [{low:{digits}}, {high:{digits}}]}}"


def _columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    low, high = (estimate.interval if estimate else None) or (None, None)
    return {name: estimate.value if estimate else None, f"{name}_low": low, f"{name}_high": high}


def _established(estimate: Estimate | None, null: float) -> bool | None:
    return estimate.establishes(null) if estimate else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _range(values: Sequence[int]) -> str:
    return " to ".join(map(str, dict.fromkeys([values[0], values[-1]]))) if values else "none"


def _tex(text: str) -> str:
    return "".join(TEX.get(character, character) for character in " ".join(text.split()))
