"""The Python interface: train a policy, watch it being trained, go on training it, load it."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bisac.algos import REGISTRY, Algorithm, find_installed, make_algorithm
from bisac.collect.collector import Evaluation
from bisac.collect.dataset import Dataset
from bisac.collect.dispatch import Source, judge, own_envs
from bisac.display.run import RunDisplay, warn_only
from bisac.envs.host.backends import BackendName
from bisac.envs.task import EnvSource, to_args
from bisac.errors import BisacError
from bisac.policies.policy import Policy, load_policy
from bisac.presets import Preset, Start, chosen
from bisac.runs.events import EventStream, Finished, Outcome
from bisac.runs.folder import RunFolder
from bisac.runs.resume import resume as resume_runs
from bisac.runs.settings import Settings, TrackerName
from bisac.runs.start import Attach
from bisac.runs.start import start as start_runs
from bisac.runs.training import Training


def train(
    env: Source,
    algo: str | Algorithm[Any] = "bisac",
    steps: int = 1_000_000,
    seed: int = 0,
    num_envs: int | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    checkpoint_every: int = 10_000,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    preset: Preset = "auto",
    verbose: bool = True,
    env_args: Mapping[str, Any] | None = None,
    backend: BackendName = "sync",
    eval_env: EnvSource | None = None,
    init: str | PathLike[str] | None = None,
    with_replay: bool = False,
    demos: str | PathLike[str] | Dataset | None = None,
    track: TrackerName = "none",
    track_group: str | None = None,
    **hyperparameters: Any,
) -> Policy:
    """Train on a task's id, on a function that makes a Gymnasium environment, or on one environment, also one in JAX.

    Hyperparameters are those of the algorithm (`bisac train ENV --algo NAME --help` lists them); the preset stands
    under those that are not given, if the algorithm is given by name: "auto" is what suits the task, "fast" is for
    simulators that cost less than an update, "paper" is the paper's algorithm to the letter, "none" is the plain
    defaults. `env_args` are what an id's environment is made with. Evaluations are played in `eval_env`, if there is
    one. `init` is the folder of another run to start from; `with_replay` takes its memory too. `demos` are
    transitions to learn from beside its own: a file, the id of a Minari data set, or what
    `bisac.replay.from_arrays` returns. `track` tells "wandb" or "mlflow" too what the log tells, which puts runs of one
    `track_group` together. Ctrl-C saves the run, then raises KeyboardInterrupt; `resume` goes on with it.
    """
    return start(
        env, algo, steps, seed, num_envs, eval_every, eval_episodes, checkpoint_every, out, overwrite, preset, verbose,
        env_args, backend, eval_env, init, with_replay, demos, track, track_group, **hyperparameters,
    ).finish()  # fmt: skip


def start(
    env: Source,
    algo: str | Algorithm[Any] = "bisac",
    steps: int = 1_000_000,
    seed: int = 0,
    num_envs: int | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    checkpoint_every: int = 10_000,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    preset: Preset = "auto",
    verbose: bool = False,
    env_args: Mapping[str, Any] | None = None,
    backend: BackendName = "sync",
    eval_env: EnvSource | None = None,
    init: str | PathLike[str] | None = None,
    with_replay: bool = False,
    demos: str | PathLike[str] | Dataset | None = None,
    track: TrackerName = "none",
    track_group: str | None = None,
    **hyperparameters: Any,
) -> Training:
    """Return a run to iterate over: it goes on as its events are asked for. The arguments are those of `train`.

    Leave the loop when you like: the run is saved, and `reopen` or `resume` goes on with it.
    """
    data = demos if isinstance(demos, Dataset) else None
    named = data.name if data else None if demos is None else str(demos)
    settings = Settings(
        steps=steps, seed=seed, num_envs=num_envs, eval_every=eval_every, eval_episodes=eval_episodes,
        checkpoint_every=checkpoint_every, out=_path(out), overwrite=overwrite, env_arg=to_args(env_args or {}),
        backend=backend, init=_path(init), with_replay=with_replay, demos=named, track=track,
        track_group=track_group,
    )  # fmt: skip
    algorithm, settings = _begin(env, algo, settings, preset, hyperparameters)
    return _training(partial(start_runs, env, algorithm, settings, None, eval_env, demos=data), verbose)


def resume(
    path: str | PathLike[str],
    steps: int | None = None,
    checkpoint_every: int | None = None,
    env: Source | None = None,
    verbose: bool = True,
    eval_env: EnvSource | None = None,
    track: TrackerName | None = None,
) -> Policy:
    """Go on with the run in a folder from its last checkpoint, bit for bit as if it had never stopped.

    `steps` extends it. `env` is needed where the run was trained on something other than an id, and `eval_env` where it
    was evaluated in such another. `track` is as before, unless it is given: "none" ends it, and a tracker that is new
    to the run is told all of it.
    """
    return reopen(path, steps, checkpoint_every, env, verbose, eval_env, track).finish()


def reopen(
    path: str | PathLike[str],
    steps: int | None = None,
    checkpoint_every: int | None = None,
    env: Source | None = None,
    verbose: bool = False,
    eval_env: EnvSource | None = None,
    track: TrackerName | None = None,
) -> Training:
    """Return the run in a folder, to iterate over from its last checkpoint on. The arguments are those of `resume`."""
    find_installed()
    return _training(partial(resume_runs, [Path(path)], steps, checkpoint_every, env, eval_env, track=track), verbose)


def _path(path: str | PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)


def _begin(
    env: Source, algo: str | Algorithm[Any], settings: Settings, preset: Preset, hyperparameters: dict[str, Any]
) -> tuple[Algorithm[Any], Settings]:
    """Return the algorithm and the settings of a run, with what the preset and the source have to say."""
    if preset in ("fast", "paper") and not isinstance(algo, str):
        raise BisacError(f'preset="{preset}" needs the algorithm by its name, such as "sac".')
    find_installed()
    env_id = env if isinstance(env, str) else None
    begin = chosen(preset, env_id, algo) if isinstance(algo, str) and algo in REGISTRY else Start({})
    algorithm = make_algorithm(algo, begin.hyperparameters | hyperparameters)
    return algorithm, dataclasses.replace(settings, num_envs=settings.num_envs or own_envs(env) or begin.num_envs)


def _training(begin: Callable[[Attach], EventStream], verbose: bool) -> Training:
    """Return a run to iterate over, which is shown or not."""
    if not verbose:
        return Training(begin, warn_only)
    display = RunDisplay()
    return Training(begin, display, display.end)


def evaluate(
    policy: Policy,
    env: EnvSource | None = None,
    episodes: int = 20,
    seed: int = 0,
    deterministic: bool = True,
    env_args: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Judge a policy on episodes that no training chose its best policy by, as `bisac eval` does.

    `env` is by default what it was trained on, if that was an id. What is returned has `returns`, `lengths`,
    `successes` and `success_rate`.
    """
    if not isinstance(episodes, int | np.integer) or episodes < 1:
        raise BisacError(f"episodes must be a whole number, and at least 1; got {episodes}.")
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise BisacError(f"seed must be from 0 to 4294967295, got {seed}.")
    given = to_args(env_args or {})
    args = policy.spec.env_args + given if env is None else given
    return judge(policy, policy.spec.env_id if env is None else env, args, int(episodes), int(seed), deterministic)


def outcomes_of(events: EventStream, display: RunDisplay | None) -> tuple[Outcome, ...]:
    """Consume the events of runs to their end, show them, and return what is left of each."""
    finished = None
    try:
        for event in events:
            (display or warn_only)(event)
            finished = event
    finally:
        if display:
            display.end()
    assert isinstance(finished, Finished), "a run ends with an exception or finished"
    return finished.outcomes


def load(path: str | PathLike[str]) -> Policy:
    """Return the policy of a file, a checkpoint, or a run folder: the final one, or the best of a run under way."""
    find_installed()
    return load_policy(policy_file(Path(path)))


def policy_file(path: Path) -> Path:
    """Return the policy file that a run folder, a checkpoint's folder, or the file itself stands for."""
    if not path.exists():
        raise BisacError(f"there is no run folder or policy file at {path}.")
    if path.is_file():
        return path
    # A checkpoint's folder has the same names; a run that was killed before its first evaluation has only those.
    newest_first = sorted(RunFolder(path).checkpoints.glob(f"step-*/{RunFolder(path).policy.name}"), reverse=True)
    for candidate in (RunFolder(path).policy, RunFolder(path).best, *newest_first):
        if candidate.exists():
            return candidate
    raise BisacError(f"{path} holds no policy file: it is not a run folder, or its run has not been evaluated yet.")
