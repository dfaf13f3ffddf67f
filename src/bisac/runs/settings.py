"""Settings of a run: how long, from which seed, in how many environments. Hyperparameters are the algorithm's."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import UseAppendAction, arg

from bisac.algos import Algorithm
from bisac.collect.evaluate import MOST_EPISODES
from bisac.envs.host.backends import BackendName
from bisac.errors import BisacError
from bisac.validate import require, require_types, take_whole_numbers

TrackerName = Literal["none", "wandb", "mlflow"]
"""Who else is told what the log tells."""
OF_WATCHING = ("track", "track_group")
"""Settings that change nothing of what a run learns."""


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """How each run is trained."""

    num_envs: int | None = None
    """Environments stepped together; by default 1, and 8 with normalised critics and with fresh rollouts (PPO, A2C)."""
    eval_every: int | None = None
    """Steps between evaluations; by default a hundredth of the steps, and at least 1000."""
    eval_episodes: int = 10
    """Episodes in each evaluation, with the deterministic policy."""
    checkpoint_every: int = 10_000
    """Steps between checkpoints, from which a run that was interrupted goes on; 0 saves none."""
    env_arg: UseAppendAction[tuple[str, ...]] = ()
    """An argument of the environment as key=value, such as max_episode_steps=200; may be repeated."""
    backend: BackendName = "sync"
    """Where to step the environments: one by one, in processes of their own (slow ones), or in EnvPool."""
    track: TrackerName = "none"
    """Tell Weights & Biases or MLflow, too, what the log tells."""
    track_group: str | None = None
    """The name under which the tracker puts runs together; by default that of the sweep's folder, if there is one."""


@dataclass(frozen=True, kw_only=True)
class Settings(SharedSettings):
    """How long and how to train, whatever the algorithm."""

    steps: int = 1_000_000
    """Environment steps to train for, summed over the environments."""
    seed: int = 0
    """Seed of everything random; the same seed repeats a run bit for bit on the same machine."""
    out: Path | None = None
    """The run folder; by default runs/ENV/ALGO/seedK, or seedK-2 and so on where that is taken."""
    overwrite: bool = False
    """Replace a run that the folder holds already."""
    init: Annotated[Path | None, arg(metavar="RUN")] = None
    """Another run to start from, of the same algorithm and networks: its run folder, or a checkpoint's."""
    with_replay: bool = False
    """Take the replay memory of --init too, and not its networks alone."""
    demos: Annotated[str | None, arg(metavar="DATA")] = None
    """Transitions to learn from beside the run's own: FILE.npz, FILE.hdf5, or the id of a local Minari data set."""

    def __post_init__(self):
        take_whole_numbers(self, "steps", "seed", "num_envs", "eval_every", "eval_episodes", "checkpoint_every")
        require_types(self)
        require(self, "at least 1", lambda v: v >= 1, "steps")
        require(self, f"from 1 to {MOST_EPISODES:,}", lambda v: 1 <= v <= MOST_EPISODES, "eval_episodes")
        require(self, "at least 1", lambda v: v is None or v >= 1, "num_envs", "eval_every")
        require(self, "0 or positive", lambda v: v >= 0, "checkpoint_every")
        require(self, "from 0 to 4294967295", lambda v: 0 <= v < 2**32, "seed")
        if self.with_replay and self.init is None:
            raise BisacError("--with-replay takes the memory of another run: name it by --init.")

    def settled(self, algo: Algorithm[Any]) -> "Settings":
        """Return the same settings with numbers in the place of what depends on others, as a run records them."""
        eval_every = self.eval_every or max(1000, self.steps // 100)
        return dataclasses.replace(self, num_envs=self.num_envs or algo.usual_envs(), eval_every=eval_every)

    @property
    def evaluation_interval(self) -> int:
        """Steps between evaluations; the settings must be settled."""
        return self.eval_every or 1000

    @property
    def shared(self) -> dict[str, Any]:
        """The settings that runs must have in common to be compared, by name."""
        fields = ("steps", *(field.name for field in dataclasses.fields(SharedSettings)))
        return {name: getattr(self, name) for name in fields if name not in OF_WATCHING}
