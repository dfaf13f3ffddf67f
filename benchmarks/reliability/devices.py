"""Kills of runs on the device, several seeds in one process."""

from outcomes import Outcome
from processes import Work, flags, killed_rounds
from small_runs import TINY, fingerprint

SETTINGS = TINY | {
    "algo": "sac", "steps": 6000, "num_envs": 4, "eval_every": 1500, "eval_episodes": 1, "checkpoint_every": 500,
}  # fmt: skip


def device_campaign(folder, kills):
    """SIGKILL at random moments of `classic/pendulum --seeds 0:3`, whose runs go on from the step they share."""

    def seeds_of(out):
        return [out / f"seed{seed}" for seed in range(3)]

    def work(name):
        out = folder / "device" / name
        words = ["train", "classic/pendulum", "--seeds", "0:3", *flags(SETTINGS), "--out", out]
        return Work(out, words, ["resume", *seeds_of(out)])

    killed, runs, equal = killed_rounds(work, lambda out: list(map(fingerprint, seeds_of(out))), max(1, kills), 3, 2.0)
    result = f"resumed together; {equal} of {runs} runs end equal, bit for bit"
    yield Outcome("process of `classic/pendulum --seeds 0:3` killed at a random moment", killed, result, runs - equal)
