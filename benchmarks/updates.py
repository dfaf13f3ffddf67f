"""How fast an update is: our SAC and Bidirectional SAC, the naive projection, and the machine's matmul limit.

    python benchmarks/updates.py [--cores 1] [--rounds 9]

Everything is measured in one run, interleaved, the order rotated at each round; what counts are the ratios. The limit
is the time that SAC's floating-point operations take as bare matrix products of 256 x 256 (batch by width).
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

BATCH, WIDTH = 256, 256
TASKS = {"Hopper": (11, 3), "Humanoid": (348, 17)}


def sac_flops(obs: int, act: int) -> float:
    """Floating-point operations of the matrix products in one SAC update."""
    actor = [(obs, WIDTH), (WIDTH, WIDTH), (WIDTH, 2 * act)]
    critic = [(obs + act, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]

    def pass_over(layers: list[tuple[int, int]], nets: int) -> float:
        return sum(2.0 * nets * BATCH * n * m for n, m in layers)

    target = pass_over(actor, 1) + pass_over(critic, 2)
    critic_step = 2 * pass_over(critic, 2) + pass_over(critic[1:], 2)  # forward, to weights, to hidden layers
    actor_step = 2 * pass_over(actor, 1) + pass_over(actor[1:], 1) + 2 * pass_over(critic, 2)  # and through the critics
    return target + critic_step + actor_step


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=1, help="cores to pin to")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds")
    options = parser.parse_args()
    os.sched_setaffinity(0, set(range(options.cores)))  # before JAX starts its threads

    import jax
    import jax.numpy as jnp

    from bisac.algos import SAC, BidirectionalSAC
    from bisac.types import Spec, Transition

    def update_runner(algo: Any, obs: int, act: int) -> tuple[Callable[[], None], float]:
        key = jax.random.key(0)
        spec = Spec("benchmark", obs, (-1.0,) * act, (1.0,) * act)
        shapes = [(BATCH, obs), (BATCH, act), (BATCH,), (BATCH,), (BATCH, obs)]
        batch = Transition(*(jnp.tanh(jax.random.normal(key, shape)) for shape in shapes))
        step = jax.jit(algo.update, donate_argnums=0).lower(algo.init(spec, key), batch, key).compile()
        state = [algo.init(spec, key)]

        def run() -> None:
            state[0], metrics = step(state[0], batch, key)
            jax.block_until_ready(metrics)

        return run, float(step.cost_analysis()["flops"])

    def limit_runner(obs: int, act: int) -> tuple[Callable[[], None], float]:
        """As many products of the hidden layers' shape as SAC's update has operations, with nothing between them."""
        x = jax.random.normal(jax.random.key(0), (BATCH, WIDTH)) / WIDTH**0.5
        count = round(sac_flops(obs, act) / (2.0 * BATCH * WIDTH * WIDTH))
        multiply = jax.jit(lambda x: jax.lax.fori_loop(0, count, lambda _, y: y @ x, x))

        def run() -> None:
            jax.block_until_ready(multiply(x))

        return run, sac_flops(obs, act)

    def measure(run: Callable[[], None]) -> float:
        start, count = time.perf_counter(), 0
        while time.perf_counter() - start < 0.3 or count < 3:
            run()
            count += 1
        return (time.perf_counter() - start) / count

    for task, (obs, act) in TASKS.items():
        runners = {
            "matmul limit of SAC": limit_runner(obs, act),
            "SAC": update_runner(SAC(), obs, act),
            "SAC, VDN-a critic": update_runner(SAC(critic="vdn-a"), obs, act),
            "Bidirectional SAC": update_runner(BidirectionalSAC(), obs, act),
            "  by correction": update_runner(BidirectionalSAC(refinement="correction"), obs, act),
            "  at every node": update_runner(BidirectionalSAC(chebyshev_points=0), obs, act),
        }
        names = list(runners)
        times: dict[str, list[float]] = {name: [] for name in names}
        for run, _ in runners.values():
            run()
        for round_number in range(options.rounds):
            shift = round_number % len(names)
            for name in names[shift:] + names[:shift]:
                times[name].append(measure(runners[name][0]))
        print(
            f"\n{task} sizes ({obs} observations, {act} actions), batch {BATCH}, width {WIDTH}, {options.cores} core(s)"
        )
        print(f"{'':22} {'ms':>8} {'updates/s':>10} {'times SAC':>10}   (range over rounds)   {'MFLOP':>6}")
        for name in names:
            ratios = [a / b for a, b in zip(times[name], times["SAC"], strict=True)]
            median = statistics.median(times[name])
            flops = f"{runners[name][1] / 1e6:.0f}"
            ratio = f"{statistics.median(ratios):10.2f}   {f'({min(ratios):.2f} to {max(ratios):.2f})':21}"
            print(f"{name:22} {1e3 * median:8.2f} {1 / median:10.1f} {ratio} {flops:>6}")


if __name__ == "__main__":
    main()
