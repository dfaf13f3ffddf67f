"""Side by side results as tables and as a chart."""

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from measuring import described, panels, prose

Case = dict[str, Any]
"""One measure of performance.json: what, env, cores, unit, and each contestant's readings by round."""

SAC, NORMALISED = "bisac: SAC, classic", "bisac: SAC"
BISAC, VDN_A = "bisac: Bidirectional SAC", "bisac: Bidirectional SAC, VDN-a"
DEVICE = "bisac: SAC, on the device"


@dataclass(frozen=True)
class Section:
    """A table: what it tells, and the ratios that matter in it."""

    title: str
    whats: tuple[str, ...]
    ratios: tuple[tuple[str, str], ...] = ()


SECTIONS = (
    Section(
        "Environment steps a second, end to end (one environment, one update a step)",
        ("steps",),
        (
            (SAC, "SB3: SAC"),
            (SAC, "SBX: SAC"),
            (SAC, "rejax: SAC"),
            (DEVICE, "rejax: SAC"),
            (BISAC, "SBX: SAC"),
            (VDN_A, "SBX: SAC"),
        ),
    ),
    Section(
        "Bare updates a second",
        ("updates",),
        (
            (SAC, "limit (XLA)"),
            (SAC, "limit (BLAS)"),
            (SAC, "SBX: SAC"),
            (SAC, NORMALISED),
            (NORMALISED, BISAC),
            (SAC, VDN_A),
        ),
    ),
    Section(
        "Environment steps a second of PPO (eight environments)",
        ("ppo",),
        (("bisac: PPO", "SB3: PPO"), ("bisac: PPO", "SBX: PPO")),
    ),
    Section(
        "Start of the command to the first training step, and peak memory", ("first start", "second start", "memory")
    ),
)


def ratios(case: Case, above: str, below: str) -> list[float]:
    """Of each round; none where one of the two took no part."""
    readings = case["readings"]
    if above not in readings or below not in readings:
        return []
    return [a / b for a, b in zip(readings[above], readings[below], strict=True)]


def spread(values: list[float], digits: int | None = None) -> str:
    """The median, and the range it lies in."""
    if not values:
        return ""
    digits = _digits(statistics.median(values)) if digits is None else digits
    middle = f"{statistics.median(values):,.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def markdown(cases: list[Case]) -> str:
    """All tables, with the versions under them."""
    parts = []
    for section in SECTIONS:
        if columns := [case for what in section.whats for case in cases if case["what"] == what]:
            parts.append(f"### {section.title}\n\n{_table(section, columns)}")
    contexts = dict.fromkeys(prose(f"Measured {described(case['context'])}. {_effort(case)}") for case in cases)
    return "\n\n".join([*parts, *contexts])


def _table(section: Section, columns: list[Case]) -> str:
    labels = dict.fromkeys(label for case in columns for label in case["readings"])
    rows = [["", *map(_heading, columns)], ["---"] * (len(columns) + 1)]
    for label in labels:
        rows.append([label, *(spread(case["readings"].get(label, [])) for case in columns)])
    for above, below in section.ratios:
        if any(values := [ratios(case, above, below) for case in columns]):
            rows.append([f"**{above} / {below}**", *(f"**{spread(v, 2)}**" if v else "" for v in values)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _heading(case: Case) -> str:
    name = "" if case["what"] in ("steps", "updates", "ppo") else f"{case['what']}, {case['unit']}: "
    return f"{name}{case['env']}, {_cores(case)}"


def _cores(case: Case) -> str:
    return "1 core" if case["cores"] == 1 else f"{case['cores']} cores"


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1


def _effort(case: Case) -> str:
    return f"Rounds: {case['rounds']}, of {case['seconds']:g} s a turn (bare updates: half of it; starts: three)."


COLOURS = {"SB3": "#b9bec7", "SBX": "#868e9b", "rejax": "#5d6470", "limit": "#ffffff", "bisac": "#3a6ea8"}
PALE = 0.5
"""How much of its colour the second case of a panel has."""
OURS = {BISAC: "#12406f", VDN_A: "#7aa7d6"}
PANELS = (
    ("SAC on Hopper-v5, env-steps/s", ("steps",), "Hopper-v5"),
    ("SAC on Humanoid-v5, env-steps/s", ("steps",), "Humanoid-v5"),
    ("Bare updates at Hopper's sizes, updates/s", ("updates",), "Hopper-v5"),
    ("Bare updates at Humanoid's sizes, updates/s", ("updates",), "Humanoid-v5"),
    ("SAC on Pendulum-v1, env-steps/s", ("steps",), "Pendulum-v1"),
    ("PPO on eight Hopper-v5, env-steps/s", ("ppo",), "Hopper-v5"),
    ("Start to first training step, s", ("first start", "second start"), "Hopper-v5"),
    ("Peak memory with a million transitions, MB", ("memory",), "Hopper-v5"),
)


def chart(cases: list[Case], path: Path) -> None:
    """Bars of the medians, their whiskers the range over rounds."""
    with panels(path, [title for title, _, _ in PANELS], 2, (9, 9.6)) as axes:
        for axis, (_, whats, env) in zip(axes, PANELS, strict=True):
            shown = [case for case in cases if case["what"] in whats and case["env"] == env]
            _bars(axis, shown) if shown else axis.set_axis_off()
        shades = (("one core; first start", 1.0), ("two cores; second start", PALE))
        keys = [Patch(facecolor="#444444", alpha=alpha, label=label) for label, alpha in shades]
        axes[0].figure.legend(handles=keys, loc="outside lower center", ncols=2, frameon=False)


def _bars(axis: Axes, shown: list[Case]) -> None:
    """A bar for each contestant and case; the second case's are paler."""
    labels = list(dict.fromkeys(label for case in shown for label in case["readings"]))
    height = 0.8 / len(shown)
    most = max(max(values) for case in shown for values in case["readings"].values())
    for number, case in enumerate(shown):
        for row, label in enumerate(labels):
            if not (values := case["readings"].get(label)):
                continue
            middle, place = statistics.median(values), row + (number - (len(shown) - 1) / 2) * height
            colour = OURS.get(label, COLOURS[label.partition(":")[0].partition(" ")[0]])
            look = {"hatch": "////", "edgecolor": "#868e9b", "linewidth": 0.8} if colour == "#ffffff" else {}
            axis.barh(place, middle, 0.92 * height, color=colour, alpha=PALE if number else 1.0, **look)
            if len(values) > 1:
                axis.plot([min(values), max(values)], [place, place], color="#222222", linewidth=0.8)
            text = f"{middle:,.{_digits(middle)}f}"
            axis.text(max(values) + 0.015 * most, place, text, va="center", fontsize=6.5, color="#333333")
    axis.set_yticks(range(len(labels)), [label.replace(", VDN-a", ",\nVDN-a") for label in labels])
    axis.invert_yaxis()
    axis.set_xlim(0, 1.14 * most)
    axis.tick_params(axis="y", length=0)
    axis.xaxis.set_major_locator(MaxNLocator(4))
