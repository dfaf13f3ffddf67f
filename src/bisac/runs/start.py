"""Starting runs: everything is checked before anything is written, then the session's events follow."""

import dataclasses
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from bisac.algos import Algorithm, OffPolicy, algorithm_name
from bisac.collect.collector import Collector, Request
from bisac.collect.data_files import read_dataset
from bisac.collect.dataset import Dataset
from bisac.collect.dispatch import Source, open_collector, source_name
from bisac.collect.learning import learning_shapes
from bisac.collect.memory import check_memory
from bisac.envs.task import EnvSource
from bisac.errors import BisacError
from bisac.machine import offer_devices, tune_process
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.runs.config import to_config
from bisac.runs.demos import keep
from bisac.runs.events import Event, EventStream, Started, Warned
from bisac.runs.folder import RunFolder, default_path
from bisac.runs.log import Log
from bisac.runs.record import Record
from bisac.runs.run import Run
from bisac.runs.session import Session
from bisac.runs.settings import Settings
from bisac.runs.trackers import check_installed
from bisac.runs.tracking import tracked
from bisac.runs.warm_start import WarmStart
from bisac.types import require_float32

Attach = Callable[[Session], None]
"""What is given the session before its first step."""

TURNS = (
    "evaluations take turns with training in the one environment there is: each waits until the running episode has "
    "ended; eval_env= names another to evaluate in."
)


def start(
    source: Source,
    algo: Algorithm[Any],
    settings: Settings,
    seeds: Sequence[int] | None = None,
    eval_env: EnvSource | None = None,
    attach: Attach | None = None,
    demos: Dataset | None = None,
) -> EventStream:
    """Return the events of a run that begins with the first of them; each run leaves a folder behind.

    Several `seeds` are several runs side by side, for a source whose collector can carry them: their folders lie in
    that of the settings, as seedK. Without them there is one run, with the seed and the folder of the settings.
    `eval_env` is what to evaluate in, if not in the source itself. `attach` is given the session before its first step.
    `demos` are what the settings' demonstrations are, if they are not to be read from there.
    """
    return EventStream(tracked(_start(source, algo, settings, seeds, eval_env, attach, demos)))


def _start(
    source: Source,
    algo: Algorithm[Any],
    settings: Settings,
    seeds: Sequence[int] | None,
    eval_env: EnvSource | None,
    attach: Attach | None,
    demos: Dataset | None,
) -> Generator[Event, None, None]:
    require_float32()
    tune_process()
    offer_devices(len(seeds or [0]))
    algorithm_name(algo)  # one without a name could not be written down
    algo = algo.settled()
    settings = settings.settled(algo)
    check_installed(settings.track)
    data = read_dataset(settings.demos) if demos is None and settings.demos is not None else demos
    seeded = seeds or [settings.seed]
    with closing(opened(source, algo, settings, seeded, eval_env, data)) as collector, ExitStack() as held:
        env_id, record = collector.spec.env_id, partial(fresh_record, collector)
        record()  # complains before anything is written
        planned: list[tuple[RunFolder, Settings]] = []
        for seed in collector.request.seeds:
            folder = RunFolder(_folder(settings, env_id, algo, seed, several=seeds is not None))
            own = settings if seeds is None else dataclasses.replace(settings, seed=seed, out=folder.path)
            planned.append((folder, own))
        for folder, _ in planned:
            held.enter_context(folder.held())
            folder.check_free(settings.overwrite)
        runs: list[Run] = []
        for folder, own in planned:
            folder.clear()
            config = to_config(env_id, algo, own) | recorded_sources(source, eval_env) | keep(data, folder)
            folder.write_config(config)
            runs.append(Run(algo, own, folder, config, record(), Checkpoints(folder.checkpoints), Log(folder)))
        yield Started(tuple(run.folder for run in runs), 0, settings.steps)
        for note in collector.notes:
            yield Warned(note)
        if isinstance(algo, OffPolicy) and settings.steps <= algo.learning_starts:
            ends = f"--steps {settings.steps:,} end before --learning-starts {algo.learning_starts:,}"
            yield Warned(f"nothing will be learned: {ends}.")
        if collector.takes_turns:
            yield Warned(TURNS)
        yield from begun(Session(collector, collector.start(), runs, settings), attach)


def recorded_sources(source: Source, eval_env: EnvSource | None) -> dict[str, Any]:
    """Return what config.json says of where the environments came from."""
    began = {"env_source": source_name(source)}
    if eval_env is None:
        return began
    return began | ({"eval_env": eval_env} if isinstance(eval_env, str) else {"eval_env_source": source_name(eval_env)})


def fresh_record(collector: Collector) -> Record:
    """Return the record of a run that is about to begin; refuse to begin it from a run that does not fit."""
    algo, init = collector.request.algo, collector.request.init
    if not isinstance(init, WarmStart):
        return Record()
    num_envs = collector.request.num_envs
    fresh = learning_shapes(algo, collector.spec, num_envs)
    init.check_fits(collector.spec, fresh)
    return Record(remembered=0 if fresh.replay is None else init.rows(num_envs, fresh.replay.capacity))


def opened(
    source: Source,
    algo: Algorithm[Any],
    settings: Settings,
    seeds: Sequence[int],
    eval_env: EnvSource | None = None,
    demos: Dataset | None = None,
) -> Collector:
    """Return the collector of these runs, once it is clear that they can be trained."""
    if demos is not None and not isinstance(algo, OffPolicy):
        raise BisacError(f"--demos: {algorithm_name(algo)} learns from fresh rollouts, and not from what others did.")
    request = Request(
        algo, tuple(seeds), settings.num_envs or 1, settings.steps, settings.eval_episodes, settings.backend, eval_env,
        WarmStart(algo, settings) if settings.init is not None else None, demos,
    )  # fmt: skip
    collector = open_collector(source, settings.env_arg, request)
    try:
        algo.check_num_envs(request.num_envs)
        check_memory(algo, collector.spec, len(request.seeds))
    except BaseException:
        collector.close()
        raise
    return collector


def begun(session: Session, attach: Attach | None = None) -> Iterator[Event]:
    """Open the logs of a session's runs where the runs are, hand the session out, then yield its events."""
    for index, run in enumerate(session.runs):
        metrics = session.collector.learning(session.state, index, remembered=False).metric_sums
        run.log.open(run.record, list(metrics), session.state.step)
    if attach is not None:
        attach(session)
    yield from session.events()


def _folder(settings: Settings, env_id: str, algo: Algorithm[Any], seed: int, several: bool) -> Path:
    if settings.out is None:
        return default_path(env_id, algorithm_name(algo), seed)
    return settings.out / f"seed{seed}" if several else settings.out
