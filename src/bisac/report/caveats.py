"""What a reader must know before trusting a report: runs, seeds and tasks that are missing from its numbers."""

from collections.abc import Iterator
from html import escape

from bisac.plotting.statistics import ENOUGH_SEEDS
from bisac.report.analysis import Analysis


def caveats(analysis: Analysis) -> Iterator[str]:
    """Give what is missing or unusual in the sweep, a paragraph of HTML each."""
    yield from _incomplete(analysis)
    if any(result.seeds < ENOUGH_SEEDS for result in analysis.results):
        yield (
            f"<b>Fewer than {ENOUGH_SEEDS} seeds</b> in places: no difference can be established there, and from "
            f"one seed no interval is drawn at all."
        )
    left_out = [env for env in analysis.data.envs if env not in analysis.aggregated]
    if left_out:
        yield (
            f"<b>Left out of what is over all tasks</b>: {escape(', '.join(left_out))}. "
            f"{escape(analysis.reference_label)} has no complete run there, or gained less than twice the standard "
            f"error of its mean, so scores cannot be divided by its gain."
        )
    counted = {aggregate.contestant for aggregate in analysis.aggregates}
    absent = [look.label for name, look in analysis.looks.items() if name not in counted]
    if analysis.aggregated and absent:
        yield (
            f"<b>Not in what is over all tasks</b>: {escape('; '.join(absent))}. No seed of theirs is complete on "
            f"every one of {escape(', '.join(analysis.aggregated))}."
        )
    longer = {r.contestant: r.evaluations.taken for r in analysis.data.runs if r.evaluations.taken > 1.01 * r.budget}
    if longer:
        names = [f"{analysis.looks[name].label} {taken:,}" for name, taken in longer.items()]
        yield (
            f"<b>More steps than planned</b>: {escape('; '.join(names))}. What learns from rollouts ends with a whole "
            f"one, and is evaluated after rollouts only. Of a run that was extended, what was planned makes the score."
        )


def _incomplete(analysis: Analysis) -> Iterator[str]:
    """Name the runs that are incomplete, if there are any."""
    runs, incomplete = analysis.data.runs, analysis.data.incomplete
    if not incomplete:
        return
    which = [
        f"{run.env}, {analysis.looks[run.contestant].label}, seed {run.seed} ({run.evaluations.taken:,} steps)"
        for run in incomplete
        if run.evaluations.taken
    ]
    if unseen := len(incomplete) - len(which):
        which.append(f"{unseen} not evaluated yet")
    yield (
        f"<b>{len(incomplete)} of {len(runs)} runs are incomplete</b> and count in no statistic; where they failed, "
        f"that flatters the contestant: {escape('; '.join(which))}."
    )
