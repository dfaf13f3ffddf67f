"""What `make bench-scaling` measured, as tables and as a chart."""

import statistics
from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator
from measuring import described, panels, prose

COLOURS = {"SAC": "#868e9b", "Bidirectional SAC": "#12406f", "Bidirectional SAC, VDN-a": "#7aa7d6"}


def markdown(results: dict[str, Any]) -> str:
    """Growth and memory as tables."""
    names = list(dict.fromkeys(name for sweep in results["sweeps"] for name in sweep["growth"]))
    rows = [f"| with | from | to | cost of | {' | '.join(f'growth: {name}' for name in names)} |"]
    rows.append("|---" * (4 + len(names)) + "|")
    for sweep in results["sweeps"]:
        low, *_, high = next(iter(sweep["milliseconds"].values()))
        grown = (f"{sweep['growth'][name]:.2f}" if name in sweep["growth"] else "" for name in names)
        rows.append(f"| {sweep['title']} | {low} | {high} | {sweep['cost']} | {' | '.join(grown)} |")
    batches = next(iter(results["memory"].values()))
    rows += ["", f"| MB beside its arguments, 38 dimensions, batch | {' | '.join(batches)} |"]
    rows.append("|---" * (len(batches) + 1) + "|")
    for name, by_batch in results["memory"].items():
        rows.append(f"| {name} | {' | '.join(f'{value:.0f}' for value in by_batch.values())} |")
    return "\n".join([*rows, "", prose(f"Measured {described(results['context'])}, pinned to one core.")])


def chart(results: dict[str, Any], path: Path) -> None:
    """A panel for each setting, both axes logarithmic."""
    with panels(path, [sweep["title"] for sweep in results["sweeps"]], 3, (10, 5.6)) as axes:
        for axis, sweep in zip(axes, results["sweeps"], strict=True):
            values = [float(value) for value in next(iter(sweep["milliseconds"].values()))]
            for name, by_value in sweep["milliseconds"].items():
                middle = list(medians(by_value).values())
                low, high = ([pick(times) for times in by_value.values()] for pick in (min, max))
                label = f"{name}: slope {sweep['growth'][name]:.2f}"
                axis.plot(values, middle, "o-", color=COLOURS[name], markersize=3.5, linewidth=1.4, label=label)
                axis.fill_between(values, low, high, color=COLOURS[name], alpha=0.18, linewidth=0)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(values, [f"{value:g}" for value in values])
            low, high = axis.get_ylim()
            ticks = [step * 10.0**power for power in range(-2, 5) for step in (1, 2, 5)]
            if sum(low <= tick <= high for tick in ticks) < 2:  # less than a decade: as on an even scale
                ticks = MaxNLocator(4).tick_values(low, high)
            axis.set_yticks(shown := [tick for tick in ticks if low <= tick <= high], [f"{tick:g}" for tick in shown])
            axis.minorticks_off()
            axis.grid(alpha=0.25, linewidth=0.5)
            axis.set_ylabel(f"ms per {sweep['cost']}")
            axis.legend(frameon=False, fontsize=7)


def medians(by_value: dict[str, list[float]]) -> dict[str, float]:
    """The medians over rounds."""
    return {value: statistics.median(times) for value, times in by_value.items()}
