"""Kills of runs that learn from demonstrations, and demonstrations that are replaced under a run."""

import random

import numpy as np
from kills import work_of
from outcomes import Outcome
from small_runs import SETTINGS, TINY, fingerprint

import bisac
from bisac.runs.folder import RunFolder


def demonstration_campaign(folder, kills):
    """SIGKILL at random moments, whose resume has the data of the run's own folder; then other data in its place."""
    place, rng, survived, equal, rounds = folder / "demos", random.Random(2), 0, 0, max(1, kills)
    place.mkdir()
    draw = np.random.default_rng(0)
    arrays = {"observation": (200, 11), "action": (200, 3), "reward": (200,), "next_observation": (200, 11)}
    np.savez(
        place / "data.npz",
        terminated=np.zeros(200, bool),
        **{name: draw.uniform(-1.0, 1.0, shape).astype(np.float32) for name, shape in arrays.items()},
    )
    settings = SETTINGS | {"algo": "sac", "num_envs": 1, "demos": str(place / "data.npz")} | TINY
    with (place / "log").open("w") as log:
        work_of(place / "straight", settings).finish(log)
        for index in range(rounds):
            work = work_of(place / f"killed-{index}", settings)
            survived += work.survive([rng.uniform(0, 3) for _ in range(2)], log)
            equal += fingerprint(work.folder) == fingerprint(place / "straight")
    print(f"demonstrations: {survived} kills, {equal} of {rounds} runs equal", flush=True)
    result = f"resumed; {equal} of {rounds} runs end equal, bit for bit"
    yield Outcome("process that learns from demonstrations killed at a random moment", survived, result, rounds - equal)

    whole, silent, said, times = RunFolder(place / "straight").demos.read_bytes(), 0, "", 40
    for _ in range(times):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        RunFolder(place / "straight").demos.write_bytes(bytes(changed))
        try:
            bisac.resume(place / "straight", verbose=False)
            silent += 1
        except bisac.BisacError as error:
            said = str(error)
    RunFolder(place / "straight").demos.write_bytes(whole)
    told = said.replace(str(place), "runs")
    what = "one bit flipped in the demonstrations that a run keeps"
    yield Outcome(what, times, f"{times - silent} refused", silent=silent, sentence=told)
