"""Files from strangers: mutated at random, or forged so that no checksum gives them away."""

import dataclasses
import hashlib
import json
from contextlib import closing

import numpy as np
from probe_envs import Counter

import bisac
from bisac.runs.checkpoint.contents import fitting, load
from bisac.runs.checkpoint.manifest import Stored, read_manifest
from bisac.runs.config import from_config
from bisac.runs.start import opened


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
                open_checkpoint(path.parent, Counter)
        except bisac.BisacError:
            refused += 1
        for file, content in whole.items():
            file.write_bytes(content)
    return refused


def open_checkpoint(path, env):
    """Read all that a resume reads of a checkpoint."""
    checkpoint = read_manifest(path)
    checkpoint.verify()
    algo, settings = from_config(checkpoint.config)
    with closing(opened(env, algo, settings, [settings.seed])) as collector:
        snapshot, _ = load(checkpoint, collector)
        with fitting(checkpoint):
            collector.restore([snapshot])


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
