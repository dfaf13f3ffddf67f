"""Training from start to end: the loop, watched, evaluated, logged and saved."""

import dataclasses
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bisac.algos import OffPolicy, algorithm_name
from bisac.algos.base import require
from bisac.envs.host import HostEnvs
from bisac.envs.spec import EnvSource
from bisac.errors import BisacError
from bisac.policy import Policy
from bisac.training.evaluate import Evaluator
from bisac.training.logs import Log, Row, draw_curve, not_finite, read_progress
from bisac.training.loop import Run, check_memory, off_policy_steps, start, take_metrics
from bisac.training.run_dir import RunDir, default_path


@dataclass(frozen=True)
class TrainSettings:
    """How long and how to train, whatever the algorithm."""

    steps: int = 1_000_000
    """Environment steps to train for, summed over the environments."""
    seed: int = 0
    """Seed of everything random; the same seed repeats a run bit for bit on the same machine."""
    num_envs: int = 1
    """Environments stepped together."""
    eval_every: int | None = None
    """Steps between evaluations; by default a hundredth of the steps, and at least 1000."""
    eval_episodes: int = 10
    """Episodes in each evaluation, with the deterministic policy."""
    out: Path | None = None
    """The run folder; by default runs/ENV/ALGO/seedK, or seedK-2 and so on where that is taken."""
    overwrite: bool = False
    """Replace a run that the folder holds already."""

    def __post_init__(self):
        require(self, "at least 1", lambda v: v >= 1, "steps", "num_envs", "eval_episodes")
        require(self, "at least 1", lambda v: v is None or v >= 1, "eval_every")
        require(self, "from 0 to 4294967295", lambda v: 0 <= v < 2**32, "seed")

    @property
    def evaluation_interval(self) -> int:
        """Steps between evaluations."""
        return self.eval_every or max(1000, self.steps // 100)


class DivergedError(BisacError):
    """Training reached numbers that are not finite."""


@runtime_checkable
class Watcher(Protocol):
    """Whoever shows a run to its user."""

    def begin(self, run_dir: RunDir, total: int) -> None:
        """The run is about to start."""

    def tick(self, step: int, episode_return: float | None) -> None:
        """A step was taken; an episode may have ended in it."""

    def row(self, row: Row) -> None:
        """A row was logged."""


@dataclass
class Outcome:
    """What is left of a run when it stops."""

    policy: Policy
    run_dir: RunDir
    rows: list[Row]
    stopped_by: int | None
    """The signal that stopped it early, if one did."""


def run_training(source: EnvSource, algo: OffPolicy[Any], settings: TrainSettings, watcher: Watcher) -> Outcome:
    """Train, and leave a run folder behind."""
    envs = HostEnvs(source, settings.num_envs, settings.seed)
    evaluator = Evaluator(source, settings.eval_episodes, settings.seed)
    check_memory(algo, envs.spec, settings.num_envs)
    run_dir = RunDir(settings.out or default_path(envs.spec.env_id, algorithm_name(algo), settings.seed))
    run_dir.create(settings.overwrite)
    run_dir.write_config(_config(envs.spec.env_id, algo, settings))
    watcher.begin(run_dir, settings.steps)
    run = start(algo, envs, settings.seed)
    log = Log(run_dir, list(run.training.metric_sums))
    try:
        with stop_requests() as requests:
            _train(run, run_dir, settings, evaluator, log, watcher, requests)
    except (DivergedError, KeyboardInterrupt):  # nothing worth keeping, or torn in the middle of a step
        raise
    except Exception:  # an environment that failed, say: what was learned until then is kept
        _leave(run, run_dir, settings)
        raise
    finally:
        log.close()
        envs.close()
        evaluator.close()
    policy, rows = _leave(run, run_dir, settings)
    return Outcome(policy, run_dir, rows, requests[0] if requests else None)


def _leave(run: Run, run_dir: RunDir, settings: TrainSettings) -> tuple[Policy, list[Row]]:
    """Save the final policy and draw the learning curve."""
    policy, rows = _policy(run), read_progress(run_dir.progress)
    policy.save(run_dir.policy)
    draw_curve(rows, run_dir.curve, f"{algorithm_name(run.algo)} on {run.envs.spec.env_id}, seed {settings.seed}")
    return policy, rows


def _train(
    run: Run,
    run_dir: RunDir,
    settings: TrainSettings,
    evaluator: Evaluator,
    log: Log,
    watcher: Watcher,
    requests: list[int],
) -> None:
    """Consume the loop: evaluate, log and keep the best policy at each interval."""
    started, best = time.monotonic(), -np.inf
    next_row = settings.evaluation_interval
    returns: list[float] = []
    lengths: list[int] = []
    for finished in off_policy_steps(run, settings.steps):
        returns += [episode.total_reward for episode in finished]
        lengths += [episode.length for episode in finished]
        watcher.tick(run.step, returns[-1] if finished else None)
        if run.step >= next_row or run.step >= settings.steps:
            next_row += settings.evaluation_interval
            metrics = take_metrics(run)
            if bad := not_finite(metrics):
                raise DivergedError(
                    f"training diverged: {bad} is {metrics[bad]} at step {run.step:,}; see {run_dir.path}."
                )
            policy = _policy(run)
            evaluation = evaluator(policy)
            row: Row = {
                "step": run.step,
                "wall_time": round(time.monotonic() - started, 3),
                "eval_return": float(evaluation.returns.mean()),
                "eval_return_std": float(evaluation.returns.std()),
                "episode_return": float(np.mean(returns)) if returns else None,
                "episode_length": float(np.mean(lengths)) if lengths else None,
            }
            returns, lengths = [], []
            if evaluation.returns.mean() > best:
                best = evaluation.returns.mean()
                policy.save(run_dir.best)
            log.write(row | metrics)
            watcher.row(row | metrics)
        if requests:
            return


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM ask the loop to end after its step instead of tearing it; a second one is not delayed."""
    requests: list[int] = []

    def request(number: int, _frame: Any) -> None:
        requests.append(number)
        signal.signal(number, previous[number])

    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    except ValueError:  # not the main thread: signals are somebody else's there
        pass
    try:
        yield requests
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _policy(run: Run) -> Policy:
    """The present policy. It shares memory with the run: use it before the next step."""
    return Policy(run.envs.spec, run.algo, run.algo.actor(run.training.algo))


def _config(env_id: str, algo: OffPolicy[Any], settings: TrainSettings) -> dict[str, Any]:
    run = dataclasses.asdict(settings) | {"out": os.fspath(settings.out) if settings.out else None}
    return {
        "format": 1,
        "env": env_id,
        "algo": algorithm_name(algo),
        "hyperparameters": dataclasses.asdict(algo),
        "run": run,
    }
