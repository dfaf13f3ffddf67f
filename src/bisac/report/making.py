"""The page's last section: how the sweep was made, so that a reader can make it again."""

import json
from html import escape
from itertools import product
from typing import Any

from bisac.presets import listed
from bisac.report.analysis import Analysis
from bisac.report.words import plain
from bisac.sweeps.record import command_line


def making(analysis: Analysis) -> str:
    """Return the commands, settings, presets, versions and machine of the sweep, as HTML."""
    record = analysis.data.record
    made = record.provenance
    commands = "\n".join(command_line(command) for command in record.commands)
    given = {name: value for name, value in record.settings.items() if value not in (None, [])}
    own = "; ".join(
        f"{analysis.looks[c.name].label}: --algo {c.algo}"
        + "".join(f" {name}={plain(value)}" for name, value in c.settings)
        for c in analysis.data.contestants
    )
    rows = {
        "seeds": ", ".join(map(str, sorted({run.seed for run in analysis.data.runs}))),
        "every run": _listed(given),
        "hyperparameters given for all": _listed(record.hyperparameters)
        or "none: each algorithm's own defaults, but for the presets",
        "contestants": own,
        "presets": _presets(analysis) or "none",
        "versions": ", ".join(f"{name} {version}" for name, version in made.get("versions", {}).items() if version),
        "machine": ", ".join(str(made[name]) for name in ("cpu", "platform") if made.get(name)),
        "cores of the sweep, of a run": f"{made.get('cores')}, {plain(_distinct(analysis, 'cores'))}",
    }
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows.items())
    return f"<pre>{escape(commands)}</pre><dl>{terms}</dl>{_mixed(analysis)}"


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {plain(value)}" for name, value in settings.items())


def _presets(analysis: Analysis) -> str:
    """List what the runs have from their tasks' presets; a gamma is the task's, the same for all contestants."""
    found: dict[tuple[str, str], list[str]] = {}
    data, shown = analysis.data, analysis.looks
    for contestant, env in product(data.contestants, data.envs):
        configs = (run.evaluations.config for run in data.runs if run.is_of(env, contestant.name))
        config, begin = next(filter(None, configs), None), contestant.start(env)
        if config and begin.hyperparameters:
            used = {name: config["hyperparameters"][name] for name in begin.hyperparameters}
            used = listed(used | ({"num_envs": config["run"]["num_envs"]} if begin.num_envs else {}))
            found.setdefault((env, used), []).append(shown[contestant.name].label)
    return "; ".join(
        f"{env}: {used}" + ("" if len(names) == len(shown) else f" ({', '.join(names)})")
        for (env, used), names in found.items()
    )


def _mixed(analysis: Analysis) -> str:
    """Warn where runs were made by different versions or on different platforms."""
    texts = [
        f"The runs differ in their {name}: {escape(plain(values))}."
        for name in ("versions", "platform")
        if len(values := _distinct(analysis, name)) > 1
    ]
    return "".join(f'<div class="warning"><p>{text}</p></div>' for text in texts)


def _distinct(analysis: Analysis, name: str) -> list[str]:
    configs = [run.evaluations.config for run in analysis.data.runs]
    return sorted({json.dumps(config[name], sort_keys=True) for config in configs if name in config})
