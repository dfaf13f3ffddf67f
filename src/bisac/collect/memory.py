"""Whether a replay memory fits into the machine's, asked before it is allocated."""

from pathlib import Path
from typing import Any

import jax
import psutil

from bisac.algos import Algorithm, OffPolicy
from bisac.collect import replay as replay_memory
from bisac.errors import BisacError
from bisac.types import Spec, Transition


def check_memory(algo: Algorithm[Any], spec: Spec, runs: int = 1) -> None:
    """Refuse replay memories, one for each of the runs, that the machine cannot hold."""
    if not isinstance(algo, OffPolicy):
        return
    needed, free = runs * replay_memory.bytes_needed(algo.replay_size, Transition.like(spec)), available_memory()
    if needed > free:
        memories = "a replay memory" if runs == 1 else f"{runs} replay memories, one a seed,"
        takes, fewer = ("takes", "") if runs == 1 else ("take", ", or fewer seeds")
        raise BisacError(
            f"{memories} of {algo.replay_size:,} transitions of {spec.env_id} {takes} {needed / 2**30:.1f} GiB, and "
            f"{free / 2**30:.1f} GiB are free; choose a smaller --replay-size{fewer}."
        )


def available_memory() -> int:
    """Return how many bytes can still be allocated where JAX puts its arrays."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return min([psutil.virtual_memory().available, *_container_limit()])


def _container_limit() -> list[int]:
    """Return what a container's limit leaves, where there is one (Linux, cgroup v2)."""
    try:
        limit, used, stat = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current", "stat"))
        held = dict(line.split() for line in stat.splitlines())
        cached = int(held["active_file"]) + int(held["inactive_file"])  # of files, which give way
        return [int(limit) - int(used) + cached]
    except (OSError, ValueError, KeyError):  # no such files, or a limit of "max"
        return []
