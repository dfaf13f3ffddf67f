"""Files that earlier versions wrote still load, resume to the bit and report.

`data/classic` was written by the last version that knew classic critics only: three runs stopped at step 60 with what
each was at step 90, a policy, and a sweep of two runs.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import bisac
from bisac.runs.folder import provenance
from bisac.runs.log import read_progress
from bisac.sweeps.record import read_record

CLASSIC = Path(__file__).parents[1] / "data" / "classic"


def tolerance():
    """None on the kind of machine that wrote the files; elsewhere sums may be taken in another order."""
    then = json.loads((CLASSIC / "sweep" / "sweep.json").read_text())["provenance"]
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    same = then["cpu"] in cpu and then["platform"] == provenance()["platform"]
    return 0.0 if same and all(provenance()["versions"][p] == then["versions"][p] for p in ("jax", "numpy")) else 1e-4


def as_a_user(*arguments, cwd):
    """A command in a process of its own, without the tests' compiler flags: they change the last bits."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-m", "bisac", *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def renamed(name):
    """What the first version of checkpoints called an array, in the words of the second."""
    if not name.startswith("training."):
        return f"place.{name}"
    rest = name.removeprefix("training.")
    for old, new in (("algo.", "agent."), ("normaliser.", "scaling.")):
        rest = new + rest.removeprefix(old) if rest.startswith(old) else rest
    return f"learning.{rest}"


@pytest.mark.parametrize("algo", ["sac", "bisac", "td3"])
def test_run_resumes_to_the_bit(algo, tmp_path):
    shutil.copytree(CLASSIC / algo, tmp_path / algo)
    result = as_a_user("resume", algo, "--steps", "90", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    wanted = load_file(CLASSIC / f"{algo}-at-90" / "state.safetensors")
    found = load_file(tmp_path / algo / "checkpoints" / "step-000000000090" / "state.safetensors")
    wanted = {renamed(name): array for name, array in wanted.items()}
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=tolerance(), atol=tolerance(), err_msg=name)
    places = (CLASSIC / f"{algo}-at-90", tmp_path / algo)
    for then, now in zip(*(read_progress((place / "progress.csv").read_text()) for place in places), strict=True):
        known = {name: value for name, value in then.items() if name != "wall_time"}
        assert {name: now[name] for name in known} == pytest.approx(known, rel=tolerance(), abs=tolerance())


def test_policy_acts_as_it_did():
    policy = bisac.load(CLASSIC / "policy.safetensors")
    angles = np.linspace(-3.0, 3.0, 5)
    obs = np.stack([np.cos(angles), np.sin(angles), angles], axis=1).astype(np.float32)
    mean = obs
    arrays = load_file(CLASSIC / "policy.safetensors")
    for layer in range(3):
        mean = (np.maximum(mean, 0.0) if layer else mean) @ arrays[f"mlp.weights.{layer}"] + arrays[
            f"mlp.biases.{layer}"
        ]
    np.testing.assert_allclose(policy.predict(obs)[0], 2.0 * np.tanh(mean[:, :1]), rtol=1e-5)


def test_sweep_goes_on_where_its_classic_form_is_named(tmp_path):
    shutil.copytree(CLASSIC / "sweep", tmp_path / "sweep")
    command = json.loads((CLASSIC / "sweep" / "sweep.json").read_text())["commands"][0][1:]
    refused = as_a_user(*command, "--batch-size", "16", cwd=tmp_path)  # 8 would be refused as such
    assert refused.returncode == 2
    told = " ".join(refused.stderr.split())
    assert "was begun with critic-norm none, now it is by default" in told
    assert "Give --critic-norm none again, or choose another --out." in told
    changed = as_a_user(*command, "--critic-norm", "none", cwd=tmp_path)  # bisac had another critic by default
    assert changed.returncode == 2
    assert "there critic is 'vdn-a', here it is 'joint'. Choose another --out" in " ".join(changed.stderr.split())
    result = as_a_user(*command, "--critic-norm", "none", "--algo", "sac", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    then, now = (
        load_file(place / "sweep" / "Pendulum-v1" / "sac" / "seed0" / "policy.safetensors")
        for place in (CLASSIC, tmp_path)
    )
    assert all(np.array_equal(then[name], now[name]) for name in then)


def test_sweep_is_read_and_reported(tmp_path):
    shutil.copytree(CLASSIC / "sweep", tmp_path / "sweep")
    assert [contestant.name for contestant in read_record(tmp_path / "sweep").contestants] == ["sac", "bisac"]
    result = as_a_user("report", "sweep", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Pendulum-v1" in (tmp_path / "sweep" / "report" / "report.html").read_text()
