"""The real Weights & Biases and MLflow, offline: what they have of a run that was left and resumed."""

import importlib
import json
import struct

import pytest
from probe_envs import Counter
from small_runs import SHORT

import bisac
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log, tag

pytestmark = pytest.mark.trackers

RUN = {name: value for name, value in SHORT.items() if name != "verbose"} | dict(algo="a2c", hidden=(8,), rollout=20)


def left_and_resumed(folder, tracker):
    """The rows of the log of a run that was left after the first of them."""
    for event in bisac.start(Counter, out=folder, track=tracker, track_group="some", **RUN):
        if isinstance(event, bisac.Logged):
            break
    bisac.resume(folder, env=Counter, verbose=False)
    return read_log(RunFolder(folder))


def named(row):
    return {tag(name): value for name, value in row.items() if value is not None and name != "step"}


def records(path):
    """What a .wandb file holds: pieces of records in blocks of 32 KiB, each behind checksum, length and kind."""
    content, at, whole = path.read_bytes(), 7, b""
    record = importlib.import_module("wandb.proto.wandb_internal_pb2").Record
    while at + 7 <= len(content):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole one, or the last piece
            yield record.FromString(whole)
            whole = b""


def test_wandb_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    rows = left_and_resumed(tmp_path / "run", "wandb")
    known = json.loads((tmp_path / "run" / "tracking.json").read_text())["wandb"]["id"]
    files = sorted((tmp_path / "run" / "wandb").glob(f"offline-run-*-{known}/run-{known}.wandb"))
    assert len(files) == 2  # one a process; `wandb sync` puts them together
    told = [record for file in files for record in records(file)]
    runs = [record.run for record in told if record.HasField("run")]
    assert {(run.run_id, run.project, run.run_group) for run in runs} == {(known, "bisac", "some")}
    assert list(runs[0].tags) == ["Counter", "a2c", "seed 0"]
    assert {item.key: item.value_json for item in runs[0].config.update}["rollout"] == "20"
    history = [record.history for record in told if record.HasField("history")]
    assert [each.step.num for each in history] == [row["step"] for row in rows] == [40, 80, 100]
    for each, row in zip(history, rows, strict=True):
        values = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in each.item}
        assert {name: values[name] for name in named(row)} == pytest.approx(named(row))
    assert [record.exit.exit_code for record in told if record.HasField("exit")] == [0, 0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_mlflow_in_a_file(tmp_path, monkeypatch):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)
    rows = left_and_resumed(tmp_path / "run", "mlflow")
    client = importlib.import_module("mlflow").MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name("bisac").experiment_id])
    assert json.loads((tmp_path / "run" / "tracking.json").read_text())["mlflow"]["id"] == run.info.run_id
    assert run.info.status == "FINISHED"
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")}
    assert tags == {"env": "Counter", "algo": "a2c", "seed": "0", "group": "some"}
    assert run.data.params["rollout"] == "20"
    for name in named(rows[-1]):
        history = [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]
        assert history == [(row["step"], pytest.approx(named(row)[name])) for row in rows if name in named(row)]
