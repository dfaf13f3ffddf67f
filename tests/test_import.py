"""What `import bisac` costs and needs: in a process of its own, for here everything is loaded already."""

import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", ["bisac", "bisac.cli"])
def test_import_leaves_slow_packages_alone(module):
    loaded = run(f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})")
    assert "jax" in loaded
    slow = {"mujoco", "matplotlib", "Box2D", "envpool", "pandas", "plotly", "pygame", "ray", "scipy"}
    assert slow.isdisjoint(loaded)


def test_import_needs_no_module_that_only_unix_has():
    missing = "fcntl", "grp", "pwd", "termios"
    assert run(f"import sys; sys.modules |= dict.fromkeys({missing}); import bisac; print(bisac.__name__)") == ["bisac"]
