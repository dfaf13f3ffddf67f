import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "bisac"

# From top to bottom: a module imports only from lower lines, or from its own package.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("api",),
    ("display",),
    ("report", "figures"),
    ("sweeps",),
    ("runs",),
    ("plotting",),
    ("collect",),
    ("policies", "presets"),
    ("envs",),
    ("algos",),
    ("nets",),
    ("ops",),
    ("storage",),
    ("types",),
    ("validate",),
    ("errors", "machine"),
)
DEPTH = {part: depth for depth, parts in enumerate(LAYERS) for part in parts}
# `import bisac` means the public interface, which rests on the api.
DEPTH["bisac"] = DEPTH["api"] - 0.5


def imported(source: str, module: tuple[str, ...]):
    """The parts of bisac that a module's source imports, anywhere in it; relative imports count too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = list(module[: len(module) - node.level]) if node.level else []
            base = package + (node.module.split(".") if node.module else [])
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "bisac":
                # `from bisac import replay` names a part of it; `from bisac import train` the interface.
                yield name[1] if len(name) > 1 and name[1] in DEPTH else "bisac"


def upward(source: str, module: tuple[str, ...]) -> list[str]:
    """What a module imports that it may not."""
    own = module[1]
    return [part for part in imported(source, module) if part != own and DEPTH[part] <= DEPTH[own]]


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).with_suffix("")
        if relative.parts != ("__init__",):  # the public interface gathers from everywhere
            yield pytest.param(path, ("bisac", *relative.parts), id=str(relative))


@pytest.mark.parametrize(("path", "module"), list(modules()))
def test_imports_flow_downwards(path, module):
    assert module[1] in DEPTH, f"{module[1]} has no place among the layers"
    assert upward(path.read_text(), module) == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("ops.losses", "from bisac.nets.mlp import MLP", ["nets"]),
        ("ops.losses", "import bisac.nets.mlp as m", ["nets"]),
        ("ops.losses", "from bisac import nets", ["nets"]),
        ("ops.losses", "from ..nets.mlp import MLP", ["nets"]),
        ("ops.losses", "from .. import nets", ["nets"]),
        ("ops.losses", "def f():\n    from bisac.algos import SAC", ["algos"]),
        ("replay", "from bisac.algos.learner import Learner", ["learner"]),
        ("nets.mlp", "from bisac import train", ["bisac"]),
        ("nets.mlp", "import bisac", ["bisac"]),
        ("ops.losses", "from bisac.ops.gaussian import TanhGaussian\nfrom .gaussian import TanhGaussian", []),
        ("nets.mlp", "import jax\nfrom bisac.ops import losses\nfrom bisac import types\nfrom .. import errors", []),
        ("cli", "import bisac\nfrom bisac import train", []),
    ],
)
def test_the_check_sees_upward_imports(module, source, found):
    assert upward(source, ("bisac", *module.split("."))) == found
