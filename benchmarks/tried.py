"""The tables of docs/explanation/tried.md that put forms of one algorithm beside each other, a number a seed."""

from pathlib import Path
from typing import NamedTuple

from sweep_tables import table

from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log

RESULTS = Path(__file__).parents[1] / "results"


class Forms(NamedTuple):
    """What stands in a table."""

    folders: dict[str, str]
    """Where the seeds of each form lie, with `{task}` for the task; and what it is called."""
    tasks: tuple[str, ...]
    steps: tuple[int, ...]
    """By when the return is told: the mean of the last two evaluations by then."""


LONGER = Forms(
    {
        "long/{task}/sac": "plain",
        "long/{task}/falling-rate": "falling rate",
        "long/{task}/unit-norm-falling-rate": "unit-norm weights, falling rate",
        "long/{task}/renormalised": "renormalised",
        "long/{task}/categorical": "categorical critics",
        "long/{task}/batch-512": "batches of 512",
        "long/{task}/sac-256": "plain, 256 wide: the default",
    },
    ("HalfCheetah-v5", "Hopper-v5"),
    (100_000, 200_000),
)
"""What might keep the lead of normalised SAC in long runs."""

STARTS = Forms(
    {
        "bisac-128/{task}/sac": "in units of their spread, eight environments: the default",
        "start/{task}/rewards-as-they-are": "as they are",
        "start/{task}/one-environment": "in units of their spread, one environment",
    },
    ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"),
    (20_000, 40_000),
)
"""How normalised SAC takes rewards, and in how many environments."""


def markdown(forms: Forms) -> str:
    """A row a form, a column a task and step."""
    columns = [(task, step) for task in forms.tasks for step in forms.steps]
    rows = [["", *(f"{task}, {step:,}" for task, step in columns)]]
    for folder, label in forms.folders.items():
        rows.append([label, *(_cell(RESULTS / folder.format(task=task), step) for task, step in columns)])
    return table(rows)


def _cell(folder: Path, step: int) -> str:
    return ", ".join(f"{_return(seed, step):,.0f}" for seed in sorted(folder.glob("seed*")))


def _return(run: Path, step: int) -> float:
    rows = [row for row in read_log(RunFolder(run)) if row["step"] <= step + 8]  # eight environments step together
    return sum(row["eval_return"] for row in rows[-2:]) / 2
