"""Calls a second on one observation: bisac's predict and exported forms beside Stable-Baselines3's predict.

`make bench-acting` builds the peers' environment and runs this. All contestants stand ready and take turns of 1,000
calls; what counts are the ratios within a round. It writes acting.json and the table in export.md to the folder given.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from measuring import context, described, prose, splice, turns
from rich.console import Console
from rich.markdown import Markdown

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"
CONTESTANTS = {
    "sb3": "SB3: `predict`",
    "compiled": "bisac: `predict`, a batch of one",
    "predict": "bisac: `predict`, one observation",
    "onnx": "exported: ONNX in onnxruntime",
    "numpy": "exported: NumPy form",
}


@dataclass(frozen=True)
class Options:
    """How long to measure."""

    rounds: int = 15
    """Rounds of turns."""
    out: Path = HERE.parent / "docs"
    """The folder of acting.json and export.md."""


def main() -> None:
    """Measure, print and write."""
    options = tyro.cli(Options)
    readings: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    with ExitStack() as stack:
        started = {}
        for name in CONTESTANTS:
            python = str(PEERS) if name == "sb3" else sys.executable
            command = [python, str(HERE / "contestants" / "acting.py"), name]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            started[name] = stack.enter_context(subprocess.Popen(command, text=True, **pipes))
        versions = [json.loads(process.stdout.readline()) for process in started.values()]
        for name in turns(list(CONTESTANTS), options.rounds):
            started[name].stdin.write("go\n")
            started[name].stdin.flush()
            readings[name].append(1000.0 / float(started[name].stdout.readline()))
    results = {"context": context(versions), "calls_per_second": readings}
    text = markdown(results)
    Console().print(Markdown(text))
    (options.out / "acting.json").write_text(json.dumps(results, indent=1) + "\n")
    splice(options.out / "export.md", "acting", text)


def markdown(results: dict[str, Any]) -> str:
    """The table, with the versions under it."""
    readings = results["calls_per_second"]
    rows = ["| one core, 256-256, Hopper-v5's sizes | calls a second | times SB3 |", "|---|---|---|"]
    for name, label in CONTESTANTS.items():
        calls, ratios = np.array(readings[name]), np.array(readings[name]) / np.array(readings["sb3"])
        ratio = f"{np.median(ratios):.1f} ({ratios.min():.1f} to {ratios.max():.1f})"
        rows.append(f"| {label} | {np.median(calls):,.0f} ({calls.min():,.0f} to {calls.max():,.0f}) | {ratio} |")
    rounds = len(readings["sb3"])
    return "\n".join([*rows, "", prose(f"*Medians and ranges of {rounds} rounds. {described(results['context'])}.*")])


if __name__ == "__main__":
    main()
