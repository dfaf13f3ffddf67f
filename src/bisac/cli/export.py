"""The commands `bisac export`, which writes a policy for use without bisac, and `bisac card`, which describes it."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape

from bisac.api import load, policy_file
from bisac.cli.arguments import parse
from bisac.policies.export import format_of
from bisac.policies.policy import Policy
from bisac.runs.describing import card_path, judged, origin, place_beside, write_card
from bisac.validate import require

Run = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]


@dataclasses.dataclass(frozen=True)
class ExportCommand:
    """Write a trained policy for use without bisac."""

    run: Run
    """A run folder, a checkpoint's folder or a policy file."""
    format: Annotated[str | None, tyro.conf.arg(metavar="onnx|stablehlo|numpy")] = None
    """The form; without it the ending of --out tells."""
    out: Path | None = None
    """The file; beside the policy unless told otherwise."""
    stochastic: bool = False
    """Take noise as a further input, in place of answering with the deterministic action."""
    opset: int = 18
    """The version of ONNX's operators."""
    platforms: str = "cpu,cuda,tpu"
    """The platforms that StableHLO is for, with commas between them."""
    card: bool = False
    """Write the model card too, as 'bisac card' does."""


@dataclasses.dataclass(frozen=True)
class CardCommand:
    """Write a model card beside a trained policy: what it is, what it is worth, how it is run."""

    run: Run
    """A run folder, a checkpoint's folder or a policy file."""
    episodes: int = 20
    """Held-out episodes to evaluate it on; 0 for no evaluation."""
    seed: int = 0
    """Seed of the episodes."""
    license: str = "unknown"
    """The licence that you give the policy, by its identifier on hubs, such as mit."""
    out: Path | None = None
    """The file; README.md beside the policy unless told otherwise."""


def run_export(arguments: list[str], console: Console) -> int:
    """Run `bisac export`, and return the exit code."""
    command = parse(ExportCommand, "export", arguments)
    source = policy_file(command.run)
    policy = load(source)
    place, suffix = place_beside(source), format_of(command.format, command.out).suffix
    out = command.out or place.with_name(place.name + suffix)  # a name may have dots of its own
    if command.card:
        card_path(source, None)
    files = policy.export(
        out,
        command.format,
        stochastic=command.stochastic,
        opset=command.opset,
        platforms=[name.strip() for name in command.platforms.split(",")],
        metadata=origin(source),
    )
    console.print(f"written: {escape(', '.join(map(str, files)))}", highlight=False, soft_wrap=True)
    return _card(policy, source, CardCommand(command.run), console) if command.card else 0


def run_card(arguments: list[str], console: Console) -> int:
    """Run `bisac card`, and return the exit code."""
    command = parse(CardCommand, "card", arguments)
    require(command, "at least 0", lambda v: v >= 0, "episodes")
    require(command, "from 0 to 4294967295", lambda v: 0 <= v < 2**32, "seed")
    source = policy_file(command.run)
    return _card(load(source), source, command, console)


def _card(policy: Policy, source: Path, command: CardCommand, console: Console) -> int:
    card_path(source, command.out)
    with console.status(f"evaluating {command.episodes} episodes of {escape(policy.spec.env_id)}"):
        evaluation = judged(policy, command.episodes, command.seed)
    path = write_card(policy, source, evaluation, command.license, command.out)
    console.print(f"card: {escape(str(path))}", highlight=False, soft_wrap=True)
    return 0
