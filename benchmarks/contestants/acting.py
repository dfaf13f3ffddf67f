"""One contestant of the benchmark of acting: at each line of its input it answers 1,000 observations, one at a time.

It prints its versions first, then the seconds of each thousand. All act with SAC's network of 256-256 at Hopper-v5's
sizes, deterministically, on one core.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402  its threads are those of the cores that are left

CALLS = 1000


def sb3():
    """Stable-Baselines3's predict."""
    import gymnasium as gym
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(1)
    box = gym.spaces.Box(-np.inf, np.inf, (11,), np.float64)

    class Sizes(gym.Env):
        """An environment of Hopper-v5's sizes, which is never stepped."""

        observation_space, action_space = box, gym.spaces.Box(-1.0, 1.0, (3,))

    model = SAC("MlpPolicy", Sizes(), device="cpu", buffer_size=1)
    return (lambda obs: model.predict(obs, deterministic=True)), ["stable-baselines3", "torch"]


def ours():
    """A policy of bisac's SAC."""
    import jax

    from bisac.algos import SAC
    from bisac.policies.policy import Policy
    from bisac.types import Spec

    spec, algo = Spec("Hopper-v5", 11, (-1.0,) * 3, (1.0,) * 3), SAC().settled()
    return Policy(spec, algo, algo.policy(algo.init(spec, jax.random.key(0))))


def predict():
    """Our predict on one observation."""
    return ours().predict, ["jax"]


def compiled():
    """Our predict on a batch of one: the path that evaluation takes."""
    policy = ours()
    return (lambda obs: policy.predict(obs[None])), ["jax"]


def numpy_form():
    """The exported form that needs NumPy alone."""
    from bisac.policies.export.standalone import Policy

    with tempfile.TemporaryDirectory() as folder:
        ours().export(Path(folder) / "policy.npz")
        return Policy(Path(folder) / "policy.npz").act, ["numpy"]


def onnx():
    """The exported ONNX in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        ours().export(Path(folder) / "policy.onnx")
        session = onnxruntime.InferenceSession(Path(folder) / "policy.onnx", options)
    act = session.run
    return (lambda obs: act(None, {"observation": np.asarray(obs[None], np.float32)})[0][0]), ["onnxruntime"]


if __name__ == "__main__":
    act, packages = {"sb3": sb3, "predict": predict, "compiled": compiled, "numpy": numpy_form, "onnx": onnx}[
        sys.argv[1]
    ]()
    observations = np.random.default_rng(0).normal(size=(CALLS, 11))
    for obs in observations[:100]:
        act(obs)
    print(json.dumps({name: version(name) for name in packages}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        for obs in observations:
            act(obs)
        print(time.perf_counter() - begin, flush=True)
