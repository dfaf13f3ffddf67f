"""Ours in a race to a return: python race_ours.py NAME ENV SEED GOAL LIMIT."""

import sys
from contextlib import closing

from race import Race

from bisac.algos import make_algorithm
from bisac.collect.collector import Request
from bisac.collect.dispatch import open_collector
from bisac.collect.learning import current_policy
from bisac.machine import tune_process
from bisac.presets import Preset, chosen

FOREVER = 10**9
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
    request = Request(algo, (int(seed),), begin.num_envs or algo.usual_envs(), FOREVER, eval_episodes=1)
    with closing(open_collector(env, (), request)) as collector:
        state, over = collector.start(), False
        while not over:
            state, _ = collector.advance(state, FOREVER)
            learning = collector.learning(state, 0)
            over = race.over(state.step, lambda obs: current_policy(algo, collector.spec, learning).predict(obs)[0])  # noqa: B023
    race.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
