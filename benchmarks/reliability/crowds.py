"""Two processes and more on one folder, begun at the same moment."""

import subprocess

from kills import work_of
from outcomes import Outcome
from processes import PATIENCE, command, flags
from small_runs import SETTINGS, TINY, VARIANTS, fingerprint


def crowd_campaign(folder, rounds):
    """One works and the others are refused in a sentence; what comes out is as if it had been alone."""
    place = folder / "crowds"
    place.mkdir()
    settings = SETTINGS | VARIANTS["sac"] | {"num_envs": 1}
    with (place / "log").open("w") as log:
        work_of(place / "straight", settings).finish(log)
    expected = fingerprint(place / "straight")
    small = dict(algo="sac", steps=600, eval_every=300, eval_episodes=1, checkpoint_every=200, **TINY)
    kinds = {
        "train": lambda out: work_of(out, settings).begin,
        "sweep": lambda out: ["sweep", "--env", "Pendulum-v1", "--seeds", "0:1", *flags(small), "--out", out],
        "tune": lambda out: ["tune", "Pendulum-v1", "--trials", "1", *flags(small), "--out", out],
    }
    for kind, words in kinds.items():
        yield _crowd(kind, words, place, rounds if kind == "train" else 1, expected)


def _crowd(kind, words, place, rounds, expected):
    refused = finished = lost = 0
    said = ""
    for index in range(rounds):
        out = place / f"{kind}-{index}"
        crowd = [
            subprocess.Popen(**command(*words(out)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for _ in range(3)
        ]
        for process in crowd:
            output, _ = process.communicate(timeout=PATIENCE)
            finished += process.returncode == 0
            refused += process.returncode == 2
            if process.returncode == 2:
                said = said or output.strip().splitlines()[-1].removeprefix("bisac: ").replace(str(out), "runs/one")
        if kind == "train":
            lost += fingerprint(out) != expected
    print(f"crowds of {kind}: {finished} finished, {refused} refused, {lost} lost", flush=True)
    others = 3 * rounds - finished - refused
    result = f"{finished} worked, {refused} refused with a sentence" + (f", {others} otherwise" if others else "")
    result += f"; {rounds - lost} of {rounds} runs equal to one alone" if kind == "train" else ""
    what = f"three processes of `bisac {kind}` begun at once on one folder"
    return Outcome(what, rounds, result, lost, others, said)
