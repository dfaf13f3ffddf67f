"""What a checkpoint costs a run whose replay memory is full: seconds stalled, bytes written, extra memory.

    python benchmarks/checkpoint.py [--env Hopper-v5] [--rows 1000000] [--every 10000]

The folder is on the disk of the working directory; a write beside it of the same bytes, synced, shows the disk's part.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import psutil

from bisac.algos import BidirectionalSAC
from bisac.collect.collector import Collector, Request, Snapshot
from bisac.collect.dispatch import open_collector
from bisac.collect.learning import current_policy
from bisac.collect.replay import Replay, bytes_needed
from bisac.runs.checkpoint.checkpoints import Checkpoints
from bisac.runs.checkpoint.contents import load
from bisac.runs.config import to_config
from bisac.runs.record import Record
from bisac.runs.settings import Settings
from bisac.storage import write_from


def main() -> None:
    """Fill a memory, then save as a run would, at each interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=8)
    arguments = parser.parse_args()

    algo = BidirectionalSAC(replay_size=arguments.rows).settled()
    collector = open_collector(arguments.env, (), Request(algo, (0,), 1, 10**9, eval_episodes=1))
    saved, record = filled(collector, arguments.rows), Record(progress="step\n")
    assert saved.learning.replay is not None
    config, policy = to_config(arguments.env, algo, Settings()), current_policy(algo, collector.spec, saved.learning)
    memory = bytes_needed(arguments.rows, jax.tree.map(lambda leaf: leaf[0], saved.learning.replay.storage))
    print(f"{arguments.env}, memory of {arguments.rows:,} rows: {memory / 1e6:.0f} MB")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        checkpoints = Checkpoints(Path(folder) / "checkpoints")
        for number in range(arguments.saves):
            before = set((Path(folder) / "checkpoints").rglob("*"))
            with PeakMemory() as peak:
                started = time.perf_counter()
                checkpoints.save(saved, record, config, policy)
                stalled = time.perf_counter() - started
            new = [path for path in (Path(folder) / "checkpoints").rglob("*") if path not in before and path.is_file()]
            written = sum(path.stat().st_size for path in new)
            started = time.perf_counter()
            write_from(Path(folder) / "plain", 0, os.urandom(1) * written)
            plain = time.perf_counter() - started
            whole = " (the whole memory: nothing to build on yet)" if number < 2 else ""
            print(
                f"save {number + 1}: stalled {stalled:6.3f} s, {written / 1e6:6.1f} MB in {len(new):3d} files, extra "
                f"memory {peak.extra / 1e6:6.1f} MB; one plain synced write of as much: {plain:.3f} s{whole}"
            )
            saved = saved._replace(step=saved.step + arguments.every)
        with PeakMemory() as peak:
            started = time.perf_counter()
            found = Checkpoints(Path(folder) / "checkpoints")
            problems = found.recover()
            assert not problems, problems
            verified = time.perf_counter() - started
            again, _ = load(found.kept[-1], collector)
            jax.block_until_ready(again.learning.replay)
            loaded = time.perf_counter() - started - verified
        assert again.learning.replay is not None
        assert saved.learning.replay is not None
        for left, right in zip(again.learning.replay.storage, saved.learning.replay.storage, strict=True):
            np.testing.assert_array_equal(left, right)
        print(
            f"verified both in {verified:.2f} s, loaded in {loaded:.2f} s, extra "
            f"memory {peak.extra / 1e6:.0f} MB (the loaded memory itself: {memory / 1e6:.0f} MB)"
        )


def filled(collector: Collector, rows: int) -> Snapshot:
    """Return a run with a memory full of numbers, as if that many steps had been taken."""
    fresh = collector.snapshot(collector.start(), 0)
    replay = fresh.learning.replay
    assert replay is not None
    keys = jax.random.split(jax.random.key(1), len(replay.storage))
    storage = type(replay.storage)(
        *(jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, replay.storage, strict=True))
    )
    full = Replay(storage, jax.numpy.zeros((), "int32"), jax.numpy.full((), rows, "int32"))
    jax.block_until_ready(storage)
    return fresh._replace(learning=eqx.tree_at(lambda t: t.replay, fresh.learning, full), step=rows)


class PeakMemory:
    """The most memory that the process held inside the block, over what it held before."""

    def __enter__(self) -> "PeakMemory":
        self._process, self.extra = psutil.Process(), 0
        self._before, self._over = self._process.memory_info().rss, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.001):
            self.extra = max(self.extra, self._process.memory_info().rss - self._before)


if __name__ == "__main__":
    main()
