"""Pictures of an episode in a Gymnasium environment, with or without a screen."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import numpy as np

from bisac.collect.collector import Acts
from bisac.collect.evaluate import HELD_OUT_STREAM, MOST_STEPS
from bisac.envs.host.envs import episode_seed
from bisac.envs.task import Env, Task
from bisac.errors import BisacError, reason

ADVICE = (
    "Leave out --video; or, if that is a task of MuJoCo's and the machine lacks a GL library, install Debian's libegl1 "
    "(or libosmesa6, with MUJOCO_GL=osmesa)."
)


def filmed_episode(policy: Acts, task: Task, seed: int) -> tuple[str, int, Iterator[np.ndarray]]:
    """Return the environment's id, its frames a second, and the pictures of an episode of the deterministic policy."""
    choose_renderer()
    with rendering(), ExitStack() as made:
        env = made.enter_context(closing(task.make(render_mode="rgb_array")))
        obs, _ = env.reset(seed=episode_seed(seed, HELD_OUT_STREAM, 0))
        first = _picture(env)
        made.pop_all()
    rate = int(env.metadata.get("render_fps", 30))
    return task.name(env), rate, _frames(policy, env, np.asarray(obs, np.float32), first)


def _frames(policy: Acts, env: Env, obs: np.ndarray, first: np.ndarray) -> Iterator[np.ndarray]:
    """Yield a picture of each state, one at a time: those of an episode would fill the memory."""
    with closing(env):
        yield first
        for _ in range(MOST_STEPS):
            action, _ = policy.predict(obs)
            obs, _, terminated, truncated, _ = env.step(action.reshape(env.action_space.shape or ()))
            obs = np.asarray(obs, np.float32)
            yield _picture(env)
            if terminated or truncated:
                return


def _picture(env: Env) -> np.ndarray:
    try:
        picture = env.render()
    except NotImplementedError:  # of Gymnasium's own base class
        picture = None
    if not isinstance(picture, np.ndarray):
        raise BisacError("the environment draws no pictures (render_mode='rgb_array'); leave out --video.")
    return picture


@contextmanager
def rendering() -> Iterator[None]:
    """Make one sentence of what goes wrong where a first picture is drawn."""
    try:
        yield
    except BisacError:
        raise
    except Exception as error:  # GL bindings fail in ways of their own: ImportError, AttributeError, FatalError, ...
        raise BisacError(f"the episode cannot be filmed: {reason(error)}. {ADVICE}") from error


def choose_renderer() -> None:
    """Without a screen, render off screen; what the user has set stays."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
