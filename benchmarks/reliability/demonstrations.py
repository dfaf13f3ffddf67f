"""Kills of runs that learn from demonstrations or in hindsight, and demonstrations that are replaced under a run."""

import random

import numpy as np
from kills import work_of
from outcomes import Outcome
from processes import Work, flags, killed_rounds
from small_runs import SETTINGS, TINY, fingerprint

import bisac
from bisac.runs.folder import RunFolder


def demonstration_campaign(folder, kills):
    """SIGKILL at random moments, whose resume has the data of the run's own folder; then other data in its place."""
    place, draw, rows = folder / "demos", np.random.default_rng(0), 200
    place.mkdir()
    shapes = {"observation": (rows, 11), "action": (rows, 3), "reward": (rows,), "next_observation": (rows, 11)}
    arrays = {name: draw.uniform(-1.0, 1.0, shape).astype(np.float32) for name, shape in shapes.items()}
    np.savez(place / "data.npz", terminated=np.zeros(rows, bool), **arrays)
    settings = SETTINGS | {"algo": "sac", "num_envs": 1, "demos": str(place / "data.npz")} | TINY
    yield _killed(lambda name: work_of(place / name, settings), "learns from demonstrations", kills)
    yield _replaced(RunFolder(place / "straight"))


def hindsight_campaign(folder, kills):
    """SIGKILL at random moments of a run whose memory is learned from in hindsight."""

    def work(name):
        out = folder / "her" / name
        settings = SETTINGS | {"algo": "sac", "num_envs": 2} | TINY
        return Work(out, ["train", "bisac/PointGoal-v0", "--her", *flags(settings), "--out", out], ["resume", out])

    yield _killed(work, "learns in hindsight (`--her`)", kills)


def _killed(work, does, kills):
    killed, runs, equal = killed_rounds(work, lambda out: [fingerprint(out)], max(1, kills), 2, 3.0)
    result = f"resumed; {equal} of {runs} runs end equal, bit for bit"
    return Outcome(f"process that {does} killed at a random moment", killed, result, runs - equal)


def _replaced(run):
    """Flip bits of the data that a run keeps, and go on with the run."""
    rng, whole, silent, said, times = random.Random(2), run.demos.read_bytes(), 0, "", 40
    for _ in range(times):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        run.demos.write_bytes(bytes(changed))
        try:
            bisac.resume(run.path, verbose=False)
            silent += 1
        except bisac.BisacError as error:
            said = str(error).replace(f"{run.path}/", "")
    run.demos.write_bytes(whole)
    what = "one bit flipped in the demonstrations that a run keeps"
    return Outcome(what, times, f"{times - silent} refused", silent=silent, sentence=said)
