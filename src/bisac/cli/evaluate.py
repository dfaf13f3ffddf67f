"""The command `bisac eval`: judges a policy on episodes that its training never saw, and films it."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape

from bisac.api import load, policy_file
from bisac.cli.arguments import parse
from bisac.collect.collector import Evaluation
from bisac.collect.dispatch import film, judge
from bisac.display.terminal import open_console
from bisac.runs.describing import place_beside
from bisac.runs.video import write_video
from bisac.validate import require


@dataclasses.dataclass(frozen=True)
class EvalCommand:
    """Evaluate a trained policy on episodes that its training never saw."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder, a checkpoint's folder or a policy file."""
    episodes: int = 20
    """Episodes to evaluate."""
    seed: int = 0
    """Seed of the episodes; training's own evaluations use others whatever the seed."""
    env: str | None = None
    """Another environment than the one that it was trained on, of the same sizes."""
    env_arg: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the environment as key=value, in place of the one it was trained with; may be repeated."""
    video: bool = False
    """Film one episode as an mp4 beside the policy."""
    stochastic: bool = False
    """Draw actions as in training; else the deterministic ones are taken."""
    json: bool = False
    """Print the numbers as JSON, those of every episode too."""


def run_eval(arguments: list[str], console: Console) -> int:
    """Run `bisac eval`, and return the exit code."""
    command = parse(EvalCommand, "eval", arguments)
    require(command, "at least 1", lambda v: v >= 1, "episodes")
    require(command, "from 0 to 4294967295", lambda v: 0 <= v < 2**32, "seed")
    policy = load(command.run)
    env = command.env or policy.spec.env_id
    env_args = command.env_arg if command.env else policy.spec.env_args + command.env_arg
    with console.status(f"evaluating {command.episodes} episodes of {escape(env)}"):
        evaluation = judge(policy, env, env_args, command.episodes, command.seed, not command.stochastic)
    if command.json:
        told = _numbers(evaluation) | {"env": env, "seed": command.seed, "stochastic": command.stochastic}
        console.out(json.dumps(told), highlight=False)
    else:
        console.print(_sentence(evaluation, env), highlight=False, soft_wrap=True)
    if command.video:
        with console.status("filming an episode"):
            folder = place_beside(policy_file(command.run)).parent / "videos"
            path = write_video(film(policy, env, env_args, command.seed), folder, command.seed)
        (open_console(stderr=True) if command.json else console).print(
            f"video: {escape(str(path))}", highlight=False, soft_wrap=True
        )
    return 0


def _sentence(evaluation: Evaluation, env: str) -> str:
    """Return an evaluation as a line for people."""
    returns = evaluation.returns
    success = "" if evaluation.successes is None else f"  success [bold]{evaluation.success_rate:.0%}[/]"
    return (
        f"return over {len(returns)} episodes of {escape(env)}: mean [bold]{returns.mean():,.1f}[/]  "
        f"std {returns.std():,.1f}  min {returns.min():,.1f}  max {returns.max():,.1f}{success}"
    )


def _numbers(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation for programs; success is null where the environment does not tell."""
    returns, successes = evaluation.returns, evaluation.successes
    return {
        "episodes": len(returns),
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "success_rate": None if successes is None else evaluation.success_rate,
        "returns": returns.tolist(),
        "lengths": evaluation.lengths.tolist(),
        "successes": None if successes is None else successes.tolist(),
    }
