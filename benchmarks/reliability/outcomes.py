"""What came of something that was done to runs on purpose, and how the page tells it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    what: str
    """What was done."""
    times: int
    """How often."""
    result: str
    """What came of it, in words."""
    lost: int = 0
    """How often something was lost that a checkpoint, or a file, had held: the goal is never."""
    silent: int = 0
    """How often something was wrong and nobody was told, or the end was another without a word: the goal is never."""
    sentence: str = ""
    """A sentence that was shown, as an example."""


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as Markdown, with the sentences below the table."""
    lines = ["| what was done | times | lost | silent | what came of it |", "|---|---|---|---|---|"]
    lines += [f"| {o.what} | {o.times:,} | {o.lost:,} | {o.silent:,} | {o.result} |" for o in outcomes]
    told = [f"- {o.what}:\n  > {o.sentence}" for o in outcomes if o.sentence]
    totals = f"In all: {sum(o.times for o in outcomes):,} times, {sum(o.lost for o in outcomes):,} lost, "
    lines += ["", f"{totals}{sum(o.silent for o in outcomes):,} silent."]
    return "\n".join([*lines, "", "What is shown, by an example of each:", "", *told]) + "\n"


def read(path: Path) -> dict[str, list[Outcome]]:
    """Return what earlier runs of the campaign's parts came to; nothing where there is no such file."""
    if not path.exists():
        return {}
    return {part: [Outcome(**row) for row in rows] for part, rows in json.loads(path.read_text()).items()}


def write(path: Path, known: Mapping[str, Sequence[Outcome]]) -> None:
    """Keep what the parts came to, so that one of them can be run again by itself."""
    path.write_text(json.dumps({part: [asdict(row) for row in rows] for part, rows in known.items()}, indent=1) + "\n")
