"""The best trial as a file of flags: `bisac train --config best.toml` trains with its settings."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bisac.algos import make_algorithm
from bisac.storage import write_atomic
from bisac.tuning.record import Tuning, trial_name
from bisac.tuning.study import Trial, best

BEST = "best.toml"
"""The file's name in the search's folder."""


def write_best(tuning: Tuning, out: Path, trials: Sequence[Trial]) -> None:
    """Write the file anew, if any trial is complete and the file does not say the same already."""
    if (chosen := best(list(trials))) is not None:
        content = to_toml(tuning, chosen, sum(trial.state != "running" for trial in trials)).encode()
        path = out / BEST
        if not path.exists() or path.read_bytes() != content:
            write_atomic(path, content)


def to_toml(tuning: Tuning, trial: Trial, trials: int) -> str:
    """Return all that differs from plain defaults in a trial, each under its flag's name."""
    run = tuning.run(Path(), trial.number, trial.values)
    plain, settings = make_algorithm(tuning.contestant.algo, {}), run.settings
    own = {field.name: getattr(run.algorithm, field.name) for field in dataclasses.fields(plain)}
    values: dict[str, Any] = {
        "env": tuning.env,
        "algo": tuning.contestant.algo,
        "preset": "none",
        "steps": settings.steps,
        "num_envs": settings.num_envs,
        "backend": settings.backend,
        "env_arg": settings.env_arg,
    } | {name: value for name, value in own.items() if name in trial.values or value != getattr(plain, name)}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items() if value is not None]
    told = f"# The best of {trials} trials, {trial_name(trial.number)}: {trial.score:,.4g}, with one seed."
    return "\n".join([told, *lines]) + "\n"
