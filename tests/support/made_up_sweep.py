"""Sweeps that nobody trained: a whole one with curves for the report, and single runs that have come so far."""

import json

import numpy as np

from bisac.runs.config import to_config
from bisac.runs.folder import RunFolder
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import parse_contestant
from bisac.sweeps.folders import run_folder
from bisac.sweeps.plan import Plan
from bisac.sweeps.record import enrol

CONTESTANTS = ("sac", "sac:critic=vdn-a", "bisac", "bisac:spread=kl", "forward-sac", "forward-sac-actor")

PLAN = Plan(("Pendulum-v1",), (parse_contestant("sac"), parse_contestant("bisac")), (0, 1), Settings(steps=100), {})
"""A little sweep: two contestants with two seeds of 100 steps."""


def pretend(run, step, seconds=None, policy=True):
    """Leave a run folder that has come so far, with a line that is being written."""
    folder = RunFolder(run.folder)
    run.folder.mkdir(parents=True, exist_ok=True)
    folder.write_config(to_config(run.env, run.algorithm, run.settings))
    (run.folder / "sweep.log").touch()
    folder.progress.write_text(f"step,wall_time,eval_return\n{step},{seconds or step / 10},1.5\n{step + 1},")
    if policy:
        folder.policy.write_bytes(b"")


def make_up(folder, algos=CONTESTANTS, tasks=("Hopper-v5", "Walker2d-v5", "HalfCheetah-v5"), seeds=5, points=50,
            gains=None, unfinished=()):  # fmt: skip
    """Curves that rise towards a return of 2000 times the contestant's gain; `unfinished` are runs cut at half."""
    contestants = tuple(parse_contestant(algo) for algo in algos)
    settings = Settings(steps=1000 * points, eval_every=1000)
    plan = Plan(tuple(tasks), contestants, tuple(range(seeds)), settings, {"hidden": (64, 64)})
    enrol(plan, folder, ["bisac", "sweep"], lambda _env: 20.0)
    for run in plan.runs(folder):
        name = run.contestant.name
        generator = np.random.default_rng([run.seed, *run.folder.parts[-3].encode(), *name.encode()])
        gain = (gains or {}).get(name, 1.0) * generator.normal(1.0, 0.12)
        steps = np.arange(1, points + 1) * 1000
        noise = generator.normal(0.0, 60.0, points)
        returns = (
            20.0 + 2000.0 * gain * (1 - np.exp(-steps / (0.3 * steps[-1]))) * (steps > 1000) + noise * (steps > 1000)
        )
        pace = 0.01 * (1.0 if name == "sac" else 1.7) * generator.normal(1.0, 0.05)
        if (run.env, name, run.seed) in unfinished:
            steps = steps[: points // 2]
        run.folder.mkdir(parents=True)
        RunFolder(run.folder).write_config(to_config(run.env, run.algorithm, run.settings))
        lines = [f"{step},{step * pace:.3f},{value!r}\n" for step, value in zip(steps, returns.tolist(), strict=False)]
        RunFolder(run.folder).progress.write_text("".join(["step,wall_time,eval_return\n", *lines]))
    return folder


def misname(sweep, env, contestant, new_env, new_algo):
    """Call a task of a made-up sweep, and an algorithm that is a contestant, by names that no program would give."""
    record = json.loads((sweep / "sweep.json").read_text())
    envs, names = {env: new_env}, {contestant: new_algo}
    for old_env, old_name, seed in record["runs"]:
        new = run_folder(sweep, envs.get(old_env, old_env), names.get(old_name, old_name), seed)
        new.parent.mkdir(parents=True, exist_ok=True)
        run_folder(sweep, old_env, old_name, seed).rename(new)
    record["envs"] = [envs.get(name, name) for name in record["envs"]]
    record["random_returns"] = {envs.get(name, name): value for name, value in record["random_returns"].items()}
    record["runs"] = [(envs.get(e, e), names.get(c, c), seed) for e, c, seed in record["runs"]]
    for each in record["contestants"]:
        each["algo"] = names.get(each["algo"], each["algo"])
    (sweep / "sweep.json").write_text(json.dumps(record))
    return sweep
