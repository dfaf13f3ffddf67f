"""A search that only pretends to train: what it begins, goes on with, ends early and tells, and what a kill leaves."""

import dataclasses
import json
import math
import signal
import sqlite3

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from bisac.algos.search import Range
from bisac.cli.train import parse_train
from bisac.cli.tune import parse_tune
from bisac.errors import BisacError
from bisac.report.tuning import write_tuning_page
from bisac.runs.config import to_config
from bisac.runs.folder import RunFolder
from bisac.sweeps import execute
from bisac.sweeps.engines.base import EndedProcess
from bisac.tuning import search as module
from bisac.tuning.record import enrol, read_record, trial_name
from bisac.tuning.search import SearchFinished, TrialEnded, TrialLost, TrialStarted, search
from bisac.tuning.study import STUDY, Study, best

FLAGS = ["Pendulum-v1", "--algo", "sac:critic_norm=none", "--steps", "1000", "--eval-every", "250", "--out", "unused"]
SPACE = ["--search", "critic_lr=1e-4:1e-2:log", "--search", "hidden=8,16x16", "--gamma", "0.98"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(execute, "INTERVAL", 0.0)


@pytest.fixture(scope="module")
def tuning():
    """A search over few settings, so that the study is quick."""
    found = parse_tune([*FLAGS, *SPACE])[1]
    return dataclasses.replace(found, space={name: found.space[name] for name in ("critic_lr", "hidden", "tau")})


def worth(run):
    """What a trial's returns rise to: the nearer its critics' learning rate is to 1e-3, the higher."""
    return 100.0 - 50.0 * abs(math.log10(run.algorithm.critic_lr) + 3.0)


class PretendEngine:
    """Lets every run take 250 steps at each look, and saves those that are told to stop."""

    def __init__(self, slots=2, codes=(), at_look=None):
        self.slots, self.codes, self.at_look = slots, dict(codes), at_look
        self.running, self.steps, self.started, self.told, self.looks = [], {}, [], [], 0

    def room(self):
        return len(self.running) < self.slots

    def start(self, run):
        self.started.append(run.folder.name)
        self.running.append(run)
        run.folder.mkdir(parents=True, exist_ok=True)
        RunFolder(run.folder).write_config(to_config(run.env, run.algorithm, run.settings))
        progress = RunFolder(run.folder).progress
        self.steps[run.folder] = 250 * (len(progress.read_text().splitlines()) - 1) if progress.exists() else 0

    def ended(self):
        self.looks += 1
        if self.at_look:
            self.at_look(self)
        ended = [EndedProcess(run, 143) for run in self.running if run.folder in self.told]
        for run in self.running:
            if run.folder not in self.told and run.folder.name in self.codes:
                ended.append(EndedProcess(run, self.codes[run.folder.name]))
            elif run.folder not in self.told:
                self.advance(run)
                if self.steps[run.folder] >= 1000:
                    RunFolder(run.folder).policy.write_bytes(b"")
                    ended.append(EndedProcess(run, 0))
        self.running = [run for run in self.running if run not in [process.run for process in ended]]
        return ended

    def advance(self, run):
        self.steps[run.folder] += 250
        rows = [
            f"{step},{step / 10},{worth(run) * step / 1000!r}\n" for step in range(250, self.steps[run.folder] + 1, 250)
        ]
        RunFolder(run.folder).progress.write_text("".join(["step,wall_time,eval_return\n", *rows]))

    def stop(self, number, run=None):
        self.told += [each.folder for each in self.running if run in (None, each)]

    def close(self):
        self.running = []


def go(tuning, out, trials, engine):
    out.mkdir(exist_ok=True)
    enrol(tuning, out, ["bisac", "tune"])
    study = Study(out, tuning.space, tuning.settings.seed, tuning.evaluations, tuning.prune)
    with search(tuning, study, out, trials, engine) as events:
        return list(events)


@pytest.fixture(scope="module")
def whole(tuning, tmp_path_factory):
    """A whole search, its engine and its events."""
    out, engine = tmp_path_factory.mktemp("whole"), PretendEngine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "INTERVAL", 0.0)
        return out, engine, go(tuning, out, 14, engine)


def test_the_first_trial_has_the_defaults_and_each_its_own_seed_and_folder(tuning, whole):
    out, engine, events = whole
    assert engine.started == [trial_name(number) for number in range(14)]
    first, last = (RunFolder(out / trial_name(number)).read_config() for number in (0, 13))
    assert (first["hyperparameters"]["critic_lr"], first["hyperparameters"]["tau"]) == (1e-3, 0.005)
    assert first["hyperparameters"]["gamma"] == last["hyperparameters"]["gamma"] == 0.98
    assert (first["run"]["seed"], last["run"]["seed"]) == (0, 13)
    assert sum(isinstance(event, TrialStarted) for event in events) == 14


def test_study_and_folders_agree(tuning, whole):
    out, _, events = whole
    finished = events[-1]
    assert isinstance(finished, SearchFinished)
    assert finished.problems == 0
    for trial in finished.trials:
        run = tuning.run(out, trial.number, trial.values)
        assert RunFolder(run.folder).read_config()["hyperparameters"]["critic_lr"] == trial.values["critic_lr"]
        assert RunFolder(run.folder).policy.exists() == (trial.state == "complete")
        if trial.state == "complete":  # the last tenth of the steps has one evaluation
            assert trial.score == pytest.approx(worth(run))


def test_trials_worse_than_most_are_ended_early_and_saved(tuning, whole):
    out, engine, events = whole
    trials = events[-1].trials
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert pruned
    assert {trial_name(trial.number) for trial in pruned} == {folder.name for folder in engine.told}
    complete = sorted(trial.score for trial in trials if trial.state == "complete")
    for trial in pruned:
        assert worth(tuning.run(out, trial.number, trial.values)) < np.median(complete)
        assert "worse than most at" in trial.problem


def test_no_trial_is_ended_before_a_fifth_of_its_evaluations(tuning, tmp_path):
    study = Study(tmp_path, tuning.space, 0, evaluations=8)
    for _ in range(5):
        good = study.ask().number
        study.report(good, [1.0, 1.0])
        study.complete(good, 1.0)
    bad = study.ask().number
    assert not study.report(bad, [0.0])
    assert study.report(bad, [0.0, 0.0])


def test_best_settings_are_what_train_takes(tuning, whole):
    out, _, events = whole
    top = events[-1].best
    assert top.score == max(trial.score for trial in events[-1].trials if trial.score is not None)
    command, _ = parse_train(["--config", str(out / "best.toml"), "--seed", "7"])
    run = tuning.run(out, top.number, top.values)
    assert command.hyperparameters.settled() == run.algorithm
    assert (command.env, command.run.steps, command.run.seed) == ("Pendulum-v1", 1000, 7)
    assert command.run.settled(run.algorithm).num_envs == run.settings.num_envs


class LosingEngine(PretendEngine):
    """Loses what the first trial ran on, at its second look."""

    def ended(self):
        if self.looks != 1:
            return super().ended()
        self.looks, lost = 2, self.running.pop(0)
        return [EndedProcess(lost, None, "its worker was lost", lost=True)]


def test_trial_that_lost_its_worker_is_told_and_comes_to_the_same_end(tuning, tmp_path):
    engine = LosingEngine(slots=1)
    events = go(tuning, tmp_path / "lost", 2, engine)
    assert [(event.trial.number, event.reason) for event in events if isinstance(event, TrialLost)] == [
        (0, "its worker was lost")
    ]
    assert engine.started == [trial_name(0), trial_name(0), trial_name(1)]
    assert events[-1].trials == go(tuning, tmp_path / "whole", 2, PretendEngine(slots=1))[-1].trials
    assert events[-1].problems == 0


def test_nothing_is_left_to_do_the_second_time_and_more_trials_go_on(tuning, whole):
    out, _, events = whole
    engine = PretendEngine()
    assert [type(event) for event in go(tuning, out, 14, engine)] == [SearchFinished]
    assert engine.started == []
    assert go(tuning, out, 15, engine)[-1].trials[:14] == events[-1].trials
    assert engine.started == ["trial-0014"]


class Killed(BaseException):
    """Stands for kill -9: nothing is saved, no process is told."""


def test_a_kill_at_any_moment_loses_nothing(tuning, tmp_path, monkeypatch):
    """Kill at every few calls of the study and of the engine; what comes of it is what comes without."""
    space = {"critic_lr": tuning.space["critic_lr"]}
    tuning = dataclasses.replace(tuning, space=space)
    calm = go(tuning, tmp_path / "calm", 3, PretendEngine(1))[-1]
    calls = budget = 0

    def fatal(call):
        def wrapped(*arguments, **named):
            nonlocal calls
            calls += 1
            if calls == budget:
                raise Killed
            result = call(*arguments, **named)
            calls += 1
            if calls == budget:  # and just after it
                raise Killed
            return result

        return wrapped

    for name in ("ask", "report", "complete", "prune", "unfinished"):
        monkeypatch.setattr(Study, name, fatal(getattr(Study, name)))
    monkeypatch.setattr(module, "write_best", fatal(module.write_best))
    monkeypatch.setattr(PretendEngine, "start", fatal(PretendEngine.start))
    kills, end = 0, None
    while end is None:
        calls, budget = 0, 2 + 3 * (kills % 7) if kills < 14 else -1
        try:
            end = go(tuning, tmp_path / "killed", 3, PretendEngine(1))[-1]
        except Killed:
            kills += 1
    assert kills > 5
    assert end.best is not None
    assert len(end.trials) == 3
    assert end.trials == calm.trials
    for trial in end.trials:
        assert trial.score == pytest.approx(worth(tuning.run(tmp_path / "killed", trial.number, trial.values)))


def test_a_trial_whose_values_were_half_drawn_gets_the_rest(tuning, tmp_path):
    study = Study(tmp_path, tuning.space)
    trial = study._study.ask()
    drawn = trial.suggest_float("critic_lr", 1e-4, 1e-2, log=True)
    (found,) = Study(tmp_path, tuning.space).unfinished()
    assert found.values.keys() == tuning.space.keys()
    assert found.values["critic_lr"] == drawn
    assert Study(tmp_path, tuning.space).unfinished() == [found]


def test_a_signal_stops_the_search_and_its_trials_go_on_afterwards(tuning, tmp_path):
    def interrupt(engine):
        if engine.looks == 3:
            signal.raise_signal(signal.SIGINT)

    engine = PretendEngine(at_look=interrupt)
    *events, finished = go(tuning, tmp_path, 2, engine)
    assert finished.stopped_by == signal.SIGINT
    assert [trial.state for trial in finished.trials] == ["running", "running"]
    assert [event.trial.state for event in events if isinstance(event, TrialEnded)] == ["running", "running"]
    again = PretendEngine()
    assert [trial.state for trial in go(tuning, tmp_path, 2, again)[-1].trials] == ["complete", "complete"]
    assert again.started == engine.started


def test_a_failed_trial_stops_no_other_and_is_made_up_for_the_next_time(tuning, tmp_path):
    finished = go(tuning, tmp_path, 3, PretendEngine(codes={"trial-0001": 1}))[-1]
    assert [trial.state for trial in finished.trials] == ["complete", "failed", "complete"]
    assert finished.problems == 1
    assert "exit code 1" in finished.trials[1].problem
    again = PretendEngine()
    assert len(go(tuning, tmp_path, 3, again)[-1].trials) == 4
    assert again.started == ["trial-0003"]


def test_a_trial_without_numbers_is_ended_early(tuning, tmp_path, monkeypatch):
    monkeypatch.setattr("test_search.worth", lambda run: float("nan") if run.seed == 1 else 1.0)
    finished = go(tuning, tmp_path, 2, PretendEngine())[-1]
    assert [trial.state for trial in finished.trials] == ["complete", "pruned"]
    assert finished.best.number == 0


def test_another_search_in_the_folder_is_refused(tuning, whole):
    out = whole[0]
    enrol(tuning, out, ["bisac", "tune", "again"])
    assert read_record(out).tuning == tuning
    assert read_record(out).commands[-1] == ["bisac", "tune", "again"]
    longer = dataclasses.replace(tuning, settings=dataclasses.replace(tuning.settings, steps=2000))
    with pytest.raises(BisacError, match="begun with steps 1000, now it is 2000"):
        enrol(longer, out, [])
    fewer = dataclasses.replace(tuning, space={"tau": tuning.space["tau"]})
    with pytest.raises(BisacError, match=r"--search critic_lr 0\.0001 to 0\.01, by ratio, now it is not given"):
        enrol(fewer, out, [])


def test_a_search_does_not_go_on_under_other_defaults(tuning, tmp_path):
    go(tuning, tmp_path, 1, PretendEngine())
    path = RunFolder(tmp_path / "trial-0000").config
    config = json.loads(path.read_text())
    config["hyperparameters"]["gamma"], config["versions"]["bisac"] = 0.5, "0.0.1"
    path.write_text(json.dumps(config))
    with pytest.raises(BisacError, match=r"gamma is 0\.5, here it is 0\.98.*finish what is there with bisac 0\.0\.1"):
        go(tuning, tmp_path, 2, PretendEngine())


def test_a_folder_of_another_run_is_refused_and_a_damaged_study_is_told(tuning, tmp_path):
    go(tuning, tmp_path, 1, PretendEngine())
    (tmp_path / STUDY).unlink()
    path = RunFolder(tmp_path / "trial-0000").config
    path.write_text(path.read_text().replace('"critic_lr": 0.001', '"critic_lr": 0.002'))
    with pytest.raises(BisacError, match="trial-0000 holds another run"):
        go(tuning, tmp_path, 1, PretendEngine())
    (tmp_path / STUDY).write_bytes(b"no database" * 100)
    with pytest.raises(BisacError, match=r"study\.db is damaged"):
        Study(tmp_path, tuning.space)


def test_the_page_has_every_part_and_escapes_what_it_shows(tuning, whole, tmp_path):
    page = write_tuning_page(whole[0], tmp_path / "page.html").read_text()
    shown = page[: page.index("<script>")]
    for text in ("Importance of each setting", "Learning curves", "critic_lr", "ended early", "16 16", "trial-00"):
        assert text in shown
    assert "{{" not in shown
    assert "Content-Security-Policy" in shown
    enrol(tuning, whole[0], ["bisac", "tune", "<b>bold</b>"])
    assert "<b>bold" not in write_tuning_page(whole[0], tmp_path / "page.html").read_text()


def test_importance_is_that_of_the_one_setting_that_matters(tmp_path):
    space = {"critic_lr": Range(1e-4, 1e-2, log=True), "tau": Range(1e-3, 1e-1, log=True)}
    study, draw = Study(tmp_path, space), np.random.default_rng(0)
    distributions = {name: FloatDistribution(each.low, each.high, log=True) for name, each in space.items()}
    for _ in range(40):
        values = {"critic_lr": 10 ** draw.uniform(-4, -2), "tau": 10 ** draw.uniform(-3, -1)}
        score = -abs(math.log10(values["critic_lr"]) + 3)
        study._study.add_trial(create_trial(params=values, distributions=distributions, value=score))
    shares = study.importances()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["critic_lr"] > 0.8


def test_the_best_is_the_first_of_the_highest(tuning, whole):
    trials = list(whole[2][-1].trials)
    assert best([]) is None
    assert best([*trials, dataclasses.replace(best(trials), number=99)]) == best(trials)
    with sqlite3.connect(whole[0] / STUDY) as database:  # plain SQLite, for whoever wants to look
        assert database.execute("select count(*) from trials").fetchone()[0] >= 14
