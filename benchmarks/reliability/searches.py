"""Kills of a search for hyperparameters, at random moments of its own process."""

from outcomes import Outcome
from processes import Work, flags, killed_rounds
from small_runs import TINY, fingerprint

from bisac.tuning.best import BEST
from bisac.tuning.record import read_record
from bisac.tuning.study import Study

SETTINGS = TINY | {
    "algo": "sac", "steps": 1000, "eval_every": 250, "eval_episodes": 1, "checkpoint_every": 200, "trials": 3,
    "jobs": 1,
}  # fmt: skip


def outcome_of(out):
    """All that a search comes to: its trials' values and scores, their runs, and the best settings."""
    trials = Study(out, read_record(out).tuning.space).trials()
    told = [(trial.number, dict(trial.values), trial.state, trial.score) for trial in trials]
    runs = {trial.number: fingerprint(out / f"trial-{trial.number:04}") for trial in trials}
    return told, runs, (out / BEST).read_text()


def search_campaign(folder, kills):
    """SIGKILL of `bisac tune` at random moments; its trials save themselves, and the same command goes on."""
    words = ["tune", "Pendulum-v1", "--search", "critic_lr=1e-4:1e-2:log", "--no-prune", *flags(SETTINGS)]

    def work(name):
        arguments = [*words, "--out", folder / "tune" / name]
        return Work(folder / "tune" / name, arguments, arguments)

    killed, searches, equal = killed_rounds(work, lambda out: [outcome_of(out)], max(1, kills), 3, 6.0)
    result = f"gone on with; {equal} of {searches} searches end equal: values, scores, every trial's run, best.toml"
    yield Outcome("process of `bisac tune` killed at a random moment", killed, result, searches - equal)
