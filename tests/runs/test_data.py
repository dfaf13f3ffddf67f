"""Runs that learn from several steps at once, and from demonstrations: resumed to the bit, with no other data."""

import json

import numpy as np
import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.cli.train import parse_train
from bisac.collect import off_policy
from bisac.replay import from_arrays

SETTINGS = SMALL | SHORT | dict(critic_norm="none", num_envs=2, n_step=3, batch_size=17, demo_fraction=0.4)
ROWS = dict(
    observation=np.zeros((5, 1)),
    action=np.zeros((5, 2)),
    reward=np.arange(5.0),
    next_observation=np.ones((5, 1)),
    terminated=np.zeros(5, bool),
)


def test_a_resume_is_exact_and_takes_no_other_data(tmp_path, monkeypatch):
    drawn, draw = [], off_policy.draw_batch
    monkeypatch.setattr(off_policy, "draw_batch", lambda *given: drawn.append(given) or draw(*given))
    np.savez(tmp_path / "data.npz", **ROWS)
    bisac.train(Counter, out=tmp_path / "straight", demos=from_arrays(**ROWS, name="mine"), **SETTINGS)
    algo, _, demos, *_ = drawn[0]
    assert (algo.n_step, demos.capacity) == (3, 5)
    torn = tmp_path / "torn"
    with dying_at(50):
        bisac.train(Counter, out=torn, demos=tmp_path / "data.npz", **SETTINGS)
    (tmp_path / "data.npz").unlink()  # the run has its own copy
    state = max((torn / "checkpoints").glob("step-*")) / "state.safetensors"
    assert b"demos" not in state.read_bytes()
    whole = (torn / "demos.safetensors").read_bytes()
    (torn / "demos.safetensors").write_bytes(from_arrays(**ROWS | dict(reward=np.ones(5))).to_bytes())
    with pytest.raises(bisac.BisacError, match="is not the data that the run began with"):
        bisac.resume(torn, env=Counter, verbose=False)
    (torn / "demos.safetensors").write_bytes(whole)
    bisac.resume(torn, env=Counter, verbose=False)
    assert fingerprint(torn) == fingerprint(tmp_path / "straight")
    config = json.loads((torn / "config.json").read_text())
    assert config["demos_sha256"] == from_arrays(**ROWS).digest
    assert config["run"]["demos"] == str(tmp_path / "data.npz")


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    fine, wide = from_arrays(**ROWS), from_arrays(**ROWS | dict(action=np.zeros((5, 3))))
    for changes, sentence in (
        (dict(demos=wide), r"1 observations and 3 actions in a row, which does not fit Counter"),
        (dict(demos="none.npz"), "there is no data set at none.npz"),
        (dict(demos=fine, demo_fraction=1.5), "demo.fraction must be in"),
        (dict(n_step=0), "n.step must be at least 1"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            bisac.train(Counter, out=tmp_path / "run", **SETTINGS | changes)
    with pytest.raises(bisac.BisacError, match="--demos: ppo learns from fresh rollouts"):
        bisac.train(Counter, algo="ppo", demos=fine, out=tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()


def test_flags():
    command, _ = parse_train(["Hopper-v5", "--demos", "data.npz", "--demo-fraction", "0.25", "--n-step", "3"])
    assert command.run.demos == "data.npz"
    assert (command.hyperparameters.demo_fraction, command.hyperparameters.n_step) == (0.25, 3)
