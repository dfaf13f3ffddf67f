"""Damaged files of a checkpoint, and files of strangers in their place."""

import random
import re
import shutil
import warnings

from damage import damages, every_file, spoil
from forging import refusals
from outcomes import Outcome
from probe_envs import Counter
from small_runs import SHORT, SMALL, fingerprint

import bisac


def _half(folder):
    """A run that was stopped on its way, with two checkpoints, and what it would have come to."""
    if not (folder / "part").exists():
        bisac.train(Counter, out=folder / "part", **SMALL, **SHORT | {"steps": 80})
        bisac.train(Counter, out=folder / "whole", **SMALL, **SHORT)
    return folder / "part", fingerprint(folder / "whole")


def damage_campaign(folder):
    """Each file of a checkpoint cut, flipped and deleted."""
    done = equal = silent = 0
    said = ""
    part, expected = _half(folder)
    for index in range(len(every_file(part))):
        for how in damages(every_file(part)[index]):
            shutil.copytree(part, folder / "spoiled")
            path = every_file(folder / "spoiled")[index]
            spoil(path, damages(path)[how])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                bisac.resume(folder / "spoiled", steps=100, env=Counter, verbose=False)
            named = [str(each.message) for each in caught if path.name in str(each.message)]
            said = said or re.sub(r"/\S*/(?=step)", "", named[0] if named else "")
            done, silent = done + 1, silent + (not named)
            equal += fingerprint(folder / "spoiled") == expected
            shutil.rmtree(folder / "spoiled")
    print(f"damaged: {done}, {silent} silent, {equal} equal", flush=True)
    what, result = "one file of the newest checkpoint cut, one bit flipped, or deleted", f"{equal} end equal"
    yield Outcome(what, done, f"named; the checkpoint before it used; {result}", done - equal, silent, said)


def foreign_campaign(folder, rounds):
    """Mutated and forged files in the place of a checkpoint's; anything but our own error ends the campaign."""
    part, _ = _half(folder)
    for path in every_file(part):
        if path.name in ("policy.safetensors", "state.safetensors", "manifest.json"):
            refused = refusals(path, rounds, random.Random(path.name))
            result = f"{refused:,} refused with a sentence, {rounds - refused:,} whole enough to use, 0 other errors"
            print(f"{path.name}: {result}", flush=True)
            yield Outcome(f"{path.name}: mutated at random or forged under right checksums", rounds, result)
