"""Weights & Biases and MLflow: what each is called with to have a run, and nothing of when."""

import importlib
import importlib.util
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit

from bisac.errors import BisacError
from bisac.runs.settings import TrackerName

PROJECT = "bisac"
"""The project or experiment that runs are in, unless the tracker's own settings name another."""
PATIENCE = 60.0
"""Seconds for Weights & Biases to send what is left when a run ends; `wandb sync` sends the rest."""
OF_MLFLOW = {
    "MLFLOW_LOGGING_LEVEL": "WARNING",  # else it tells how it makes its tables
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # its own seven take four minutes, in which nothing is learned
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Settings of MLflow's, where its user has none."""

Ending = Literal["finished", "stopped", "failed"]
"""How a run ended: at its end or where its user left it, by a signal, or by an exception."""


class Identity(NamedTuple):
    """What a tracker should know of a run before its first row."""

    name: str
    group: str | None
    """The name under which runs are put together."""
    env: str
    algo: str
    seed: int
    parameters: Mapping[str, Any]
    """All settings and hyperparameters, by name."""
    folder: Path
    """The run's folder."""


@runtime_checkable
class Tracker(Protocol):
    """A run as a tracker has it."""

    id: str
    """What the tracker knows the run by; whoever gives it again goes on with the same run."""
    where: str
    """Where to look at it: an address, or a folder."""
    delay: float
    """Seconds after which what it was told outlives a kill of this process."""

    def tell(self, step: int, values: Mapping[str, float]) -> None:
        """Add the metrics of an environment step, which is later than the last."""

    def end(self, ending: Ending) -> None:
        """Finish, once all that was told is written or sent."""


def check_installed(name: TrackerName) -> None:
    """Refuse a tracker whose package is not there."""
    if name != "none" and importlib.util.find_spec(name) is None:
        title = {"wandb": "Weights & Biases", "mlflow": "MLflow"}[name]
        raise BisacError(
            f"--track {name} needs {title}; in bisac's folder: pip install '.[{name}]'. --track none does without."
        )


def open_tracker(name: TrackerName, identity: Identity, known: str | None) -> Tracker:
    """Begin a run in a tracker, or go on with the one that it knows by this id."""
    return (WandbRun if name == "wandb" else MlflowRun)(identity, known)


class WandbRun:
    """A run in Weights & Biases, under its own settings (WANDB_MODE, WANDB_PROJECT and so on)."""

    delay = 30.0  # it writes every 15 s

    def __init__(self, identity: Identity, known: str | None):
        wandb: Any = importlib.import_module("wandb")
        own = wandb.setup().settings
        # Silent, for what it says would go through our display; and none of the runs that the process has besides.
        settings = wandb.Settings(silent=True, console="off", finish_timeout=own.finish_timeout or PATIENCE)
        self._run = wandb.init(
            project=own.project or PROJECT, dir=None if os.environ.get("WANDB_DIR") else str(identity.folder), id=known,
            resume="allow", reinit="create_new", name=identity.name, group=identity.group, allow_val_change=True,
            tags=[word[:64] for word in (identity.env, identity.algo, f"seed {identity.seed}")],
            config=dict(identity.parameters), settings=settings,
        )  # fmt: skip
        self.id = self._run.id
        self.where = (None if self._run.offline else self._run.url) or str(Path(self._run.dir).parent)

    def tell(self, step: int, values: Mapping[str, float]) -> None:
        """Add the metrics of an environment step, which is later than the last."""
        self._run.log(dict(values), step=step, commit=True)

    def end(self, ending: Ending) -> None:
        """Finish, once all that was told is written or sent."""
        self._run.finish(exit_code=0 if ending == "finished" else 1)


class MlflowRun:
    """A run in MLflow, in the store and the experiment that MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME name."""

    delay = 0.0

    def __init__(self, identity: Identity, known: str | None):
        self._client, experiment = _mlflow()
        self._entities: Any = importlib.import_module("mlflow.entities")
        if known is None:
            tags = {"env": identity.env, "algo": identity.algo, "seed": str(identity.seed)}
            tags |= {"group": identity.group} if identity.group else {}
            self.id = self._client.create_run(experiment, tags=tags, run_name=identity.name).info.run_id
            parameters = [self._entities.Param(name, str(v)[:6000]) for name, v in identity.parameters.items()]
            for first in range(0, len(parameters), 100):  # as many as it takes at a time
                self._client.log_batch(self.id, params=parameters[first : first + 100])
        else:
            self.id = known
            experiment = self._client.get_run(known).info.experiment_id
            self._client.update_run(known, "RUNNING")
        uri = _without_password(self._client.tracking_uri)
        web = uri.startswith("http")
        self.where = f"{uri}/#/experiments/{experiment}/runs/{self.id}" if web else f"{uri}, run {self.id}"

    def tell(self, step: int, values: Mapping[str, float]) -> None:
        """Add the metrics of an environment step, which is later than the last."""
        now = int(time.time() * 1000)
        # Letters of one's own alphabet, say, would have it refuse the whole row.
        named = {re.sub(r"[^a-zA-Z0-9_\-. :/]", "_", name): value for name, value in values.items()}
        metrics = [self._entities.Metric(name, value, now, step) for name, value in named.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def end(self, ending: Ending) -> None:
        """Finish, once all that was told is written or sent."""
        self._client.set_terminated(self.id, {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}[ending])


def prepare(name: TrackerName) -> None:
    """Let a tracker make what many processes cannot make at once: MLflow its tables and the experiment."""
    if name == "mlflow":
        with suppress(Exception):  # each run tells for itself what is wrong
            _mlflow()


def _mlflow() -> tuple[Any, str]:
    """Return MLflow's client, and the id of the experiment."""
    for name, value in OF_MLFLOW.items():
        os.environ.setdefault(name, value)
    # The client, and not mlflow.log_metrics: that has one run of the process, which may be the user's own.
    client: Any = importlib.import_module("mlflow").MlflowClient()
    if known := os.environ.get("MLFLOW_EXPERIMENT_ID"):
        return client, known
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
    if (found := client.get_experiment_by_name(name)) is None:
        return client, client.create_experiment(name)
    return client, found.experiment_id


def _without_password(uri: str) -> str:
    place = urlsplit(uri).netloc
    return uri.replace(place, place.rpartition("@")[2], 1) if "@" in place else uri
