"""Damaged files of a checkpoint, and files of strangers in their place."""

import random
import shutil
import warnings

from damage import damages, every_file, spoil
from forging import refusals
from probe_envs import Counter
from small_runs import SHORT, SMALL, fingerprint

import bisac


def damage_campaign(folder):
    """Each file of a checkpoint cut, flipped and deleted."""
    done = equal = 0
    expected = fingerprint(folder / "disk")
    bisac.train(Counter, out=folder / "part", **SMALL, **SHORT | {"steps": 80})
    for index in range(len(every_file(folder / "part"))):
        for how in damages(every_file(folder / "part")[index]):
            shutil.copytree(folder / "part", folder / "spoiled")
            path = every_file(folder / "spoiled")[index]
            spoil(path, damages(path)[how])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                bisac.resume(folder / "spoiled", steps=100, env=Counter, verbose=False)
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
