"""The examples of docs/python.md run, as they stand but for their numbers."""

import re
import warnings
from pathlib import Path

import pytest

import bisac

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
SMALL = dict(critic_norm="none", hidden=(8,), batch_size=16, learning_starts=20, replay_size=1000)


def small(call):
    """The same function with tiny networks and few steps."""
    return lambda *arguments, **named: call(*arguments, **SMALL | dict(eval_every=200, eval_episodes=1) | named)


@pytest.mark.xdist_group("examples")  # which use what is compiled here
def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("train", "start"):
        monkeypatch.setattr(bisac, name, small(getattr(bisac, name)))
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    code = re.sub(r"steps=(\d+)_000", lambda found: f"steps={200 + 20 * min(int(found[1]), 20)}", "\n".join(blocks))
    code = code.replace("num_envs=2", "num_envs=1")  # for which everything is compiled already
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, PAGE, "exec"), names)
    assert names["policy"].predict([1.0, 0.0, 0.0])[0].shape == (1,)
    assert "last_return" in (tmp_path / "runs" / "loop" / "progress.csv").read_text()
