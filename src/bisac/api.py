"""The Python interface: train a policy, go on training it, load it."""

import signal
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from bisac.algos import REGISTRY, Algorithm, make_algorithm
from bisac.collect.dispatch import Source
from bisac.display.run import RunDisplay, warn_only
from bisac.envs.host.backends import BackendName
from bisac.envs.task import to_args
from bisac.errors import BisacError
from bisac.policies.policy import Policy, load_policy
from bisac.presets import Preset, Start, chosen
from bisac.runs.events import EventStream, Finished, Outcome
from bisac.runs.folder import RunFolder
from bisac.runs.resume import resume as resume_runs
from bisac.runs.settings import Settings
from bisac.runs.start import start


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
    **hyperparameters: Any,
) -> Policy:
    """Train on a task's id, on a function that makes a Gymnasium environment, or on an environment written in JAX.

    Hyperparameters are those of the algorithm (`bisac train ENV --algo NAME --help` lists them); the preset stands
    under those that are not given, if the algorithm is given by name: "auto" is what suits the task, "fast" is for
    simulators that cost less than an update, "paper" is the paper's algorithm to the letter, "none" is the plain
    defaults. `env_args` are what an id's environment is made with. Ctrl-C saves the run, then raises
    KeyboardInterrupt; `resume` goes on with it.
    """
    if preset in ("fast", "paper") and not isinstance(algo, str):
        raise BisacError(f'preset="{preset}" needs the algorithm by its name, such as "sac".')
    env_id = env if isinstance(env, str) else None
    begin = chosen(preset, env_id, algo) if isinstance(algo, str) and algo in REGISTRY else Start({})
    algorithm = make_algorithm(algo, begin.hyperparameters | hyperparameters)
    folder = Path(out) if out is not None else None
    settings = Settings(
        steps,
        seed,
        num_envs or begin.num_envs,
        eval_every,
        eval_episodes,
        checkpoint_every,
        folder,
        overwrite,
        to_args(env_args or {}),
        backend,
    )
    return passed_on(outcomes_of(start(env, algorithm, settings), RunDisplay() if verbose else None)[0]).policy


def resume(
    path: str | PathLike[str],
    steps: int | None = None,
    checkpoint_every: int | None = None,
    env: Source | None = None,
    verbose: bool = True,
) -> Policy:
    """Go on with the run in a folder from its last checkpoint, bit for bit as if it had never stopped.

    `steps` extends it. `env` is needed where the run was trained on a function that makes an environment.
    """
    events = resume_runs([Path(path)], steps, checkpoint_every, env)
    return passed_on(outcomes_of(events, RunDisplay() if verbose else None)[0]).policy


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


def passed_on(outcome: Outcome) -> Outcome:
    """Pass on the signal that ended a run early, now that everything is saved."""
    if outcome.stopped_by == signal.SIGINT:
        raise KeyboardInterrupt
    if outcome.stopped_by is not None:
        raise SystemExit(128 + outcome.stopped_by)
    return outcome


def load(path: str | PathLike[str]) -> Policy:
    """Return the policy of a file, a checkpoint, or a run folder: the final one, or the best of a run under way."""
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
