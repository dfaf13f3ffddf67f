"""Stop when the task is learned, and log a column of one's own.

python examples/early_stop.py
"""

import own_environment  # noqa: F401  # registers Park-v0

import bisac


def main() -> None:
    """Train until nine of ten evaluation episodes succeed; the run is saved and can go on."""
    with bisac.start("Park-v0", algo="sac", steps=20_000, eval_every=1_000, out="runs/early") as run:
        for event in run:
            if isinstance(event, bisac.EpisodeEnded):
                run.log({"park/last_return": event.episode_return})
            if isinstance(event, bisac.Evaluated) and event.success_rate >= 0.9:
                break
    print(f"stopped at step {run.step}; go on with: bisac.resume({str(run.folder)!r})")


if __name__ == "__main__":
    main()
