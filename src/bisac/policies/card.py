"""A model card: what a policy is, how it was trained, what it is worth and how it is run, as model hubs read it.

It is text made of facts. Where they come from is not known here.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisac.policies.export import FORMATS
from bisac.storage import read_file

CARD = "README.md"
"""The name under which hubs look for a card."""

RUN_SETTINGS = {"seed": "seed", "steps": "steps", "environments": "num_envs"}
"""Settings of the run that a card tells, by its own words for them."""

MARK = "library_name: bisac"
"""The line by which a card of ours is known."""


@dataclass(frozen=True)
class Judged:
    """An evaluation over episodes that training never saw."""

    mean: float
    """The mean return."""
    std: float
    """The standard deviation over episodes."""
    interval: tuple[float, float] | None
    """The 95 % confidence interval of the mean; None for a single episode."""
    episodes: int
    """The number of episodes."""
    seed: int
    """Their seed."""


@dataclass(frozen=True)
class Facts:
    """All that a card tells; None and nothing where it is not known."""

    name: str
    """The policy file's name."""
    env_id: str
    env_args: tuple[str, ...]
    obs_dim: int
    obs_parts: tuple[str, ...]
    """The names of the arrays of a dictionary of observations; none for one array."""
    action_dim: int
    algo: str
    settings: Mapping[str, Any]
    """The hyperparameters."""
    step: int | None
    """The environment steps of training that led to the policy."""
    judged: Judged | None
    curve: Sequence[tuple[int, float]]
    """Steps and mean returns of the evaluations in training."""
    picture: str | None
    """The name of the learning curve's picture beside the card."""
    config: Mapping[str, Any]
    """The run's config.json."""
    exported: Mapping[str, str]
    """The names of exported files beside the card, by format."""
    licence: str
    """The licence's identifier."""


def is_card(path: Path) -> bool:
    """Return whether a file is a card of ours."""
    return path.is_file() and MARK.encode() in read_file(path)


def written(facts: Facts) -> str:
    """Return the card in Markdown, with the front matter that hubs read."""
    parts = [_front(facts), _what(facts), _worth(facts), _running(facts), _training(facts), _settings(facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front(facts: Facts) -> str:
    # JSON's strings are YAML's too, whatever an environment is called.
    task = json.dumps(facts.env_id)
    tags = ["reinforcement-learning", "continuous-control", "jax", facts.algo, facts.env_id]
    lines = [f"license: {json.dumps(facts.licence)}", MARK, "pipeline_tag: reinforcement-learning"]
    lines += ["tags:", *(f"- {json.dumps(tag)}" for tag in tags)]
    if facts.judged:
        value = json.dumps(f"{facts.judged.mean:.2f} +/- {facts.judged.std:.2f}")
        lines += [
            "model-index:",
            f"- name: {json.dumps(facts.algo)}",
            "  results:",
            "  - task: {type: reinforcement-learning, name: reinforcement-learning}",
            f"    dataset: {{name: {task}, type: {task}}}",
            f"    metrics: [{{type: mean_reward, name: mean_reward, value: {value}, verified: false}}]",
        ]
    return "\n".join(["---", *lines, "---"])


def _what(facts: Facts) -> str:
    made_with = f" with {', '.join(map(_prose, facts.env_args))}" if facts.env_args else ""
    after = f" after {facts.step:,} environment steps" if facts.step is not None else ""
    return (
        f"# {_prose(facts.algo)} on {_prose(facts.env_id)}\n\n"
        f"A policy for {_code(facts.env_id)}{made_with}, trained by {_code(facts.algo)}{after} with bisac. It takes "
        f"{facts.obs_dim} numbers of observation and answers with {facts.action_dim} of action, both in the "
        f"environment's own units.\n\nLicence: {_prose(facts.licence)}"
    )


def _worth(facts: Facts) -> str:
    lines = []
    if (judged := facts.judged) is not None:
        low_high = f" (95 % interval {judged.interval[0]:,.1f} to {judged.interval[1]:,.1f})" if judged.interval else ""
        lines += [
            "## Evaluation\n",
            f"Mean return **{judged.mean:,.1f}**{low_high}, standard deviation {judged.std:,.1f}, over "
            f"{judged.episodes} episodes held out from training (deterministic actions, seed {judged.seed}). "
            f"The interval is over episodes of this one policy, not over training seeds.",
        ]
    if facts.curve:
        picture = [f"\n![learning curve]({facts.picture})"] if facts.picture else []
        every = max(1, -(-len(facts.curve) // 10))
        shown = [*facts.curve[every - 1 : -1 : every], facts.curve[-1]]
        rows = [f"| {step:,} | {value:,.1f} |" for step, value in shown]
        lines += ["\n## Learning curve", *picture, "\n| step | mean return |", "|---|---|", *rows]
    return "\n".join(lines)


def _running(facts: Facts) -> str:
    names = facts.obs_parts or ("observation",)
    inputs = [re.sub(r"\W|^(?=\d)", "_", name) for name in names]  # a space may have any names
    parts = ", ".join(f"{json.dumps(name)}: {given}" for name, given in zip(names, inputs, strict=True))
    ways = {
        "onnx": lambda file: (
            f"import onnxruntime\n\nsession = onnxruntime.InferenceSession({json.dumps(file)})\n"
            f"action = session.run(None, {{{parts}}})[0]  # float32, batches of them"
        ),
        "stablehlo": lambda file: (
            "from pathlib import Path\n\nfrom jax import export\n\n"
            f"policy = export.deserialize(bytearray(Path({json.dumps(file)}).read_bytes()))\n"
            f"action = policy.call({', '.join(inputs)})  # float32, batches of them"
        ),
        "numpy": lambda file: (
            f"from {file.removesuffix(FORMATS['numpy'].suffix)} import act  # NumPy is all it needs\n\n"
            + (f"action = act({{{parts}}})" if facts.obs_parts else "action = act(observation)")
        ),
    }
    lines = ["## How to run it", "\n```python\nimport bisac\n", f"policy = bisac.load({json.dumps(facts.name)})"]
    lines += ["action, _ = policy.predict(observation)\n```"]
    for name, file in facts.exported.items():
        lines += [f"\n{_code(file)}:\n\n```python\n{ways[name](file)}\n```"]
    if facts.exported:
        lines += ["\nOne that was exported with `--stochastic` takes standard normal noise as its last input."]
    return "\n".join(lines)


def _training(facts: Facts) -> str:
    config = facts.config
    if not config:
        return "## Training\n\nOnly the policy file was at hand: how it was trained is not known."
    versions, run = config.get("versions", {}), config.get("run", {})
    command = shlex.join(map(str, config.get("command", [])))
    told = {
        "command": _code(command) if command else None,
        "version": _prose(", ".join(f"{name} {versions.get(name)}" for name in ("bisac", "jax", "gymnasium"))),
        **{word: _prose(run[name]) for word, name in RUN_SETTINGS.items() if run.get(name) is not None},
        "machine": _prose(f"{config.get('platform')}, {config.get('cores')} cores"),
    }
    return "\n".join(["## Training\n", *_table(told)])


def _settings(facts: Facts) -> str:
    return "\n".join(["## Settings\n", *_table({name: _code(value) for name, value in facts.settings.items()})])


def _table(rows: Mapping[str, Any]) -> list[str]:
    cells = [(name, str(value).replace("|", "\\|")) for name, value in rows.items() if value is not None]
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in cells)]


def _prose(text: Any) -> str:
    """Return text that Markdown shows to the letter: what a stranger's file holds is no markup."""
    return re.sub(r"([\\`*_\[\]<>#~$&])", r"\\\1", " ".join(str(text).split()))


def _code(text: Any) -> str:
    """Return text as code within a line, whatever is in it."""
    words = " ".join(str(text).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    return f"{fence} {words} {fence}" if "`" in words else f"{fence}{words}{fence}"
