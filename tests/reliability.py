"""What can happen to a run, made to happen: kills, crashes and failing disks at every write, damaged and foreign files.

The tests use this in small; `python tests/reliability.py` runs it in large and writes docs/reliability.md.
"""

import csv
import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import gymnasium as gym
import numpy as np
from safetensors.numpy import load_file

from bisac.envs.host import HostEnvs
from bisac.training.checkpoint import load
from bisac.training.loop import check_memory
from bisac.training.manifest import read_manifest
from bisac.training.settings import from_config

# Short enough that episodes are cut off as well as ended by a fall within a few hundred steps.
gym.register("ShortHopper-v0", "gymnasium.envs.mujoco.hopper_v5:HopperEnv", max_episode_steps=25)
HOPPER = "reliability:ShortHopper-v0"

SETTINGS = dict(steps=600, eval_every=150, eval_episodes=1, checkpoint_every=100)
TINY = dict(hidden=(8,), batch_size=8, learning_starts=50, replay_size=300)
VDN = dict(embedding=(4,), subnetwork=(8,), simpson_intervals=20, chebyshev_points=5)
VARIANTS = {
    "sac": dict(algo="sac"),
    "forward-sac": dict(algo="forward-sac", **VDN),
    "forward-sac-actor": dict(algo="forward-sac-actor", **VDN),
    "bisac": dict(algo="bisac", **VDN),
    "bisac --refinement correction": dict(algo="bisac", refinement="correction", **VDN),
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
    """The rows that the memory holds, from its oldest on, however they are cut into pieces."""
    capacity = checkpoint.config["hyperparameters"]["replay_size"]
    width = checkpoint.config["run"]["num_envs"]
    oldest = max(0, checkpoint.step - capacity // width * width)
    pieces = [load_file(checkpoint.path.parent / "replay" / piece.file.name) for piece in checkpoint.pieces]
    skip = oldest - checkpoint.pieces[0].start
    return b"".join(np.concatenate([piece[name] for piece in pieces])[skip:].tobytes() for name in sorted(pieces[0]))


def endings(folder):
    """How many of the episodes that ended were terminated, and how many truncated, among the rows remembered."""
    newest = read_manifest(max((folder / "checkpoints").glob("step-*")))
    discount = np.concatenate(
        [load_file(newest.path.parent / "replay" / piece.file.name)["discount"] for piece in newest.pieces]
    )
    terminated = int((discount == 0.0).sum())
    return terminated, sum(newest.run["episodes_started"]) - newest.config["run"]["num_envs"] - terminated


# --- Real processes, killed -------------------------------------------------------------------------------------------


def flags(settings):
    """Python's keywords as the command line's flags."""
    for name, value in settings.items():
        yield f"--{name.replace('_', '-')}"
        yield from map(str, value if isinstance(value, tuple) else (value,))


def command(*arguments):
    """A bisac process that can make the environment above."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    return dict(args=[sys.executable, "-m", "bisac", *map(str, arguments)], env=os.environ | {"PYTHONPATH": path})


def killed_run(folder, settings, moments, log):
    """Train in processes that are killed, `moments` seconds after their run folder shows life; returns the kills."""
    kills = 0
    for moment in [*moments, None]:
        begun = (folder / "config.json").exists()
        arguments = ["resume", folder] if begun else ["train", HOPPER, "--out", folder, *flags(settings)]
        before = _age(folder)
        with subprocess.Popen(**command(*arguments), stdout=log, stderr=log) as process:
            if moment is None:
                assert process.wait(300) == 0
                break
            deadline = time.monotonic() + 300
            while process.poll() is None and _age(folder) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(moment)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
    return kills


def _age(folder):
    """Changes whenever a process writes a config or a checkpoint."""
    watched = [folder / "config.json", *(folder / "checkpoints").glob("*")]
    return [(path.name, path.stat().st_mtime_ns) for path in watched if path.exists()]


# --- Crashes and failing disks, at every call that changes a file -----------------------------------------------------


class Crash(BaseException):
    """The process is dead from here on."""


def full_disk():
    """What the operating system says when there is no room."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken_disk():
    """What it says when the disk does not answer."""
    return OSError(errno.EIO, os.strerror(errno.EIO))


def never(_nth):
    """A disk that works."""
    return False


CHANGING = ("open", "write", "ftruncate", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")


@contextmanager
def faulty_disk(folder, fails, fault):
    """Calls that would change something in `folder` raise `fault` where `fails` says so of their number, from 1 on.

    Crash from the n-th call on is what a killed process leaves: it cannot even tidy up. Yields the calls made.
    """
    calls, descriptors, originals = [], set(), {name: getattr(os, name) for name in (*CHANGING, "close")}

    def patched(name):
        def call(target, *arguments, **keywords):
            if isinstance(target, int):
                concerned = target in descriptors
            elif keywords.get("dir_fd") is not None:  # how shutil.rmtree calls
                concerned = keywords["dir_fd"] in descriptors
            else:
                concerned = os.path.abspath(os.fspath(target)).startswith(str(folder))
            if concerned:
                calls.append(name)
                if fails(len(calls)):
                    raise fault
            result = originals[name](target, *arguments, **keywords)
            if name == "open":
                (descriptors.add if concerned else descriptors.discard)(result)
            return result

        return call

    def close(descriptor):  # its number is soon another file's
        descriptors.discard(descriptor)
        originals["close"](descriptor)

    for name in CHANGING:
        setattr(os, name, patched(name))
    os.close = close
    try:
        yield calls
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


# --- Damage to the files of a checkpoint ------------------------------------------------------------------------------


def damages(path):
    """Ways to spoil a file, by name: each is a function of its content that gives other content, or None to delete."""
    size = path.stat().st_size

    def flip(at):
        def change(content):
            changed = bytearray(content)
            changed[at] ^= 1 << (at % 8)
            return bytes(changed)

        return change

    cuts = {0, 1, size // 2, size - 1}
    flips = sorted({0, 9, size // 3, size // 2, size - 2})
    return {
        **{f"cut to {cut}": lambda content, cut=cut: content[:cut] for cut in sorted(cuts)},
        **{f"bit flipped at {at}": flip(at) for at in flips if at < size},
        "deleted": lambda content: None,
    }


def spoil(path, change):
    """Apply one of `damages`."""
    content = change(path.read_bytes())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


# --- Files from strangers ---------------------------------------------------------------------------------------------


def mutated(content, rng):
    """The content with some bytes changed, cut, repeated or inserted."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 2, 8, 100])
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = rng.randbytes(length)
        elif kind == 3:
            data[at:at] = data[at : at + length]
        else:
            data[at : at + length] = rng.choice(
                [b"9" * length, b"-1", b"[]", b"null", b'"x"', b"1e999", b"\xff" * length]
            )
    return bytes(data)


VALUES = [None, True, -1, 0, 10**30, 1e308, float("nan"), "", "x", "../../../etc/passwd", [], [1], {}, {"a": 1}]


def mutated_json(value, rng):
    """A JSON value with one part of it replaced, dropped or doubled, wherever in it that is."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        if rng.random() < 0.15:
            return {key: inner for key, inner in value.items() if key != name}
        return value | {name: mutated_json(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], mutated_json(value[at], rng), *value[at + 1 :]] if rng.random() < 0.8 else value * 2
    return rng.choice(VALUES)


def forged_manifest(content, rng):
    """A manifest that says something else under a right checksum, as a stranger could write it."""
    manifest = json.loads(content)
    manifest.pop("sha256")
    return signed(mutated_json(manifest, rng))


def signed(manifest):
    """A manifest under a right checksum, whatever it says."""
    if not isinstance(manifest, dict):
        return json.dumps(manifest).encode()
    manifest = {name: value for name, value in manifest.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    return json.dumps(manifest | {"sha256": digest}).encode()


def open_checkpoint(path, env):
    """All that a resume reads of a checkpoint."""
    checkpoint = read_manifest(path)
    checkpoint.verify()
    algo, settings = from_config(checkpoint.config)
    envs = HostEnvs(env, settings.num_envs, settings.seed)
    check_memory(algo, envs.spec, settings.num_envs)
    load(checkpoint, algo, envs)


def forged_policy(content, rng):
    """A policy file whose metadata says something else."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    metadata = mutated_json(json.loads(header["__metadata__"]["bisac"]), rng)
    header["__metadata__"]["bisac"] = json.dumps(metadata)
    if rng.random() < 0.3:
        header = mutated_json(header, rng)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded + content[8 + size :]
