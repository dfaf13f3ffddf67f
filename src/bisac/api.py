"""The Python interface: train a policy, load a policy."""

import signal
from os import PathLike
from pathlib import Path
from typing import Any

from bisac.algos import OffPolicy, make_algorithm
from bisac.console import Quiet, TrainingDisplay
from bisac.envs.spec import EnvSource
from bisac.errors import BisacError
from bisac.policy import Policy, load_policy
from bisac.training.run_dir import RunDir
from bisac.training.train import Outcome, TrainSettings, run_training


def train(
    env: EnvSource,
    algo: str | OffPolicy[Any] = "bisac",
    steps: int = 1_000_000,
    seed: int = 0,
    num_envs: int = 1,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    verbose: bool = True,
    **hyperparameters: Any,
) -> Policy:
    """Train on an environment's id, or on a function that makes a Gymnasium environment.

    Hyperparameters are those of the algorithm (`bisac train ENV --algo NAME --help` lists them). Ctrl-C saves the
    policy and the log, then raises KeyboardInterrupt.
    """
    algorithm = make_algorithm(algo, hyperparameters)
    folder = Path(out) if out is not None else None
    settings = TrainSettings(steps, seed, num_envs, eval_every, eval_episodes, folder, overwrite)
    outcome = run_training(env, algorithm, settings, TrainingDisplay() if verbose else Quiet())
    return finish(outcome).policy


def finish(outcome: Outcome) -> Outcome:
    """Pass on the signal that ended a run early, now that everything is saved."""
    if outcome.stopped_by == signal.SIGINT:
        raise KeyboardInterrupt
    if outcome.stopped_by is not None:
        raise SystemExit(128 + outcome.stopped_by)
    return outcome


def load(path: str | PathLike[str]) -> Policy:
    """The policy of a run folder (its final one, or the best so far of a run that goes on), or of a policy file."""
    return load_policy(policy_file(Path(path)))


def policy_file(path: Path) -> Path:
    """The policy file that a run folder, or the file itself, stands for."""
    if not path.exists():
        raise BisacError(f"there is no run folder or policy file at {path}.")
    if path.is_file():
        return path
    for candidate in (RunDir(path).policy, RunDir(path).best):
        if candidate.exists():
            return candidate
    raise BisacError(f"{path} holds no policy file: it is not a run folder, or its run has not been evaluated yet.")
