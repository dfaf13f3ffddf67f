"""The command `bisac list`: the algorithms, the paper's tasks, our own, and what presets set; or one algorithm."""

import dataclasses

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bisac.algos import REGISTRY
from bisac.cli.about import explained
from bisac.cli.arguments import parse
from bisac.envs.device.sources import FAMILIES
from bisac.envs.task import PAPER_TASKS
from bisac.envs.tasks import SHIPPED
from bisac.errors import BisacError
from bisac.presets import FAST, GAMMA, chosen, listed, preset, task_name


@dataclasses.dataclass(frozen=True)
class ListCommand:
    """Name the algorithms, the paper's tasks and those that ship with bisac; or explain one algorithm."""

    algo: str | None = None
    """Explain this algorithm."""


def run_list(arguments: list[str], console: Console) -> int:
    """Run `bisac list`, and return the exit code."""
    command = parse(ListCommand, "list", arguments)
    if command.algo is not None:
        if command.algo not in REGISTRY:
            raise BisacError(f"there is no algorithm '{command.algo}'; there are {', '.join(REGISTRY)}.")
        console.print(explained(command.algo), highlight=False, soft_wrap=True)
        return 0
    algorithms = Table("algorithm", "what it does", title="Algorithms (--algo)", title_justify="left", box=None)
    for name, kind in REGISTRY.items():
        algorithms.add_row(f"[bold]{escape(name)}[/]", escape(next(iter((kind.__doc__ or "").splitlines()), "")))
    tasks = Table("task", "simulator", "preset", title="The paper's tasks", title_justify="left", box=None)
    for name, simulator in PAPER_TASKS.items():
        tasks.add_row(f"[bold]{name}[/]", simulator, _presets_of(name))
    console.print(algorithms, "", tasks, "", _shipped())
    _show_on_device(console)
    for algo in FAST:
        told = chosen("fast", None, algo).listed()
        console.print(f"\n--algo {algo} --preset fast adds: {told}", highlight=False, soft_wrap=True)
    console.print("\nAny other Gymnasium environment with a bounded Box of actions works too.", highlight=False)
    console.print("'bisac list --algo NAME' explains an algorithm.", highlight=False)
    return 0


def _shipped() -> Table:
    """Return the table of the tasks that come with the package."""
    table = Table("task", "what is to be done", "arguments (--env-arg)", box=None)
    table.title, table.title_justify = "Tasks that ship with bisac", "left"
    for name, task in SHIPPED.items():
        table.add_row(f"[bold]{name}[/]", task.summary, task.args)
    return table


def _show_on_device(console: Console) -> None:
    """Print the tasks that are compiled into the training step, and what each kind of them needs."""
    console.print("\n[italic]Tasks on the device (all take max_episode_steps, and --seeds)[/]")
    for prefix, family in FAMILIES.items():
        needs = f"; needs pip install '.[{family.needs}]'" if family.needs else ""
        told = f"{prefix}/NAME{needs}; arguments: {family.args}"
        console.print(f"[bold]{escape(told)}[/]", highlight=False, soft_wrap=True)
        console.print(f"    {', '.join(family.names)}", highlight=False)


def _presets_of(task: str) -> str:
    """Return the preset's settings, and after a colon those of one algorithm alone."""
    shared = {"gamma": GAMMA[name]} if (name := task_name(task)) in GAMMA else {}
    own = {algo: {k: v for k, v in preset(task, algo).items() if k not in shared} for algo in REGISTRY}
    parts = [listed(shared)] if shared else []
    return "; ".join([*parts, *(f"{algo}: {listed(settings)}" for algo, settings in own.items() if settings)])
