"""Training from start to end: the loop, watched, evaluated, logged and saved."""

import dataclasses
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisac.algos import Algorithm, OffPolicy, algorithm_name
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import EnvSource, Task
from bisac.errors import BisacError
from bisac.machine import tune_process
from bisac.policies.policy import Policy, load_policy
from bisac.runs.checkpoint.checkpoints import Checkpoints, load
from bisac.collect.evaluate import Evaluator
from bisac.runs.log import Log, Row, read_log
from bisac.collect.loop import start
from bisac.runs.run import DivergedError, Run, check_memory
from bisac.runs.folder import RunDir, default_path
from bisac.runs.session import Session, Watcher
from bisac.runs.settings import TrainSettings, check_unchanged, differences, from_config, to_config
from bisac.runs.signals import stop_requests
from bisac.types import require_float32


@dataclass
class Outcome:
    """What is left of a run when it stops."""

    policy: Policy
    run_dir: RunDir
    rows: list[Row]
    stopped_by: int | None
    """The signal that stopped it early, if one did."""
    resumable: bool
    """Whether there is a checkpoint to go on from."""


def run_training(source: EnvSource, algo: Algorithm[Any], settings: TrainSettings, watcher: Watcher) -> Outcome:
    """Train, and leave a run folder behind."""
    require_float32()
    tune_process()
    algo = algo.settled()
    settings = settings.settled(algo)
    with _environments(source, settings) as (envs, evaluator):
        algo.check_num_envs(settings.width)
        check_memory(algo, envs.spec)
        run_dir = RunDir(settings.out or default_path(envs.spec.env_id, algorithm_name(algo), settings.seed))
        with run_dir.training():
            run_dir.create(settings.overwrite)
            config = to_config(envs.spec.env_id, algo, settings)
            run_dir.write_config(config)
            watcher.begin(run_dir, 0, settings.steps)
            if isinstance(algo, OffPolicy) and settings.steps <= algo.learning_starts:
                watcher.warn(
                    f"nothing will be learned: --steps {settings.steps:,} end before --learning-starts "
                    f"{algo.learning_starts:,}."
                )
            run = start(algo, envs, settings.seed)
            return _train(run, run_dir, config, settings, evaluator, Checkpoints(run_dir.checkpoints), watcher)


def resume_training(
    path: Path,
    watcher: Watcher,
    steps: int | None = None,
    checkpoint_every: int | None = None,
    source: EnvSource | None = None,
) -> Outcome:
    """Go on with the run in a folder, as if it had never stopped; only how long, and how often it is saved, may change.

    `source` is needed where the run was trained on a function that makes an environment.
    """
    require_float32()
    tune_process()
    run_dir = RunDir(path)
    if not (run_dir.config.exists() or run_dir.checkpoints.is_dir()):
        raise BisacError(f"{path} is not a run folder: it has no config.json.")
    with run_dir.training():
        checkpoints = Checkpoints(run_dir.checkpoints)
        problems = checkpoints.recover()
        if problems and not checkpoints.kept:
            raise BisacError(f"no checkpoint of {path} is whole: {' '.join(problems)}")
        for problem in problems:
            watcher.warn(f"{problem} Using the checkpoint of step {checkpoints.kept[-1].step:,} instead.")
        try:
            recorded = run_dir.read_config()
        except BisacError as error:
            if not checkpoints.kept:
                raise
            watcher.warn(f"{error} Using the checkpoint's copy.")
            recorded = checkpoints.kept[-1].config
        algo, settings = from_config(recorded)
        if not checkpoints.kept and (outcome := _left_without_checkpoints(run_dir, settings, steps)):
            return outcome
        started_for = settings.steps
        changes = {"steps": steps, "checkpoint_every": checkpoint_every}
        settings = dataclasses.replace(settings, **{name: v for name, v in changes.items() if v is not None})
        config = to_config(str(recorded.get("env")), algo, settings)
        if checkpoints.kept:
            check_unchanged(checkpoints.kept[-1].config, config)
            # A run ends with a whole stride, and so may have taken more steps than it was started for.
            if settings.steps < min(started_for, step := checkpoints.kept[-1].step):
                raise BisacError(f"the run has taken {step:,} steps already; --steps must be at least that.")
        with _environments(source or config["env"], settings) as (envs, evaluator):
            algo.check_num_envs(settings.width)
            check_memory(algo, envs.spec)
            if checkpoints.kept:
                run, strayed = load(checkpoints.kept[-1], algo, envs)
            else:  # stopped before the first checkpoint: the same seed repeats what was lost
                run, strayed = start(algo, envs, settings.seed), []
            for text in (*differences(recorded), *_strayed(envs, strayed)):
                watcher.warn(text)
            run_dir.write_config(config)
            run_dir.policy.unlink(missing_ok=True)  # of an earlier stop; its checkpoint has it
            watcher.begin(run_dir, run.step, settings.steps)
            return _train(run, run_dir, config, settings, evaluator, checkpoints, watcher)


def _left_without_checkpoints(run_dir: RunDir, settings: TrainSettings, steps: int | None) -> Outcome | None:
    """What a run without checkpoints has come to; None where it never came to its first, which its seed repeats.

    What it did learn is not overwritten: a complete run is left as it is, any other refused.
    """
    rows = read_log(run_dir)
    taken = int(rows[-1]["step"] or 0) if rows else 0
    never_saved = 0 < taken < settings.checkpoint_every
    if not run_dir.policy.exists() or never_saved:
        return None
    if taken < max(settings.steps, steps or 0):
        raise BisacError(
            f"{run_dir.path} has a policy of step {taken:,}, but no checkpoint to go on from; 'bisac eval' judges it, "
            f"'bisac train' starts another run."
        )
    return Outcome(load_policy(run_dir.policy), run_dir, rows, None, resumable=False)


def _train(
    run: Run,
    run_dir: RunDir,
    config: dict[str, Any],
    settings: TrainSettings,
    evaluator: Evaluator,
    checkpoints: Checkpoints,
    watcher: Watcher,
) -> Outcome:
    """Consume the loop to its end or to a signal, and leave the folder in order."""
    log = Log(run_dir, run.record, list(run.training.metric_sums), run.step)
    session = Session(run, run_dir, config, settings, evaluator, checkpoints, log, watcher)
    try:
        with stop_requests() as requests:
            try:
                session.consume(requests)
            except DivergedError:  # nothing worth keeping
                raise
            except Exception:  # an environment that failed, say: what was learned until then is kept
                session.leave()
                raise
            stopped_by = requests[0] if requests else None
            policy, rows = session.leave()
    finally:
        log.close()
    return Outcome(policy, run_dir, rows, stopped_by, bool(checkpoints.kept))


@contextmanager
def _environments(source: EnvSource, settings: TrainSettings) -> Iterator[tuple[HostEnvs, Evaluator]]:
    """Those to train in, and those to evaluate in."""
    task = Task(source, settings.env_arg)
    with (
        closing(HostEnvs(task, settings.width, settings.seed, settings.backend)) as envs,
        closing(Evaluator(task, settings.eval_episodes, settings.seed)) as evaluator,
    ):
        yield envs, evaluator


def _strayed(envs: HostEnvs, strayed: list[int]) -> list[str]:
    if not strayed:
        return []
    return [
        f"{envs.spec.env_id} does not repeat itself when seeded: {len(strayed)} of {envs.count} environments begin "
        f"a new episode, so this resume is not exact (inexact_resumes in progress.csv)."
    ]
