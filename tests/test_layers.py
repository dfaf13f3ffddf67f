"""Imports flow only downwards through the layers that CONTRIBUTING.md lists."""

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
ROOT = PROJECT / "src" / "bisac"


def read_layers(text: str) -> list[list[str]]:
    """The layers from top to bottom: the names at the start of each line, two spaces before what they are for."""
    found = re.search(r"^## The layers$.*?^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found, "CONTRIBUTING.md lists no layers"
    return [line.split("  ")[0].split() for line in found[1].splitlines()]


LAYERS = read_layers((PROJECT / "CONTRIBUTING.md").read_text())
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


def test_the_list_is_read_as_it_stands():
    text = "# A\n\n```\nno\n```\n\n## The layers\n\nSome words.\n\n```\ntop  the roof\nleft right    walls\n```\n"
    assert read_layers(text) == [["top"], ["left", "right"]]
    assert len(DEPTH) == sum(map(len, LAYERS)) + 1, "a part stands in two lines"


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("ops.losses", "from bisac.nets.mlp import MLP", ["nets"]),
        ("ops.losses", "import bisac.nets.mlp as m", ["nets"]),
        ("ops.losses", "from bisac import nets", ["nets"]),
        ("ops.losses", "from ..nets.mlp import MLP", ["nets"]),
        ("ops.losses", "from .. import nets", ["nets"]),
        ("ops.losses", "def f():\n    from bisac.algos import SAC", ["algos"]),
        ("types", "from bisac.algos.learner import Learner", ["algos"]),
        ("nets.mlp", "from bisac import train", ["bisac"]),
        ("nets.mlp", "import bisac", ["bisac"]),
        ("ops.losses", "from bisac.ops.gaussian import TanhGaussian\nfrom .gaussian import TanhGaussian", []),
        ("nets.mlp", "import jax\nfrom bisac.ops import losses\nfrom bisac import types\nfrom .. import errors", []),
        ("cli", "import bisac\nfrom bisac import train", []),
    ],
)
def test_the_check_sees_upward_imports(module, source, found):
    assert upward(source, ("bisac", *module.split("."))) == found
