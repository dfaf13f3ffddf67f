"""What the training loop costs over a bare update, on Hopper-v5 with one environment and one update a step.

    python benchmarks/end_to_end.py [--cores 1] [--rounds 9]

The loop's steps and bare updates are timed in turn, 40 at a time; the ratio is of each pair.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=1, help="cores to pin to")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds")
    options = parser.parse_args()
    os.sched_setaffinity(0, set(range(options.cores)))  # before JAX starts its threads

    import jax

    from bisac.algos import REGISTRY
    from bisac.envs.host import HostEnvs
    from bisac.envs.spec import Task
    from bisac.replay import sample
    from bisac.training.loop import off_policy_steps, start

    def milliseconds(run: Callable[[], object], count: int = 40) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - begin) / count * 1e3

    for name in ("sac", "bisac"):
        algo = REGISTRY[name](learning_starts=300)
        run = start(algo, HostEnvs(Task("Hopper-v5"), 1, seed=0), seed=0)
        steps = off_policy_steps(run, 10**9)
        key = jax.random.key(0)
        update = jax.jit(algo.update, donate_argnums=0)
        state = [algo.init(run.envs.spec, key)]
        for _ in range(400):  # past the warm-up, so that every step updates
            next(steps)
        batch = sample(run.training.replay, key, algo.batch_size)

        def bare(update=update, state=state, batch=batch, key=key) -> None:
            state[0], metrics = update(state[0], batch, key)
            jax.block_until_ready(metrics)

        bare()
        pairs = [(milliseconds(steps.__next__), milliseconds(bare)) for _ in range(options.rounds)]
        loop, alone = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratios = sorted(a / b for a, b in pairs)
        print(
            f"{name:6} {1e3 / loop:6.1f} steps/s; a step {loop:.2f} ms, a bare update {alone:.2f} ms: "
            f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
