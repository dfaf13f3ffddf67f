"""Kills of a search for hyperparameters, at random moments of its own process."""

import random

from outcomes import Outcome
from processes import Work, flags
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
    rng, survived, equal, rounds = random.Random(3), 0, 0, max(1, kills)
    words = ["tune", "Pendulum-v1", "--search", "critic_lr=1e-4:1e-2:log", "--no-prune", *flags(SETTINGS)]

    def work(name):
        arguments = [*words, "--out", folder / "tune" / name]
        return Work(folder / "tune" / name, arguments, arguments)

    (folder / "tune").mkdir()
    with (folder / "tune" / "log").open("w") as log:
        work("straight").finish(log)
        for index in range(rounds):
            survived += work(f"killed-{index}").survive([rng.uniform(0, 6) for _ in range(3)], log)
            equal += outcome_of(work(f"killed-{index}").folder) == outcome_of(work("straight").folder)
    print(f"searches: {survived} kills, {equal} of {rounds} searches equal", flush=True)
    result = f"gone on with; {equal} of {rounds} searches end equal: values, scores, every trial's run, best.toml"
    yield Outcome("process of `bisac tune` killed at a random moment", survived, result, rounds - equal)
