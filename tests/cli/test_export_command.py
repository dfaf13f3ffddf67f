"""`bisac export` and `bisac card` on the folder of a run, as version 0.1 left it."""

import hashlib
import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import bisac
from bisac.cli import run
from bisac.runs.folder import RunFolder

CLASSIC = Path(__file__).parents[1] / "data" / "classic" / "sac"
EXAMPLE = Path(__file__).parents[2] / "examples" / "deploy" / "pendulum.py"


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(CLASSIC, tmp_path / "run")


def test_export_writes_beside_the_policy_and_the_card_tells_of_it(folder, capsys):
    assert run(["export", str(folder), "--format", "onnx"]) == 0
    assert run(["export", str(folder / "checkpoints" / "step-000000000060"), "--format", "numpy"]) == 0
    printed = capsys.readouterr().out.replace("\n", "")
    assert "policy.onnx" in printed
    assert "step_000000000060.npz" in printed
    assert (folder / "step_000000000060.py").exists()
    known = {entry.key: entry.value for entry in onnx.load(folder / "policy.onnx").metadata_props}
    assert known["config_sha256"] == hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    obs = np.array([[0.5, -0.5, 3.0]], np.float32)
    session = onnxruntime.InferenceSession(folder / "policy.onnx")
    np.testing.assert_allclose(
        session.run(None, {"observation": obs})[0], bisac.load(folder).predict(obs)[0], rtol=1e-5
    )

    runpy.run_path(str(EXAMPLE))["main"](str(folder / "policy.onnx"), 1)
    assert "trained by sac\nepisode 0: return -" in capsys.readouterr().out

    assert run(["card", str(folder), "--episodes", "2", "--license", "mit"]) == 0
    card = (folder / "README.md").read_text()
    front = card.split("---")[1]
    assert 'license: "mit"' in front
    assert "library_name: bisac" in front
    assert "95 % interval" in card
    assert "over 2 episodes held out" in card
    assert 'InferenceSession("policy.onnx")' in card
    assert '{"observation": observation}' in card
    assert "from policy import act" not in card
    assert "bisac train Pendulum-v1 --algo sac --steps 60" in card
    assert "| 60 | -1,411.0 |" in card
    assert "| critic_lr | `0.001` |" in card

    RunFolder(folder).clear()  # what was made of a run that is lost must not be taken for the next one's
    assert sorted(path.name for path in folder.iterdir()) == ["step_000000000060.npz", "step_000000000060.py"]


def test_a_name_may_have_dots(tmp_path):
    for name in ("hopper.v1", "hopper.v2"):
        shutil.copy(CLASSIC / "policy.safetensors", tmp_path / f"{name}.safetensors")
        assert run(["export", str(tmp_path / f"{name}.safetensors"), "--format", "onnx"]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.onnx")) == ["hopper.v1.onnx", "hopper.v2.onnx"]


def test_card_of_a_policy_on_its_own(tmp_path):
    shutil.copy(CLASSIC / "policy.safetensors", tmp_path / "mine.safetensors")
    assert run(["export", str(tmp_path / "mine.safetensors"), "--format", "stablehlo", "--platforms", "cpu"]) == 0
    assert json.loads((tmp_path / "mine.stablehlo.json").read_text())["platforms"] == ["cpu"]
    assert run(["card", str(tmp_path / "mine.safetensors"), "--episodes", "0"]) == 0
    card = (tmp_path / "README.md").read_text()
    assert "Only the policy file was at hand" in card
    assert 'Path("mine.stablehlo")' in card
    assert "Evaluation" not in card


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "RUN"], "say which format; there are onnx"),
        (["export", "RUN", "--format", "torch"], "there is no format 'torch'"),
        (["export", "RUN", "--format", "onnx", "--out", "RUN"], "is a folder"),
        (["export", "RUN", "--format", "onnx", "--opset", "3"], "opset must be from 13"),
        (["export", "RUN", "--format", "stablehlo", "--platforms", ""], "there is no platform ''"),
        (["export", "RUN/checkpoints/replay", "--format", "onnx"], "holds no policy file"),
        (["export", "RUN", "--format", "onnx", "--card"], "is not a model card of bisac's; move it away"),
        (["card", "RUN"], "is not a model card of bisac's; move it away"),
        (["card", "RUN", "--out", "RUN"], "is a folder"),
        (["card", "RUN", "--episodes", "-1"], "episodes must be at least 0"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(arguments, message, folder, capsys):
    (folder / "README.md").write_text("my own notes")
    before = sorted(folder.rglob("*"))
    assert run([word.replace("RUN", str(folder)) for word in arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    assert (folder / "README.md").read_text() == "my own notes"
