"""Runs of a moment, what happens to them at a step, and how two of them are compared."""

import csv
import hashlib
import io
import json
from contextlib import contextmanager

import numpy as np
import pytest
from forms import VDN_A
from safetensors.numpy import load_file

from bisac.collect.collector import Request
from bisac.collect.host import HostCollector
from bisac.envs.task import Task
from bisac.runs.checkpoint.manifest import read_manifest

SMALL = dict(algo="sac", hidden=(8,), batch_size=16, learning_starts=12, replay_size=40, seed=3)
SHORT = dict(steps=100, eval_every=40, eval_episodes=2, checkpoint_every=20, num_envs=1, verbose=False)
"""A run of a moment, on a probe environment."""

SETTINGS = dict(steps=600, eval_every=150, eval_episodes=1, checkpoint_every=100)
TINY = dict(hidden=(8,), batch_size=16, learning_starts=50, replay_size=300)
FRESH = dict(hidden=(8,), rollout=30)
VDN = dict(encoder=(8,), embedding=(4,), subnetwork=(8,), simpson_intervals=20, chebyshev_points=5)
VARIANTS = {
    "sac": dict(algo="sac", **TINY),
    "sac --critic-norm none": dict(algo="sac", critic_norm="none", **TINY),
    "forward-sac": dict(algo="forward-sac", **TINY, **VDN),
    "forward-sac-actor": dict(algo="forward-sac-actor", **TINY, **VDN),
    "bisac": dict(algo="bisac", **TINY),
    "bisac --critic vdn-a": dict(algo="bisac", **VDN_A, **TINY, **VDN),
    "bisac --critic vdn-a --critic-norm batch": dict(algo="bisac", **VDN_A | dict(critic_norm="batch"), **TINY, **VDN),
    "ddpg": dict(algo="ddpg", **TINY),
    "td3": dict(algo="td3", **TINY),
    "mpo": dict(algo="mpo", **TINY),
    "ppo": dict(algo="ppo", minibatches=3, **FRESH),
    "a2c": dict(algo="a2c", **FRESH),
}


def fingerprint(folder):
    """Hashes of all that a run is at its last checkpoint, but for what clocks say."""
    newest = read_manifest(max((folder / "checkpoints").glob("step-*")))
    newest.verify()
    run = json.loads(json.dumps(newest.run))
    del run["record"]["seconds"]
    hashes = {
        "run": json.dumps(run, sort_keys=True).encode(),
        "progress.csv": _without_clock(folder / "progress.csv"),
        "replay": _replay_rows(newest),
        **{name: (newest.path / name).read_bytes() for name in ("state.safetensors", "best.safetensors")},
        **{f"final {name}": (folder / name).read_bytes() for name in ("policy.safetensors", "best.safetensors")},
    }
    return {name: hashlib.sha256(content).hexdigest() for name, content in hashes.items()}


def _without_clock(path):
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    return json.dumps([{name: value for name, value in row.items() if name != "wall_time"} for row in rows]).encode()


def _replay_rows(checkpoint):
    """The rows that the memory holds, from its oldest on, however they are cut into pieces; none for PPO and A2C."""
    if not checkpoint.pieces:
        return b""
    capacity = checkpoint.config["hyperparameters"]["replay_size"]
    num_envs = checkpoint.config["run"]["num_envs"]
    oldest = max(0, checkpoint.rows - capacity // num_envs * num_envs)
    pieces = [load_file(checkpoint.path.parent / "replay" / piece.file.name) for piece in checkpoint.pieces]
    skip = oldest - checkpoint.pieces[0].start
    return b"".join(np.concatenate([piece[name] for piece in pieces])[skip:].tobytes() for name in sorted(pieces[0]))


def host_collector(algo, env, num_envs=1, seed=0, steps=10**9):
    """A collector of copies of an environment, as a session has it."""
    return HostCollector(Task(env), Request(algo.settled(), (seed,), num_envs, steps, eval_episodes=1))


def advanced(collector, state, steps):
    """The state after so many steps in all, and the episodes that ended on the way."""
    episodes = []
    while state.step < steps:
        state, (ended,) = collector.advance(state, steps)
        episodes += ended
    return state, episodes


class Crash(BaseException):
    """The process is dead from here on."""


def at_each_step(monkeypatch, act):
    """Let `act` see the step after each that a run takes, before anything is logged or saved."""
    original = HostCollector.advance

    def advance(self, state, until):
        state, ended = original(self, state, until)
        act(state.step)
        return state, ended

    monkeypatch.setattr(HostCollector, "advance", advance)


@contextmanager
def dying_at(step):
    """What is trained inside dies in the middle of that step, with no time to save."""

    def act(now):
        if now >= step:
            raise Crash

    with pytest.MonkeyPatch.context() as patch:
        at_each_step(patch, act)
        with pytest.raises(Crash):
            yield
