"""The Ray engine: runs as tasks of a cluster.

A run whose worker or node is lost goes on from its last checkpoint on another. Each task starts the same process as on
one machine; the sweep's folder must lie on a disk that all nodes share.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bisac.errors import BisacError, reason
from bisac.sweeps.engines.base import EndedProcess
from bisac.sweeps.engines.local import start_process
from bisac.sweeps.plan import PlannedRun

PATIENCE = 5.0
"""Seconds after which a task that was asked to end and has not is asked again: Ray promises no more than an attempt."""


class RayEngine:
    """Runs as many runs at a time as the cluster has room for: Ray itself lets the others wait."""

    def __init__(self, address: str | None, cores: int):
        self._ray = _ray()
        # Without "local", Ray would join whatever cluster it finds on this machine.
        where = {"address": address} if address else {"address": "local", "include_dashboard": False}
        try:
            with _deaf_to_sigterm():
                self._ray.init(**where, log_to_driver=False, logging_level="warning")
        except (ConnectionError, RuntimeError, ValueError) as error:
            wrong = f"there is no Ray cluster at {address}" if address else "Ray cannot start on this machine"
            raise BisacError(f"{wrong}: {reason(error)}.") from error
        # Ray would begin a task whose worker is lost again without a word; whoever watches the engine does it aloud.
        self._task: Any = self._ray.remote(num_cpus=cores, max_retries=0)(work)
        self._cores = cores
        self._running: dict[Any, PlannedRun] = {}
        self._asked: dict[Any, float] = {}
        """When each of the tasks that are to end was asked to."""

    @property
    def slots(self) -> int:
        """Runs that fit into the cluster now; each must fit into one node."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(int(resources.get("CPU", 0) // self._cores) for resources in nodes)

    def room(self) -> bool:
        """Whether it takes another run now: Ray takes all at once."""
        return True

    def start(self, run: PlannedRun) -> None:
        """Hand a run to the cluster."""
        self._running[self._task.remote([each.folder for each in run.all], run.arguments, self._cores)] = run

    def ended(self) -> list[EndedProcess]:
        """Return the processes of the tasks that have ended since the last call."""
        if not self._running:
            return []
        for task, when in self._asked.items():
            if task in self._running and time.monotonic() > when + PATIENCE:
                self._ask_to_end(task)
        ready, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [self._ended(self._running.pop(task), task) for task in ready]

    def stop(self, number: int, run: PlannedRun | None = None) -> None:  # noqa: ARG002 (Ray has its own way to interrupt a task)
        """Have every task, or that of one run, ask its process to save and end; those that wait are dropped."""
        for task, each in self._running.items():
            if run is None or run == each:
                self._ask_to_end(task)

    def close(self) -> None:
        """Leave the cluster, which ends whatever still runs."""
        self._ray.shutdown()

    def _ask_to_end(self, task: Any) -> None:
        self._asked[task] = time.monotonic()
        self._ray.cancel(task)

    def _ended(self, run: PlannedRun, task: Any) -> EndedProcess:
        try:
            return EndedProcess(run, self._ray.get(task))
        except self._ray.exceptions.TaskCancelledError:
            return EndedProcess(run, 128 + signal.SIGINT)
        except _lost(self._ray):
            return EndedProcess(run, None, "its worker was lost", lost=True)
        except self._ray.exceptions.RayError as error:  # bisac or the shared folder is missing on that node, say
            return EndedProcess(run, None, f"Ray gave up on it: {(str(error).strip() or repr(error)).splitlines()[-1]}")


def work(folders: list[Path], arguments: tuple[str, ...], cores: int) -> int:
    """Be the parent of a run's process on a worker until it ends; returns its exit code."""
    process, asked = start_process(folders, arguments, cores), False
    code = None
    while code is None:
        try:
            # Ray cancels a task by a KeyboardInterrupt between two lines of Python; a plain wait would never see it.
            time.sleep(0.2)
            code = process.poll()
        except KeyboardInterrupt:  # perhaps one of several: the run is asked once, for a second would not let it save
            if not asked:
                process.send_signal(signal.SIGINT)
            asked = True
    if asked:
        raise KeyboardInterrupt
    return code


def _lost(ray: Any) -> tuple[type[Exception], ...]:
    """What Ray says of a task whose worker was killed, by whom ever, or whose node is gone."""
    return ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError


@contextmanager
def _deaf_to_sigterm() -> Iterator[None]:
    """Start processes that do not hear SIGTERM, as Ray's own do not hear Ctrl-C.

    `timeout` and batch systems send it to all at once: without the cluster, its runs could not be asked to save. Ray
    ends a process that does not hear it by SIGKILL.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers over the network
    try:
        import ray
    except ImportError as error:
        raise BisacError("--engine ray needs Ray; in bisac's folder: pip install '.[ray]'.") from error
    return ray
