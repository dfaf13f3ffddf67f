"""What a run folder knows of a policy in it: where exported files go, their metadata, and the model card."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np

from bisac.algos import algorithm_name
from bisac.collect.dispatch import judge
from bisac.errors import BisacError
from bisac.plotting.statistics import mean
from bisac.policies.card import CARD, Facts, Judged, is_card, written
from bisac.policies.export import FORMATS
from bisac.policies.export.describe import named_arrays
from bisac.policies.policy import Policy
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.storage import read_file, write_atomic


def folder_of(policy_file: Path) -> RunFolder | None:
    """Return the run folder that a policy file lies in, or whose checkpoint holds it; None for one on its own."""
    policy_file = _placed(policy_file)
    in_checkpoint = policy_file.parent.parent.name == "checkpoints"
    folder = RunFolder(policy_file.parents[2] if in_checkpoint else policy_file.parent)
    return folder if folder.config.exists() else None


def place_beside(policy_file: Path) -> Path:
    """Return where what is made of a policy goes, without an ending: beside it, but not into a checkpoint."""
    policy_file, folder = _placed(policy_file), folder_of(policy_file)
    if folder and folder.path != policy_file.parent:  # checkpoints are deleted as the run goes on
        return folder.path / policy_file.parent.name.replace("-", "_")
    return policy_file.with_suffix("")


def _placed(policy_file: Path) -> Path:
    """Return the path with the folders in it that tell whether it lies in a checkpoint, wherever one stands."""
    return policy_file if policy_file.parent.parent.name else policy_file.absolute()


def origin(policy_file: Path) -> dict[str, str]:
    """Return what the run folder adds to an exported file's metadata: the hash of config.json."""
    folder = folder_of(policy_file)
    return {"config_sha256": hashlib.sha256(read_file(folder.config)).hexdigest()} if folder else {}


def judged(policy: Policy, episodes: int, seed: int) -> Judged | None:
    """Evaluate a policy on held-out episodes, with the interval of its mean return; None for no episodes."""
    if not episodes:
        return None
    try:
        returns = judge(policy, policy.spec.env_id, policy.spec.env_args, episodes, seed).returns
    except BisacError as error:
        raise BisacError(f"{error} 'bisac card' with --episodes 0 writes the card without an evaluation.") from error
    estimate = mean(np.asarray(returns, float)[:, None])
    return Judged(estimate.value, float(returns.std()), estimate.interval, episodes, seed)


def write_card(policy: Policy, policy_file: Path, evaluation: Judged | None, licence: str, out: Path | None) -> Path:
    """Write the model card, README.md beside the policy unless told otherwise, and return its path."""
    path = card_path(policy_file, out)
    folder = folder_of(policy_file)
    rows = read_log(folder) if folder else []
    stems = (place_beside(policy_file).name, policy_file.stem)
    beside = {name: [path.with_name(f"{stem}{form.suffix}") for stem in stems] for name, form in FORMATS.items()}
    found = {name: next((file.name for file in files if file.exists()), None) for name, files in beside.items()}
    curve = path.with_name(folder.curve.name) if folder else path
    facts = Facts(
        name=policy_file.name,
        env_id=policy.spec.env_id,
        env_args=policy.spec.env_args,
        obs_dim=policy.spec.obs_dim,
        obs_parts=tuple(named_arrays(policy.spec)),
        action_dim=policy.spec.action_dim,
        algo=algorithm_name(policy.algo),
        settings=dataclasses.asdict(policy.algo),
        step=policy.step,
        judged=evaluation,
        curve=[(int(row["step"] or 0), row["eval_return"]) for row in rows if row["eval_return"] is not None],
        picture=curve.name if folder and curve.exists() else None,
        config=folder.read_config() if folder else {},
        exported={name: file for name, file in found.items() if file},
        licence=licence,
    )
    try:
        write_atomic(path, written(facts).encode())
    except OSError as error:
        raise BisacError(f"the card cannot be written to {path}: {error.strerror}.") from error
    return path


def card_path(policy_file: Path, out: Path | None) -> Path:
    """Return where a policy's card goes; refuse it where something else lies."""
    path = out or place_beside(policy_file).with_name(CARD)
    if path.is_dir():
        raise BisacError(f"{path} is a folder; say which file in it, such as {path / CARD}.")
    if path.exists() and not is_card(path):
        raise BisacError(f"{path} is not a model card of bisac's; move it away, or choose another file with --out.")
    if not path.parent.is_dir():
        raise BisacError(f"there is no folder {path.parent} to write {path.name} into; make it first.")
    return path
