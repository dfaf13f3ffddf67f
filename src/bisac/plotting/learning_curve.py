"""The learning curve of one run, drawn from the rows of its log; it must not know where the run lies."""

from collections.abc import Mapping, Sequence

from bisac.plotting.style import COLOURS, drawing, literal, rendered


def draw_learning_curve(rows: Sequence[Mapping[str, float | None]], title: str) -> bytes:
    """Draw the evaluation return with its spread and the training episodes' return against steps, as a PNG.

    The rows are those of progress.csv, of which step, eval_return, eval_return_std and episode_return are drawn; None
    stands where there is nothing to tell yet.
    """
    evaluated = [row for row in rows if row["eval_return"] is not None]
    steps, mean, spread = (
        [row[name] or 0.0 for row in evaluated] for name in ("step", "eval_return", "eval_return_std")
    )
    explored = [(row["step"] or 0.0, row["episode_return"]) for row in rows if row["episode_return"] is not None]
    with drawing(5.2, 3.1) as figure:
        axes = figure.subplots()
        if explored:
            axes.plot(*zip(*explored, strict=True), color="0.6", lw=1.0, label="training episodes (exploring)")
        low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
        colour, spread_label = COLOURS["bisac"], "± 1 standard deviation over episodes"
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, lw=0, label=spread_label)
        axes.plot(steps, mean, color=colour, label="evaluation (deterministic policy)")
        axes.set(xlabel="environment steps", ylabel="return per episode", title=literal(title))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend(loc="best")
        return rendered(figure, ["png"])["png"]
