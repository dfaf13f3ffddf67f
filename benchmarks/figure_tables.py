"""The numbers of docs/figures/*.json, which `bisac figure` wrote, as tables of Markdown for docs/figures.md."""

from collections.abc import Callable
from typing import Any

from sweep_tables import table

Checkpoint = dict[str, Any]


def marginals(numbers: dict[str, Any]) -> str:
    """How far a run's marginals are from the true ones, a column a checkpoint."""
    rows: dict[str, Callable[[Checkpoint], str]] = {
        "mean of x: off by": lambda c: f"{c['over_all']['mean_error']:.2f}",
        "its correlation with the truth": lambda c: f"{c['over_all']['mean_correlation']:.2f}",
        "std of x: off by (true: about 0.5)": lambda c: f"{c['over_all']['std_error']:.2f}",
        "the correlation of std with the truth": lambda c: f"{c['over_all']['std_correlation']:.2f}",
        "total variation": lambda c: f"{c['over_all']['total_variation']:.2f}",
        "KL(true, estimate), nats": lambda c: f"{c['over_all']['kl_true_to_estimate']:.2g}",
        "std over actions of `sum_i Q_i`, of U": lambda c: "{sum_q_i:.2g}, {u:.2g}".format(**c["std_over_actions"]),
        "alpha": lambda c: f"{c['alpha']:.2g}",
    }
    return _by_checkpoint(numbers, "", rows)


def projection(numbers: dict[str, Any]) -> str:
    """How far each policy is from the target, in both directions, a column a checkpoint."""

    def median(kind: str, policy: str) -> Callable[[Checkpoint], str]:
        return lambda c: f"{c['target_mean'][kind]['quartiles'][policy][1]:.2g}"

    def nearer(kind: str) -> Callable[[Checkpoint], str]:
        return lambda c: f"{c['target_mean'][kind]['projection_nearer_than_sac_step']:.0%}"

    rows: dict[str, Callable[[Checkpoint], str]] = {
        "D(q, pi): policy before": median("kl_q_pi", "start"),
        "after one SAC step": median("kl_q_pi", "sac_step"),
        "VDN-a's projection": median("kl_q_pi", "projection"),
        "projection of the true marginals": median("kl_q_pi", "exact_projection"),
        "projection nearer than the SAC step in": nearer("kl_q_pi"),
        "D(pi, q): after one SAC step": median("kl_pi_q", "sac_step"),
        "D(pi, q): VDN-a's projection": median("kl_pi_q", "projection"),
        "D(pi, q): projection of the true marginals": median("kl_pi_q", "exact_projection"),
        "D(pi, q): projection nearer than the SAC step in": nearer("kl_pi_q"),
    }
    return _by_checkpoint(numbers, "median over states, nats", rows)


def vdna(numbers: dict[str, Any]) -> str:
    """Total variation of VDN-a's marginals from known ones, a column a density, a row a way to train."""
    targets = list(numbers)
    ways = [name for name, found in numbers[targets[0]].items() if isinstance(found, dict) and "std_error" in found]
    rows = [["total variation", *targets]]
    for way in ways:
        rows.append([way, *(f"{numbers[target][way]['total_variation']['median']:.2g}" for target in targets)])
    return table(rows)


def _by_checkpoint(numbers: dict[str, Any], head: str, rows: dict[str, Callable[[Checkpoint], str]]) -> str:
    checkpoints = numbers["checkpoints"]
    lines = [[head, *(one["label"] for one in checkpoints)]]
    return table(lines + [[label, *map(cell, checkpoints)] for label, cell in rows.items()])
