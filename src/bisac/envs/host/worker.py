"""One environment behind three calls, in this process, or in one of its own: `python worker.py FD` serves them there.

It imports nothing of bisac, and so no JAX: a worker starts fast and stays small.
"""

import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

import gymnasium as gym
import numpy as np

Env = gym.Env[Any, Any]
Step = tuple[np.ndarray, np.float32, bool, bool, dict[str, Any]]
"""Observation, reward, whether terminated, whether truncated, and the info of a step that ends an episode."""


def reset(env: Env, seed: int) -> np.ndarray:
    """Begin an episode, and return the first observation."""
    return np.asarray(env.reset(seed=seed)[0], np.float32)


def step(env: Env, action: np.ndarray) -> Step:
    """Act in the environment's own units."""
    obs, reward, terminated, truncated, info = env.step(action.reshape(env.action_space.shape or ()))
    scalar = np.asarray(reward, np.float32)  # some environments give an array of one
    if scalar.size != 1:
        raise ValueError(f"a reward is one number; the environment gave an array of shape {scalar.shape}")
    told = dict(info) if terminated or truncated else {}
    return np.asarray(obs, np.float32), np.float32(scalar.item()), bool(terminated), bool(truncated), told


def replay(env: Env, seed: int, actions: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Repeat an episode; return the observation and return it led to, or None where it ends on the way."""
    obs, total_reward = reset(env, seed), 0.0
    for action in actions:
        obs, reward, terminated, truncated, _ = step(env, action)
        if terminated or truncated:
            return None
        total_reward += float(reward)
    return obs, total_reward


def _step_afar(env: Env, action: np.ndarray) -> Step:
    """Act, and keep of the info what any process can read."""
    obs, reward, terminated, truncated, info = step(env, action)
    told = {name: value for name, value in info.items() if _is_plain(value)}
    return obs, reward, terminated, truncated, told


def _is_plain(value: Any) -> bool:
    """Return whether a value is made of numbers, words and arrays alone."""
    if isinstance(value, dict):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray | np.generic):
        return not value.dtype.hasobject
    return value is None or isinstance(value, bool | int | float | str)


CALLS: dict[str, Callable[..., Any]] = {"reset": reset, "step": _step_afar, "replay": replay}


def send(connection: Connection, message: Any) -> None:
    """Send what `recv` at the other end returns.

    Not `Connection.send`: Python 3.12.0 and 3.12.1 crash where an error keeps its buffer alive (python/cpython#111049).
    """
    connection.send_bytes(pickle.dumps(message))


def serve(connection: Connection) -> None:
    """Make an environment, then do as told; each answer is a result, and what went wrong where there is none."""
    sys.path[:] = connection.recv()  # the parent's, where the environment's own modules are found
    env, problem = _attempt(_make, connection.recv_bytes())
    try:
        send(connection, (None, problem))
        while problem is None:
            call, *arguments = connection.recv()
            result, problem = _attempt(CALLS[call], env, *arguments)
            send(connection, (result, problem))
    finally:
        if env is not None:
            env.close()


def quieten_mujoco() -> None:
    """Let MuJoCo tell a warning once: else it does for each environment, and in a file in the working folder."""
    import mujoco  # slow, and wanted only here

    if mujoco.get_mju_user_warning() is None:  # pyright: ignore[reportAttributeAccessIssue]  left out of its stubs
        mujoco.set_mju_user_warning(_tell_once)  # pyright: ignore[reportAttributeAccessIssue]


@cache
def _tell_once(text: str) -> None:
    if "deprecated" not in text:  # Gymnasium's models are not the user's to mend
        sys.stderr.write(f"MuJoCo: {text}\n")


def _make(recipe: bytes) -> Env:
    make, flat, mujoco = pickle.loads(recipe)
    if mujoco:
        quieten_mujoco()
    return gym.wrappers.FlattenObservation(make()) if flat else make()


def _attempt(call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
    try:
        return call(*arguments), None
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"


def main() -> None:
    """Serve at the end of a socket that the parent left open; the parent alone decides when to stop."""
    for number in (signal.SIGINT, signal.SIGTERM):  # meant for the parent, which wants to finish its step and save
        signal.signal(number, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):  # the parent has closed its end, or is gone
        serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
