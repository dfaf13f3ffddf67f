"""The table of docs/explanation/tried.md on runs of 200,000 steps: what might keep the lead of normalised SAC."""

from pathlib import Path

from sweep_tables import table

from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log

RUNS = Path(__file__).parents[1] / "results" / "long"
FORMS = {
    "sac": "plain",
    "falling-rate": "falling rate",
    "unit-norm-falling-rate": "unit-norm weights, falling rate",
    "renormalised": "renormalised",
    "categorical": "categorical critics",
    "batch-512": "batches of 512",
    "sac-256": "plain, 256 wide: the default",
}
TASKS = ("HalfCheetah-v5", "Hopper-v5")
STEPS = (100_000, 200_000)


def markdown() -> str:
    """The return of each form by task and step, a number a seed."""
    rows = [["", *(f"{task}, {step:,}" for task in TASKS for step in STEPS)]]
    for form, label in FORMS.items():
        rows.append([label, *(_cell(RUNS / task / form, step) for task in TASKS for step in STEPS)])
    return table(rows)


def _cell(folder: Path, step: int) -> str:
    return ", ".join(f"{_return(seed, step):,.0f}" for seed in sorted(folder.glob("seed*")))


def _return(run: Path, step: int) -> float:
    """The mean of the last two evaluations by a step."""
    rows = [row for row in read_log(RunFolder(run)) if row["step"] <= step]
    return sum(row["eval_return"] for row in rows[-2:]) / 2
