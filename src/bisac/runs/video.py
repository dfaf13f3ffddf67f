"""Filming an episode, with or without a screen."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np

from bisac.envs.host.envs import episode_seed
from bisac.envs.task import Task
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.collect.evaluate import HELD_OUT_STREAM, MOST_STEPS

MISSING_GL = (
    "MuJoCo cannot render here: the machine lacks a GL library; install Debian's libegl1 "
    "(or libosmesa6, with MUJOCO_GL=osmesa) and try again."
)


def record_video(policy: Policy, task: Task, folder: Path, seed: int) -> Path:
    """One episode of the deterministic policy as an mp4 in `folder`."""
    _choose_renderer()
    try:
        env = task.make(render_mode="rgb_array")
        obs, _ = env.reset(seed=episode_seed(seed, HELD_OUT_STREAM, 0))
        frame = env.render()
    except BisacError:
        raise
    except Exception as error:  # GL bindings fail in ways of their own: ImportError, AttributeError, FatalError, ...
        raise BisacError(f"{MISSING_GL} ({type(error).__name__}: {error})") from error
    path = folder / f"{task.name(env).replace('/', '-').replace(':', '-')}-seed{seed}.mp4"
    partial = path.with_suffix(".partial.mp4")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        rate = env.metadata.get("render_fps", 30)
        # Frame by frame: those of an episode would fill the memory.
        writer: Any = imageio.get_writer(partial, fps=rate, macro_block_size=2)  # pyright: ignore[reportCallIssue, reportArgumentType]
        with _quiet_fork(), closing(env), writer as film:
            film.append_data(frame)
            for _ in range(MOST_STEPS):
                action, _ = policy.predict(np.asarray(obs))
                obs, _, terminated, truncated, _ = env.step(action.reshape(env.action_space.shape or ()))
                film.append_data(env.render())
                if terminated or truncated:
                    break
        partial.replace(path)
    except OSError as error:
        raise BisacError(f"the video cannot be written to {path}: {error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return path


@contextmanager
def _quiet_fork() -> Iterator[None]:
    """JAX warns of any fork; the encoder's process replaces itself at once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        yield


def _choose_renderer() -> None:
    """Without a screen, render off screen; what the user has set stays."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
