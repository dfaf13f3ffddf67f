"""Kills of runs on the device: several seeds in one process, and one alone."""

import random

from outcomes import Outcome
from processes import Work, flags
from small_runs import TINY, fingerprint

SETTINGS = dict(algo="sac", steps=6000, num_envs=4, eval_every=1500, eval_episodes=1, checkpoint_every=500, **TINY)


def device_campaign(folder, kills):
    """SIGKILL at random moments of `classic/pendulum --seeds 0:3`, whose runs go on from the step they share."""
    rng, survived, equal, rounds = random.Random(1), 0, 0, max(1, kills)
    words = ["train", "classic/pendulum", "--seeds", "0:3", *flags(SETTINGS)]

    def work(name):
        out = folder / "device" / name
        return Work(out, [*words, "--out", out], ["resume", *(out / f"seed{seed}" for seed in range(3))])

    (folder / "device").mkdir()
    with (folder / "device" / "log").open("w") as log:
        work("straight").finish(log)
        for index in range(rounds):
            survived += work(f"killed-{index}").survive([rng.uniform(0, 2) for _ in range(3)], log)
            equal += sum(
                fingerprint(work(f"killed-{index}").folder / f"seed{seed}")
                == fingerprint(work("straight").folder / f"seed{seed}")
                for seed in range(3)
            )
    print(f"device: {survived} kills, {equal} of {3 * rounds} runs equal", flush=True)
    result = f"resumed together; {equal} of {3 * rounds} runs end equal, bit for bit"
    yield Outcome(
        "process of `classic/pendulum --seeds 0:3` killed at a random moment", survived, result, 3 * rounds - equal
    )
