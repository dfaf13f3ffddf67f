"""A run's demonstrations in its folder: the data is part of the run, and no other can take its place."""

from typing import Any

from bisac.collect.dataset import Dataset
from bisac.errors import BisacError
from bisac.runs.folder import RunFolder
from bisac.storage import read_file, write_atomic

DIGEST = "demos_sha256"
"""Under what name config.json has the hash of the demonstrations."""


def keep(demos: Dataset | None, folder: RunFolder) -> dict[str, Any]:
    """Write a run's demonstrations, if it has any, into its folder; return what config.json says of them."""
    if demos is None:
        return {}
    write_atomic(folder.demos, demos.to_bytes())
    return {DIGEST: demos.digest}


def kept(recorded: dict[str, Any], folder: RunFolder) -> Dataset | None:
    """Return the demonstrations that a run learns from, if any; refuse others than it began with."""
    if (digest := recorded.get(DIGEST)) is None:
        return None
    demos = Dataset.from_bytes(read_file(folder.demos), folder.demos)
    if demos.digest != digest:
        raise BisacError(f"{folder.demos} is not the data that the run began with: it is damaged or was replaced.")
    return demos
