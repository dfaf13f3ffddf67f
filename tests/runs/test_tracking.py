"""Runs in trackers: stand-ins for the packages note what they are called with. The real: test_real_trackers.py."""

import importlib.util
import json
import signal
import sys
import types

import pytest
from probe_envs import Counter
from small_runs import SHORT

import bisac
from bisac.algos import SAC
from bisac.cli.sweep import parse_sweep
from bisac.errors import BisacError
from bisac.runs import tracking
from bisac.runs.config import to_config
from bisac.runs.events import Finished, Logged, Outcome, Started, Tracked, Warned
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log, tag
from bisac.runs.settings import Settings
from bisac.runs.tracking import tracked
from bisac.sweeps.record import enrol

QUIET = {name: value for name, value in SHORT.items() if name != "verbose"} | dict(
    algo="a2c", seed=3, hidden=(8,), rollout=20
)


class Store:
    """What a stand-in was called with, over all processes that there would be."""

    def __init__(self):
        self.runs = {}
        """By id: what the run was begun with, its rows by step, how it ended each time."""
        self.failing = 0
        """How many of the next calls fail."""

    def begin(self, **about):
        self.check()
        run = str(len(self.runs))
        self.runs[run] = types.SimpleNamespace(**about, rows=[], endings=[])
        return run

    def check(self):
        if self.failing:
            self.failing -= 1
            raise ConnectionError("the network is gone.\nMore of it.")


def stand_in_wandb(store):
    class Run:
        offline, url, dir = True, None, "there/offline-run-1/files"

        def __init__(self, run):
            self.id = run

        def log(self, values, step, commit):
            store.check()
            assert commit
            store.runs[self.id].rows.append((step, values))

        def finish(self, exit_code):
            store.check()
            store.runs[self.id].endings.append(exit_code)

    def init(*, resume, reinit, name, group, tags, config, settings, allow_val_change, project, **rest):
        store.check()
        assert (resume, reinit, settings["silent"], project) == ("allow", "create_new", True, "bisac")
        return Run(rest["id"] or store.begin(name=name, group=group, tags=tags, parameters=config))

    own = types.SimpleNamespace(project=None, finish_timeout=0.0)
    return types.SimpleNamespace(init=init, Settings=dict, setup=lambda: types.SimpleNamespace(settings=own))


def stand_in_mlflow(store):
    entities = types.SimpleNamespace(Param=lambda *each: each, Metric=lambda *each: each)

    def info(run):
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=run, experiment_id="7"))

    class MlflowClient:
        tracking_uri = "https://me:secret@there"
        experiments = None

        def get_experiment_by_name(self, name):
            store.check()
            return self.experiments

        def create_experiment(self, name):
            MlflowClient.experiments = types.SimpleNamespace(experiment_id="7")
            return "7"

        def create_run(self, experiment, tags, run_name):
            assert experiment == "7"
            return info(store.begin(name=run_name, group=tags.pop("group", None), tags=tags, parameters={}))

        def get_run(self, run):
            return info(run)

        def update_run(self, run, status):
            assert (run in store.runs, status) == (True, "RUNNING")

        def log_batch(self, run, params=(), metrics=()):
            store.check()
            assert len(params) <= 100
            store.runs[run].parameters |= dict(params)
            if metrics:
                assert {len(str(at)) for _, _, at, _ in metrics} == {13}  # milliseconds
                ((step,),) = [{step for *_, step in metrics}]
                store.runs[run].rows.append((step, {name: value for name, value, *_ in metrics}))

        def set_terminated(self, run, status):
            store.runs[run].endings.append({"FINISHED": 0, "KILLED": 1, "FAILED": 1}[status])

    return {"mlflow": types.SimpleNamespace(MlflowClient=MlflowClient), "mlflow.entities": entities}


@pytest.fixture
def store(monkeypatch):
    store = Store()
    for name, module in {"wandb": stand_in_wandb(store), **stand_in_mlflow(store)}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in sys.modules)
    for name in ("WANDB_DIR", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("MLFLOW_LOGGING_LEVEL", "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.setenv(name, "1")
    return store


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_run_that_is_left_and_resumed_is_one_in_the_tracker(tracker, store, tmp_path):
    with bisac.start(Counter, out=tmp_path / "run", track=tracker, track_group="some", **QUIET) as run:
        for event in run:
            if isinstance(event, bisac.EpisodeEnded):
                run.log({"Länge": event.episode_length})
            if isinstance(event, Logged):
                break
    bisac.resume(tmp_path / "run", env=Counter, verbose=False)
    ((known, told),) = store.runs.items()
    assert json.loads((tmp_path / "run" / "tracking.json").read_text()) == {tracker: {"id": known, "told": 100}}
    rows = read_log(RunFolder(tmp_path / "run"))
    assert [step for step, _ in told.rows] == [40, 80, 100]
    for (_, values), row in zip(told.rows, rows, strict=True):
        plain = {tag(name): value for name, value in row.items() if value is not None and name != "step"}
        if tracker == "mlflow":
            plain = {name.replace("ä", "_"): value for name, value in plain.items()}
        assert values == pytest.approx(plain)
    assert {"eval/return", "train/value_loss", "train/L_nge" if tracker == "mlflow" else "train/Länge"} <= {
        *told.rows[0][1]
    }
    assert told.endings == [0, 0]
    assert (told.group, told.name) == ("some", "/".join((tmp_path / "run").parts[-3:]))
    env = Counter.__name__
    named = [env, "a2c", "seed 3"] if tracker == "wandb" else {"env": env, "algo": "a2c", "seed": "3"}
    assert told.tags == named
    assert str(told.parameters["rollout"]) == "20"
    assert not {"track", "overwrite"} & told.parameters.keys()


def begun(folder, **settings):
    """A run's folder as a process leaves it before the first step."""
    folder.mkdir(exist_ok=True)
    own = Settings(**dict(steps=100, track="wandb", out=folder) | settings)
    RunFolder(folder).write_config(to_config("Env-v0", SAC(), own))
    return RunFolder(folder)


def events_of(folders, steps, at=0, stopped_by=None):
    """The events of runs, without the runs; an exception in the place of a step is raised there."""
    yield Started(tuple(folders), at, 100)
    for step in steps:
        if isinstance(step, Exception):
            raise step
        for index in range(len(folders)):
            yield Logged(index, {"step": step, "eval_return": step + 0.5, "alpha": None})
    yield Finished(tuple(Outcome(None, folder, [], stopped_by, True) for folder in folders))


def told_steps(store, run="0"):
    return [step for step, _ in store.runs[run].rows]


def test_failing_tracker_is_told_all_when_it_is_back(store, tmp_path):
    store.failing = 3  # it cannot be opened, nor at the second row; the third finds it
    happened = list(tracked(events_of([begun(tmp_path)], [10, 20, 30, 40])))
    (warned,) = [event.text for event in happened if isinstance(event, Warned)]
    assert warned == "wandb could not be told of the run: the network is gone. Training goes on."
    assert told_steps(store) == [10, 20, 30, 40]
    assert store.runs["0"].rows[0] == (10, {"eval/return": 10.5})
    assert isinstance(happened[-1], Finished)
    store.failing = 10**9
    happened = list(tracked(events_of([begun(tmp_path)], [50, 60], at=40)))
    assert [type(event) for event in happened] == [Started, Warned, Logged, Logged, Finished]
    store.failing = 0
    rows = "".join(f"{n},1.0,{n}.5\n" for n in range(10, 90, 10))
    (tmp_path / "progress.csv").write_text(f"step,wall_time,eval_return\n{rows}")
    list(tracked(events_of([begun(tmp_path)], [70], at=60)))  # 80 is to be repeated: the checkpoint is older
    assert told_steps(store) == [10, 20, 30, 40, 50, 60, 70]


def test_what_was_told_before_a_kill_is_not_told_again(store, tmp_path, monkeypatch):
    """But for the last half minute, which Weights & Biases may not have written."""
    clock = [0.0]
    monkeypatch.setattr(tracking.time, "monotonic", lambda: clock[0])
    killed = tracked(events_of([begun(tmp_path)], [10, 20, 30, 40]))
    for event in killed:
        clock[0] += 20.0
        if isinstance(event, Logged) and event.row["step"] == 30:
            break
    known = (tmp_path / "tracking.json").read_text()
    killed.close()
    assert json.loads((tmp_path / "tracking.json").read_text()) == {"wandb": {"id": "0", "told": 30}}
    (tmp_path / "tracking.json").write_text(known)
    list(tracked(events_of([begun(tmp_path)], [10, 20, 30, 40], at=5)))
    assert told_steps(store) == [10, 20, 30, 20, 30, 40]


def test_slow_failures_are_rare(store, tmp_path, monkeypatch):
    clock, tried = [0.0], []

    def fail():
        tried.append(clock[0])
        clock[0] += 30.0
        raise TimeoutError

    monkeypatch.setattr(store, "check", fail)
    monkeypatch.setattr(tracking.time, "monotonic", lambda: clock[0])

    def hourly():
        for event in events_of([begun(tmp_path)], range(10, 60)):
            clock[0] += 60.0
            yield event

    (warned,) = [event.text for event in tracked(hourly()) if isinstance(event, Warned)]
    assert "TimeoutError. Training" in warned
    assert len(tried) == 7  # each costs 30 s, and is followed by ten minutes of peace; and once more at the end
    assert 30.0 * len(tried) < 0.07 * clock[0]


@pytest.mark.parametrize(
    ("steps", "stopped_by", "ending"), [([10], None, 0), ([10], signal.SIGINT, 1), ([10, ValueError("own")], None, 1)]
)
def test_endings(steps, stopped_by, ending, store, tmp_path):
    stream = tracked(events_of([begun(tmp_path)], steps, stopped_by=stopped_by))
    if len(steps) > 1:
        with pytest.raises(ValueError, match="own"):
            list(stream)
    else:
        list(stream)
    assert store.runs["0"].endings == [ending]


def test_runs_side_by_side_are_apart(store, tmp_path):
    folders = [begun(tmp_path / f"seed{seed}", seed=seed) for seed in (4, 5)]
    where = [event for event in tracked(events_of(folders, [10])) if isinstance(event, Tracked)]
    assert where == [Tracked(index, "wandb", "there/offline-run-1") for index in (0, 1)]
    assert [run.tags[-1] for run in store.runs.values()] == ["seed 4", "seed 5"]
    assert [told_steps(store, run) for run in "01"] == [[10], [10]]


def test_damaged_files_cost_a_warning(store, tmp_path):
    (tmp_path / "tracking.json").write_text("{")
    (warned,) = [event for event in tracked(events_of([begun(tmp_path)], [10])) if isinstance(event, Warned)]
    assert "could not be told of the run" in warned.text
    (tmp_path / "tracking.json").unlink()
    (tmp_path / "progress.csv").write_text("step,wall_time,eval_return\n1,1,nonsense\n")
    happened = list(tracked(events_of([begun(tmp_path)], [10], at=5)))
    assert [type(event) for event in happened] == [Started, Tracked, Warned, Logged, Finished]


def test_overwritten_run_is_another_in_the_tracker(store, tmp_path):
    list(tracked(events_of([begun(tmp_path)], [10])))
    RunFolder(tmp_path).clear()
    list(tracked(events_of([begun(tmp_path)], [10])))
    assert [told_steps(store, run) for run in "01"] == [[10], [10]]


def test_address_of_the_tracker_has_no_password(store, tmp_path):
    where = [e.where for e in tracked(events_of([begun(tmp_path, track="mlflow")], [])) if isinstance(e, Tracked)]
    assert where == ["https://there/#/experiments/7/runs/0"]


def test_missing_package_is_told_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BisacError, match=r"--track wandb needs Weights & Biases; in bisac's folder: pip install '\."):
        bisac.train(Counter, out=tmp_path / "run", track="wandb", **QUIET)
    assert not (tmp_path / "run").exists()
    words = ["--env", "Pendulum-v1", "--algo", "sac", "--steps", "10", "--out", str(tmp_path / "s"), "--track"]
    with pytest.raises(BisacError, match="--track mlflow needs MLflow"):
        parse_sweep([*words, "mlflow"])


def test_runs_of_a_sweep_are_tracked_in_its_group(store, tmp_path):
    words = ["--env", "Pendulum-v1", "--algo", "sac", "--seeds", "0", "--steps", "10", "--out", str(tmp_path / "first")]
    _, plain = parse_sweep(words)
    (run,) = plain.runs(tmp_path)
    assert not {"--track", "--track-group"} & {*run.arguments}
    _, plan = parse_sweep([*words, "--track", "wandb"])
    (run,) = plan.runs(tmp_path)
    assert " ".join(run.arguments).endswith("--track wandb --track-group first --steps 10 --out " + str(run.folder))
    before = enrol(plain, tmp_path, ["bisac"], lambda env: 0.0)
    assert "track" not in before.settings  # so that it may be said at any time
    enrol(plan, tmp_path, ["bisac"], lambda env: 0.0)
