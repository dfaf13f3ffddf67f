"""Ours in a race to a return: python race_ours.py NAME ENV SEED GOAL LIMIT."""

import sys
from contextlib import closing

from race import Race

from bisac.algos import make_algorithm
from bisac.collect.loop import start, steps_of
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task
from bisac.machine import tune_process
from bisac.presets import Preset, chosen
from bisac.runs.run import current_policy

CONTESTANTS: dict[str, tuple[Preset, dict[str, str]]] = {
    "sac": ("auto", {}),
    "sac-fast": ("fast", {}),
    "sac-none": ("auto", {"critic_norm": "none"}),
}


def main(name: str, env: str, seed: str, goal: str, limit: str) -> None:
    """Train as `bisac train ENV --algo sac` does, until the race is over."""
    tune_process()
    race = Race(env, float(goal), float(limit))
    preset, settings = CONTESTANTS[name]
    begin = chosen(preset, env, "sac")
    algo = make_algorithm("sac", begin.hyperparameters | settings).settled()
    with closing(HostEnvs(Task(env), begin.num_envs or algo.usual_envs(), int(seed))) as envs:
        run = start(algo, envs, int(seed))
        for _ in steps_of(run, 10**9):
            if race.over(run.step, lambda obs: current_policy(run).predict(obs)[0]):
                break
    race.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
