"""Environments in processes of their own, for those slow enough that waiting for them together pays.

Gymnasium's AsyncVectorEnv is not used: its workers import what the user's script imports, die of the Ctrl-C after which
we save, and cannot repeat episodes of different lengths.
"""

import select
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import numpy as np

from bisac.envs.host import worker
from bisac.envs.host.backends import Replay, Steps, stack_observations, stack_steps
from bisac.envs.task import Task
from bisac.errors import BisacError

GRACE = 5.0
"""Seconds that environments have to close themselves."""
PATIENCE = 60.0
"""Seconds without an answer after which that is told."""


class AsyncBackend:
    """Environments that are all stepped at once, each in a process of its own."""

    def __init__(self, task: Task, num_envs: int):
        env = task.make()  # here too: what cannot be used is refused as everywhere
        self.spec = task.spec(env)
        try:
            recipe = cloudpickle.dumps(task.recipe(env))
        except Exception as error:  # objects refuse to be pickled in ways of their own
            raise BisacError(
                f"{self.spec.env_id} cannot be sent to a process of its own ({error}); use --backend sync."
            ) from error
        finally:
            env.close()
        self.workers = [Worker(f"{self.spec.env_id} (copy {index})") for index in range(num_envs)]
        try:
            for each in self.workers:
                each.begin(recipe)
            for each in self.workers:
                each.answer()
        except BaseException:
            self.close()
            raise

    def reset(self, indices: list[int], seeds: list[int]) -> np.ndarray:
        """Begin an episode in these environments, and return their first observations."""
        chosen = [self.workers[index] for index in indices]
        for each, seed in zip(chosen, seeds, strict=True):
            each.ask("reset", seed)
        return stack_observations([each.answer() for each in chosen], self.spec)

    def step(self, actions: np.ndarray) -> Steps:
        """Act in all environments."""
        for each, action in zip(self.workers, actions, strict=True):
            each.ask("step", action)
        return stack_steps([each.answer() for each in self.workers], self.spec)

    def replay(self, seeds: list[int], actions: list[np.ndarray]) -> list[Replay]:
        """Bring each environment back into the episode of its seed and actions."""
        for each, *episode in zip(self.workers, seeds, actions, strict=True):
            each.ask("replay", *episode)
        return [each.answer() for each in self.workers]

    def close(self) -> None:
        """Let the environments close themselves, and end those that do not."""
        for each in self.workers:
            each.connection.close()
        deadline = time.monotonic() + GRACE
        for each in self.workers:
            each.end(deadline)


class Worker:
    """A process that runs worker.py, and our end of the socket to it."""

    def __init__(self, name: str):
        self.name = name
        ours, theirs = socket.socketpair()
        with theirs:  # nobody but the process may hold its end: if it dies we must hear of it
            descriptor = theirs.fileno()
            command = [sys.executable, "-P", worker.__file__, str(descriptor)]  # -P: its folder is no place for imports
            self.process = subprocess.Popen(command, pass_fds=[descriptor], stdin=subprocess.DEVNULL)
        self.connection = Connection(ours.detach())
        self._mail = select.poll()
        self._mail.register(self.connection, select.POLLIN)

    def begin(self, recipe: bytes) -> None:
        """Tell it what environment to make."""
        with self._listening():
            worker.send(self.connection, sys.path)
            self.connection.send_bytes(recipe)

    def ask(self, call: str, *arguments: Any) -> None:
        """Tell it what to do."""
        with self._listening():
            worker.send(self.connection, (call, *arguments))

    def answer(self) -> Any:
        """Wait for what came of it; tell where that takes long, for it may never come."""
        with self._listening():
            if not self._mail.poll(PATIENCE * 1000.0):
                warnings.warn(
                    f"{self.name} has not answered for {PATIENCE:.0f} s. It is still waited for; Ctrl-C twice ends the "
                    f"run, and 'bisac resume' goes on from its last checkpoint.",
                    stacklevel=2,
                )
            result, problem = self.connection.recv()
        if problem:
            raise BisacError(f"{self.name} failed: {problem}.")
        return result

    @contextmanager
    def _listening(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            raise BisacError(f"{self.name} is gone: its process ended with {self._exit()}.") from error

    def _exit(self) -> str:
        try:
            code = self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "its socket closed"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self, deadline: float) -> None:
        """Wait for it to end, or end it."""
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
