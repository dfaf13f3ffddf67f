"""What can happen to a run, made to happen: kills, crashes and failing disks at every write, damaged and foreign files.

The tests use this in small; `python tests/reliability.py` runs it in large and writes docs/reliability.md.
"""

import argparse
import csv
import dataclasses
import errno
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from probe_envs import Counter as CounterEnv
from safetensors.numpy import load_file

import bisac
from bisac import cli
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task
from bisac.runs.checkpoint.checkpoints import load
from bisac.runs.checkpoint.manifest import Stored, read_manifest
from bisac.runs.folder import RunDir
from bisac.runs.run import check_memory
from bisac.runs.settings import from_config


class ShortHopper(HopperEnv):
    """Hopper with a time limit short enough that episodes are cut off, as well as ended by a fall, in a small run."""

    ended: ClassVar[Counter[str]] = Counter()

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        obs, reward, terminated, _, info = super().step(action)
        self.steps += 1
        truncated = self.steps >= 25
        if terminated or truncated:
            self.ended["a fall" if terminated else "the time limit"] += 1
        return obs, reward, terminated, truncated, info


if "ShortHopper-v0" not in gym.registry:  # as a script, this module is there twice
    gym.register("ShortHopper-v0", "reliability:ShortHopper")
HOPPER = "reliability:ShortHopper-v0"

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
    "bisac": dict(algo="bisac", **TINY, **VDN),
    "bisac --refinement correction": dict(algo="bisac", refinement="correction", **TINY, **VDN),
    "bisac --critic-norm batch": dict(algo="bisac", critic_norm="batch", **TINY, **VDN),
    "ddpg": dict(algo="ddpg", **TINY),
    "td3": dict(algo="td3", **TINY),
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
    width = checkpoint.config["run"]["num_envs"]
    oldest = max(0, checkpoint.step - capacity // width * width)
    pieces = [load_file(checkpoint.path.parent / "replay" / piece.file.name) for piece in checkpoint.pieces]
    skip = oldest - checkpoint.pieces[0].start
    return b"".join(np.concatenate([piece[name] for piece in pieces])[skip:].tobytes() for name in sorted(pieces[0]))


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


def counted_calls(out):
    """The calls of a run that goes well."""
    with faulty_disk(out, never, Crash) as calls:
        bisac.train(CounterEnv, out=out, **SMALL, **SHORT)
    return calls


def crash_and_go_on(out, nth):
    """A run that is dead from the n-th call on, then resumed."""
    try:
        with faulty_disk(out, lambda n: n >= nth, Crash):
            bisac.train(CounterEnv, out=out, **SMALL, **SHORT)
    except Crash:
        pass
    if RunDir(out).config.exists():
        bisac.resume(out, env=CounterEnv, verbose=False)
    else:  # it had not begun
        bisac.train(CounterEnv, out=out, **SMALL, **SHORT)


def fail_and_go_on(out, nth, fault):
    """A run whose n-th call fails, then resumed, for it may have ended; returns whether it did, and what it said."""
    ended = False
    with warnings.catch_warnings(record=True) as caught, faulty_disk(out, lambda n: n == nth, fault):
        warnings.simplefilter("always")
        try:
            bisac.train(CounterEnv, out=out, **SMALL, **SHORT)
        except (bisac.BisacError, OSError):
            ended = True
    if RunDir(out).config.exists():
        bisac.resume(out, env=CounterEnv, verbose=False)
    else:
        bisac.train(CounterEnv, out=out, **SMALL, **SHORT)
    return ended, [str(warning.message) for warning in caught]


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


def every_file(folder):
    """The files of the newest checkpoint."""
    newest = read_manifest(max((folder / "checkpoints").glob("step-*")))
    pieces = [newest.path.parent / "replay" / piece.file.name for piece in newest.pieces]
    return [*sorted(newest.path.iterdir()), *pieces]


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


def refusals(path, rounds, rng):
    """How many of so many foreign files in the place of one of a checkpoint's are refused; others must be usable.

    Every second one is mutated at random; the others are forged, so that the checksums do not give them away.
    Anything but our own error is a failure.
    """
    whole, refused = {file: file.read_bytes() for file in path.parent.iterdir()}, 0
    forge = {"policy.safetensors": forged_policy, "manifest.json": forged_manifest}.get(path.name, mutated)
    for number in range(rounds):
        path.write_bytes((forge if number % 2 else mutated)(whole[path], rng))
        if path.name == "state.safetensors" and number % 2:
            manifest = json.loads(whole[path.parent / "manifest.json"])
            mark = dataclasses.asdict(Stored.of(path.name, path.read_bytes()))
            manifest["files"][mark.pop("name")] = mark
            (path.parent / "manifest.json").write_bytes(signed(manifest))
        try:
            if path.name == "policy.safetensors":
                bisac.load(path).predict(np.zeros(1))
            else:
                open_checkpoint(path.parent, CounterEnv)
        except bisac.BisacError:
            refused += 1
        for file, content in whole.items():
            file.write_bytes(content)
    return refused


def open_checkpoint(path, env):
    """All that a resume reads of a checkpoint."""
    checkpoint = read_manifest(path)
    checkpoint.verify()
    algo, settings = from_config(checkpoint.config)
    envs = HostEnvs(Task(env), settings.num_envs, settings.seed)
    check_memory(algo, envs.spec)
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


# --- All of it, in large ----------------------------------------------------------------------------------------------


def main():
    """Run everything, and write the table of docs/reliability.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4, help="kills of each run, of every algorithm, with 1 and 3 envs")
    parser.add_argument("--foreign", type=int, default=2000, help="foreign files of each kind")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "reliability.md")
    options = parser.parse_args()
    # One cache of compiled programs for all the processes; and a run that is killed compiles again and again.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        table = ["| what was done to a run | times | what came of it |", "|---|---|---|"]
        head, _, _ = options.out.read_text().partition(MARK)
        campaigns = kill_campaign(folder, options.kills), disk_campaign(folder), damage_campaign(folder)
        for what, times, result in chain(*campaigns, foreign_campaign(folder, options.foreign)):
            table.append(f"| {what} | {times:,} | {result} |")
            options.out.write_text(head + MARK + "\n\n" + "\n".join(table) + "\n")


MARK = "<!-- written by tests/reliability.py -->"


def kill_campaign(folder, kills):
    """SIGKILL at random moments, and in the middle of a save."""
    rng, equal, survived, inside = random.Random(0), 0, 0, 0
    runs = [(name, envs) for name in VARIANTS for envs in (1, 3)]
    bisac.train(HOPPER, out=folder / "endings", verbose=False, **SETTINGS, **VARIANTS["sac"])
    assert len(ShortHopper.ended) == 2
    for name, envs in runs:
        settings = SETTINGS | VARIANTS[name] | {"num_envs": envs}
        where = folder / f"{name}-{envs}".replace(" ", "")
        where.mkdir()
        with (where / "log").open("w") as log:
            assert killed_run(where / "straight", settings, [], log) == 0
            survived += killed_run(where / "random", settings, [rng.uniform(0, 4) for _ in range(kills)], log)
            inside += killed_in_saves(where / "saving", settings, [rng.randrange(20, 90) for _ in range(kills)], log)
        equal += fingerprint(where / "random") == fingerprint(where / "straight")
        equal += fingerprint(where / "saving") == fingerprint(where / "straight")
        print(f"{name}, {envs} environments: {survived} kills, {inside} in a save; {equal} runs equal", flush=True)
    result = f"resumed, {equal} of {2 * len(runs)} runs end equal, bit for bit, to those never interrupted"
    yield "process killed (SIGKILL) at a random moment, on Hopper with falls and time limits", survived, result
    yield "process killed between two writes of its start, log or save", inside, "as above"


def killed_in_saves(folder, settings, calls, log):
    """Train in processes that kill themselves at the n-th call that changes a file; returns the kills."""
    kills = 0
    for nth in [*calls, 10**9]:
        begun = (folder / "config.json").exists()
        arguments = ["resume", folder] if begun else ["train", HOPPER, "--out", folder, *flags(settings)]
        environment = command()["env"] | {"BISAC_TEST_CALL": str(nth), "BISAC_TEST_FOLDER": str(folder)}
        process = subprocess.run(
            [sys.executable, __file__, "--killed", *map(str, arguments)],
            env=environment,
            stdout=log,
            stderr=log,
            check=False,
        )
        assert process.returncode == (-signal.SIGKILL if nth < 10**9 else 0)
        kills += process.returncode < 0
    return kills


def killed_process():
    """What `killed_in_saves` starts."""

    def fails(nth):
        if nth == int(os.environ["BISAC_TEST_CALL"]):
            os.kill(os.getpid(), signal.SIGKILL)

    with faulty_disk(Path(os.environ["BISAC_TEST_FOLDER"]), fails, Crash):
        sys.exit(cli.run(sys.argv[2:]))


def disk_campaign(folder):
    """A crash, a full disk and a broken one at every single call of a run that changes a file."""
    calls = counted_calls(folder / "disk")
    expected = fingerprint(folder / "disk")
    equal = 0
    for nth in range(1, len(calls) + 1):
        crash_and_go_on(folder / "crash", nth)
        equal += fingerprint(folder / "crash") == expected
        shutil.rmtree(folder / "crash")
    yield "process dead from one of its writes on, at every one of them", len(calls), f"resumed, {equal} end equal"
    for fault, name in ((full_disk(), "disk full (ENOSPC)"), (broken_disk(), "disk broken (EIO)")):
        equal = ended = 0
        for nth in range(1, len(calls) + 1):
            stopped, _ = fail_and_go_on(folder / "fail", nth, fault)
            ended += stopped
            equal += fingerprint(folder / "fail") == expected
            shutil.rmtree(folder / "fail")
        went_on = len(calls) - ended
        result = (
            f"{went_on} went on with a warning, {ended} (at start or end) stopped with a sentence; {equal} end equal"
        )
        yield f"{name} at one write, at every one of them", len(calls), result
        print(f"{name}: {result}", flush=True)


def damage_campaign(folder):
    """Each file of a checkpoint cut, flipped and deleted."""
    done = equal = 0
    expected = fingerprint(folder / "disk")
    bisac.train(CounterEnv, out=folder / "part", **SMALL, **SHORT | {"steps": 80})
    for index in range(len(every_file(folder / "part"))):
        for how in damages(every_file(folder / "part")[index]):
            shutil.copytree(folder / "part", folder / "spoiled")
            path = every_file(folder / "spoiled")[index]
            spoil(path, damages(path)[how])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                bisac.resume(folder / "spoiled", steps=100, env=CounterEnv, verbose=False)
            assert len(caught) == 1
            assert path.name in str(caught[0].message)
            done += 1
            equal += fingerprint(folder / "spoiled") == expected
            shutil.rmtree(folder / "spoiled")
    yield (
        "one file of the newest checkpoint cut, one bit flipped, or deleted",
        done,
        (f"named; the checkpoint before it used; {equal} end equal"),
    )


def foreign_campaign(folder, rounds):
    """Mutated and forged files in the place of ours."""
    for path in every_file(folder / "part"):
        if path.name in ("policy.safetensors", "state.safetensors", "manifest.json"):
            refused = refusals(path, rounds, random.Random(path.name))
            result = f"{refused:,} refused with a sentence, {rounds - refused:,} whole enough to use; no other error"
            yield f"{path.name} mutated at random or forged under right checksums", rounds, result
            print(f"{path.name}: {result}", flush=True)


if __name__ == "__main__":
    import reliability  # under the name by which its environment is made

    reliability.killed_process() if "--killed" in sys.argv[1:2] else reliability.main()
