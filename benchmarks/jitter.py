"""How much the policy of the moment jitters, and what steadies it: python benchmarks/jitter.py [--env Hopper-v5].

Trains SAC, and evaluates every 250 steps of a stretch: the actor of the moment at its running moments; its weights at
the moments of the whole memory and of the latest states; and its mean over the last steps, for several memories.
"""

import json
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import numpy as np
import tyro
from measuring import context, described

from bisac.algos import SAC
from bisac.collect.collector import Request
from bisac.collect.dispatch import open_collector
from bisac.machine import tune_process
from bisac.nets.normalisation import fixed
from bisac.policies.policy import Policy

KEPT = (0.9, 0.99, 0.995)
"""What a mean keeps of itself each time that all environments have taken a step."""
STATES = 8_000
"""Of the whole memory, over which moments are taken."""
LATEST = 4_000
"""The latest states of the memory."""


@dataclass(frozen=True)
class Options:
    """What to train, and when to look."""

    env: str = "Hopper-v5"
    seed: int = 0
    begin: int = 30_000
    """Step from which on the policy is looked at."""
    steps: int = 36_000
    """Step at which the run ends."""
    every: int = 250
    """Steps between two looks."""
    out: Path = Path("build/jitter.json")


def main(options: Options) -> None:
    """Train, look, tell."""
    tune_process()
    algo = SAC().settled()
    means, rows = {}, []
    request = Request(algo, (options.seed,), algo.usual_envs(), options.steps, eval_episodes=5)
    with closing(open_collector(options.env, (), request)) as collector:
        state, looked = collector.start(), 0
        while state.step < options.steps:
            state, _ = collector.advance(state, options.steps)
            if state.step < options.begin:
                continue
            learning = collector.learning(state, 0)
            learner = learning.agent.actor
            present = jax.tree.map(np.asarray, learner.fixed)
            means = {keep: moved(means.get(keep, present), present, keep) for keep in KEPT}
            if state.step - looked < options.every:
                continue
            looked, replay = state.step, learning.replay
            assert replay is not None
            rng, held = np.random.default_rng(state.step), int(replay.size)
            policies = {"of the moment": present}
            for name, oldest, count in (("whole memory", 0, STATES), ("latest states", held - LATEST, LATEST)):
                index = rng.integers(max(0, oldest), held, count)
                policies[name] = fixed(learner.model, learner.model.on_batch(replay.storage.obs[index])[1])
            policies |= {f"mean, keeps {keep}": mean for keep, mean in means.items()}
            judged = {name: collector.evaluate(Policy(collector.spec, algo, p), 0) for name, p in policies.items()}
            found = {name: evaluation.returns.mean() for name, evaluation in judged.items()}
            rows.append({"step": state.step, **{name: round(float(value)) for name, value in found.items()}})
            print(json.dumps(rows[-1]), flush=True)
    print(described(context([])))
    for name in rows[0].keys() - {"step"}:
        values = [row[name] for row in rows]
        print(f"{name}: mean {np.mean(values):,.0f}, lowest {min(values):,}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")


def moved(mean, present, keep: float):
    """The mean after one more step."""
    return jax.tree.map(partial(lambda keep, old, new: keep * old + (1.0 - keep) * new, keep), mean, present)


if __name__ == "__main__":
    main(tyro.cli(Options))
