"""Files of strangers in the place of ours, of every kind that bisac reads but a checkpoint's: mutated or forged."""

import contextlib
import io
import json
import random
import re
import shutil
import traceback
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
from forging import forged_policy, mutated, mutated_json
from made_up_sweep import make_up
from rich.console import Console

import bisac
from bisac.algos.search import Choice, Range
from bisac.cli.arguments import from_file
from bisac.cli.sweep import parse_sweep
from bisac.cli.train import parse_train
from bisac.collect.data_files import read_dataset
from bisac.collect.dataset import Dataset, from_arrays
from bisac.display.sweep import show_findings
from bisac.policies.export.standalone import Policy as NumpyPolicy
from bisac.report.analyse import analyse
from bisac.report.data import read_sweep
from bisac.report.page import render_page
from bisac.report.tables import to_latex
from bisac.report.tuning import write_tuning_page
from bisac.runs.events import Started
from bisac.runs.resume import resume
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import Contestant
from bisac.sweeps.folders import read_evaluations
from bisac.tuning.record import Tuning, enrol
from bisac.tuning.study import STUDY, Study

CLASSIC = Path(__file__).parents[1] / "data" / "classic" / "sac"
FLAGS = {"env": "Pendulum-v1", "algo": "sac", "steps": 1000, "hidden": [8, 8], "critic_lr": 1e-3, "env_arg": ["g=9.8"]}
ODD = [
    np.zeros(0), np.float32(3), np.full(6, np.nan), np.array(["x"] * 6), np.zeros((6, 9)), np.zeros((6, 2, 2)),
    np.zeros(6, complex), np.full((6, 2), 1e300), np.arange(7), np.zeros(6, bool),
]  # fmt: skip
"""Arrays that are not what stands in their place."""


@dataclass
class Kind:
    """A kind of file: where a whole one lies, how a stranger forges one, and what reads it."""

    name: str
    path: Path
    read: Callable[[], Any]
    forge: Callable[[bytes, random.Random], bytes] = mutated
    refusal: tuple[type[BaseException], ...] = (bisac.BisacError,)
    tally: Tally[str] = field(default_factory=Tally)
    sentence: str = ""
    problems: list[str] = field(default_factory=list)
    """What ended in anything but our own error, and where."""

    def try_out(self, rounds: int, rng: random.Random) -> None:
        """Read so many foreign files, every second one forged; whatever is neither used nor refused is a problem."""
        whole, beside = self.path.read_bytes(), {each.name for each in self.path.parent.iterdir()}
        for number in range(rounds):
            if number % 100 == 99:
                jax.clear_caches()  # every forged network is one more program
            self.path.write_bytes((self.forge if number % 2 else mutated)(whole, rng))
            try:
                self.read()
                self.tally["used"] += 1
            except self.refusal as error:
                self.tally["refused"] += 1
                self.sentence = self.sentence or _shown(error)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-3:]
                self.problems.append(f"{error!r} at {[f'{each.filename}:{each.lineno}' for each in place]}")
            for made in {each.name for each in self.path.parent.iterdir()} - beside:
                (self.path.parent / made).unlink()
            self.path.write_bytes(whole)


def _shown(error: BaseException) -> str:
    return "" if isinstance(error, SystemExit) else re.sub(r"/\S*/", "", str(error)).replace("|", "\\|")


def forged_json(content: bytes, rng: random.Random) -> bytes:
    """JSON with one part of it another."""
    return json.dumps(mutated_json(json.loads(content), rng)).encode()


def forged_toml(content: bytes, rng: random.Random) -> bytes:
    """Flags of which one is another; what TOML has no word for is left out."""
    values = mutated_json(FLAGS, rng)
    if not isinstance(values, dict):
        return content
    return "\n".join(f"{n} = {json.dumps(v)}" for n, v in values.items() if v is not None).encode()


def forged_numbers(arrays: dict[str, np.ndarray], write: Callable[[dict[str, Any]], bytes]) -> Callable[..., bytes]:
    """A file of arrays of which one has another shape, kind or content, or is missing."""

    def forge(_content, rng):
        name = rng.choice(sorted(arrays))
        kept = {known: array for known, array in arrays.items() if known != name}
        return write(kept | ({name: rng.choice(ODD)} if rng.random() < 0.9 else {}))

    return forge


def _npz(arrays):
    with io.BytesIO() as content:
        np.savez(content, **arrays)
        return content.getvalue()


def _hdf5(arrays):
    with io.BytesIO() as content:
        with h5py.File(content, "w") as file:
            for name, array in arrays.items():
                file[name] = array.astype("S") if array.dtype.kind == "U" else array
        return content.getvalue()


def _until_started(folder):
    events = resume([folder])
    with contextlib.closing(events):
        next(event for event in events if isinstance(event, Started))


def _report(sweep):
    analysis = analyse(read_sweep(sweep), None)
    render_page(analysis, "title")
    to_latex(analysis)
    show_findings(analysis, Console(file=io.StringIO()))


def _flags_of(path, parse, words):
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        parse(words(path))


def kinds_of(place: Path) -> list[Kind]:
    """Every kind of file but those of a checkpoint, each with whole ones around it."""
    run = shutil.copytree(CLASSIC, place / "run")
    bare = shutil.copytree(
        CLASSIC, place / "bare", ignore=shutil.ignore_patterns("checkpoints", "progress.csv", "*.safetensors")
    )
    sweep = make_up(place / "sweep", ("sac", "bisac"), ("Hopper-v5",), 2, 4)
    one = sweep / "Hopper-v5/sac/seed0/progress.csv"
    search = place / "search"
    search.mkdir()
    space = {"critic_lr": Range(1e-4, 1e-2, log=True), "batch_size": Choice((16, 32))}
    enrol(Tuning("Pendulum-v1", Contestant("sac"), Settings(steps=100), space), search, ["bisac", "tune"])
    study = Study(search, space)
    for score in (1.0, 2.0, 3.0):
        study.complete(study.ask().number, score)
    (place / "flags").mkdir()
    toml = place / "flags" / "flags.toml"
    toml.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in FLAGS.items()))
    many = place / "flags" / "sweep.toml"
    many.write_text('env = ["Pendulum-v1"]\nalgo = ["sac", "bisac:epsilon=1"]\nseeds = "0:2"\nsteps = 100\nout = "o"\n')
    ones = np.ones(6, np.float32)
    arrays = {"observation": np.ones((6, 2)), "action": np.ones((6, 1)), "reward": ones,
              "next_observation": np.ones((6, 2)), "terminated": ones > 2}  # fmt: skip
    data = {name: place / name for name in ("data.npz", "data.hdf5", "demos.safetensors")}
    data["data.npz"].write_bytes(_npz(arrays))
    data["data.hdf5"].write_bytes(_hdf5(arrays))
    data["demos.safetensors"].write_bytes(from_arrays(**arrays).to_bytes())
    bisac.load(run).export(place / "exported.npz")
    exported = dict(np.load(place / "exported.npz", allow_pickle=False))
    exit_too = (bisac.BisacError, SystemExit)
    return [
        Kind("config.json of a run", run / "config.json", lambda: _until_started(run), forged_json),
        Kind("config.json of a run never saved", bare / "config.json", lambda: _until_started(bare), forged_json),
        Kind("progress.csv", one, lambda: read_evaluations(one.parent)),
        Kind("a sweep's record, sweep.json", sweep / "sweep.json", lambda: _report(sweep), forged_json),
        Kind("a search's record, tune.json", search / "tune.json", lambda: write_tuning_page(search), forged_json),
        Kind("a search's study, study.db", search / STUDY, lambda: write_tuning_page(search)),
        Kind("flags of a run in TOML", toml, lambda: _flags_of(toml, parse_train, lambda p: ["--config", str(p)]),
             forged_toml, exit_too),
        Kind("flags of a sweep in TOML", many, lambda: _flags_of(many, parse_sweep, from_file), mutated, exit_too),
        Kind("data set in .npz", data["data.npz"], lambda: read_dataset(str(data["data.npz"])),
             forged_numbers(arrays, _npz)),
        Kind("data set in .hdf5", data["data.hdf5"], lambda: read_dataset(str(data["data.hdf5"])),
             forged_numbers(arrays, _hdf5)),
        Kind("demonstrations that a run keeps", data["demos.safetensors"],
             lambda: Dataset.from_bytes(data["demos.safetensors"].read_bytes(), "demos"), forged_policy),
        Kind("policy exported for NumPy", place / "exported.npz",
             lambda: NumpyPolicy(place / "exported.npz").act(np.zeros(3)), forged_numbers(exported, _npz),
             (ValueError,)),
    ]  # fmt: skip
