"""How long and how to train, and how a run's settings are recorded and compared."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from tyro.conf import UseAppendAction

from bisac.algos import Algorithm, algorithm_from_json, algorithm_name
from bisac.validate import require
from bisac.envs.host.backends import BackendName
from bisac.errors import BisacError
from bisac.runs.folder import provenance

MAY_CHANGE = ("steps", "checkpoint_every", "out", "overwrite")
"""Settings that a resumed run may have other than before."""


@dataclass(frozen=True)
class TrainSettings:
    """How long and how to train, whatever the algorithm."""

    steps: int = 1_000_000
    """Environment steps to train for, summed over the environments."""
    seed: int = 0
    """Seed of everything random; the same seed repeats a run bit for bit on the same machine."""
    num_envs: int | None = None
    """Environments stepped together; by default 1, and 8 with normalised critics and with fresh rollouts (PPO, A2C)."""
    eval_every: int | None = None
    """Steps between evaluations; by default a hundredth of the steps, and at least 1000."""
    eval_episodes: int = 10
    """Episodes in each evaluation, with the deterministic policy."""
    checkpoint_every: int = 10_000
    """Steps between checkpoints, from which `bisac resume` goes on; 0 saves none."""
    out: Path | None = None
    """The run folder; by default runs/ENV/ALGO/seedK, or seedK-2 and so on where that is taken."""
    overwrite: bool = False
    """Replace a run that the folder holds already."""
    env_arg: UseAppendAction[tuple[str, ...]] = ()
    """An argument of the environment as key=value, such as max_episode_steps=200; may be repeated."""
    backend: BackendName = "sync"
    """Where to step the environments: one by one, in processes of their own (slow ones), or in EnvPool."""

    def __post_init__(self):
        require(self, "at least 1", lambda v: v >= 1, "steps", "eval_episodes")
        require(self, "at least 1", lambda v: v is None or v >= 1, "num_envs", "eval_every")
        require(self, "0 or positive", lambda v: v >= 0, "checkpoint_every")
        require(self, f"one of {', '.join(get_args(BackendName))}", lambda v: v in get_args(BackendName), "backend")
        require(self, "from 0 to 4294967295", lambda v: 0 <= v < 2**32, "seed")

    def settled(self, algo: Algorithm[Any]) -> "TrainSettings":
        """With numbers in the place of what depends on others, as a run records it."""
        eval_every = self.eval_every or max(1000, self.steps // 100)
        return dataclasses.replace(self, num_envs=self.num_envs or algo.usual_envs(), eval_every=eval_every)

    @property
    def width(self) -> int:
        """Environments stepped together, once settled."""
        return self.num_envs or 1

    @property
    def evaluation_interval(self) -> int:
        """Steps between evaluations, once settled."""
        return self.eval_every or 1000


def to_config(env_id: str, algo: Algorithm[Any], settings: TrainSettings) -> dict[str, Any]:
    """All that a run is made of, as config.json and the checkpoints hold it."""
    run = dataclasses.asdict(settings) | {"out": os.fspath(settings.out) if settings.out else None}
    return {
        "format": 1,
        "env": env_id,
        "algo": algorithm_name(algo),
        "hyperparameters": dataclasses.asdict(algo),
        "run": run,
    }


def from_config(config: dict[str, Any]) -> tuple[Algorithm[Any], TrainSettings]:
    """The algorithm and the settings that a run was started with."""
    try:
        run = dict(config["run"])
        out = run.pop("out", None)
        env_arg = tuple(run.pop("env_arg", ()))
        settings = TrainSettings(**run, out=Path(out) if out else None, env_arg=env_arg)
        return algorithm_from_json(config["algo"], config["hyperparameters"]), settings
    except (AttributeError, KeyError, TypeError) as error:
        raise BisacError(f"config.json is not one of this bisac's: {error!r}.") from error


def check_unchanged(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on under another config than the one that was saved: it would no longer be one run."""
    old, new = _flat(then), _flat(now)
    for name in {**new, **old}:  # in their order: a setting comes before those that depend on it
        if name not in MAY_CHANGE and old.get(name) != new.get(name):
            raise BisacError(
                f"{name} is {new.get(name)!r} in config.json and was {old.get(name)!r} when the run was saved; it "
                f"cannot change within a run. Restore it, or start another run."
            )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that make a run what it is, by name, in JSON's types; those that an older file lacks as it means."""
    try:
        same = json.loads(json.dumps(to_config(config["env"], *from_config(config))))
        return {"env": same["env"], "algo": same["algo"], **same["hyperparameters"], **same["run"]}
    except (KeyError, TypeError) as error:
        raise BisacError(f"the checkpoint's config is not one of this bisac's: {error!r}.") from error


def differences(recorded: dict[str, Any]) -> list[str]:
    """What differs from the machine on which the run was saved, and may cost the last bits."""
    then, now = (
        {"cores": source.get("cores"), "platform": source.get("platform"), **source.get("versions", {})}
        for source in (recorded, provenance())
    )
    changed = [f"{name} {then[name]} then, {now[name]} now" for name in now if name in then and then[name] != now[name]]
    if not changed:
        return []
    return [f"not the same machine or versions ({'; '.join(changed)}): the last bits of what follows may differ."]
