"""A sweep's numbers as tables of Markdown: what `bisac report` finds, for the pages of docs/."""

from bisac.plotting.statistics import Estimate
from bisac.report.analysis import Analysis, TaskResult
from bisac.report.words import decimals


def scores(analysis: Analysis) -> str:
    """Final scores by task, with intervals."""
    rows = [["", "seeds", *analysis.data.envs]]
    for name in analysis.names:
        found = [analysis.result(env, name) for env in analysis.data.envs]
        seeds = sorted({str(one.seeds) for one in found if one})
        cells = [told(one.score, f",.{decimals(one.score)}f") if one else "" for one in found]
        rows.append([analysis.looks[name].label, " to ".join(seeds), *cells])
    return table(rows)


def differences(analysis: Analysis) -> str:
    """Each contestant's score less the reference's by task, and whether that is established."""
    rows = [[f"less that of {analysis.reference_label}", *analysis.data.envs]]
    for name in analysis.names:
        if name != analysis.reference:
            cells = [_verdict(analysis.result(env, name)) for env in analysis.data.envs]
            rows.append([analysis.looks[name].label, *cells])
    return table(rows)


def aggregates(analysis: Analysis) -> str:
    """Numbers over all tasks, normalised."""
    label = analysis.reference_label
    rows = [["over all tasks", "IQM", f"less that of {label}", f"probability of improvement over {label}"]]
    for one in analysis.aggregates:
        cells = (told(one.iqm, ".2f"), told(one.difference, "+.2f"), told(one.improvement, ".2f"))
        rows.append([analysis.looks[one.contestant].label, *cells])
    return table(rows)


def told(estimate: Estimate | None, digits: str) -> str:
    """A number with its interval."""
    if estimate is None:
        return ""
    if estimate.interval is None:
        return f"{estimate.value:{digits}}"
    low, high = estimate.interval
    return f"{estimate.value:{digits}} ({low:{digits}} to {high:{digits}})"


def table(rows: list[list[str]]) -> str:
    """Rows as a table, the first its head."""
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


def _verdict(result: TaskResult | None) -> str:
    if result is None or result.difference is None:
        return ""
    established = "" if result.difference.establishes(0.0) else "not "
    return f"{told(result.difference, f'+,.{decimals(result.difference)}f')}, {established}established"
