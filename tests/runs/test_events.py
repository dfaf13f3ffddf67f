"""What a run tells while it goes: events in the order in which things happen, told after they were written."""

import json
import shutil
import signal
import warnings
from functools import partial

import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, fingerprint

import bisac
from bisac.algos import SAC
from bisac.collect import host
from bisac.collect.dispatch import source_name
from bisac.collect.host import HostCollector
from bisac.runs.events import Advanced, EpisodeEnded, Evaluated, Finished, Logged, Saved, Started
from bisac.runs.log import read_log
from bisac.runs.resume import resume
from bisac.runs.settings import Settings
from bisac.runs.start import start

HYPERPARAMETERS = {name: value for name, value in SMALL.items() if name not in ("algo", "seed")}


def events(out, source=Counter, **changes):
    settings = {name: value for name, value in SHORT.items() if name != "verbose"} | changes
    return start(source, SAC(**HYPERPARAMETERS), Settings(**settings, seed=3, out=out))


def test_order_of_events(tmp_path):
    told = []
    for event in events(tmp_path / "run"):
        if isinstance(event, Logged):  # whatever is told stands in the files already
            assert read_log(told[0].folders[0])[-1]["step"] == event.row["step"]
        if isinstance(event, Saved):
            assert (event.path / "manifest.json").exists()
        told.append(event)
    assert isinstance(told[0], Started)
    assert (told[0].step, told[0].steps) == (0, 100)
    assert isinstance(told[-1], Finished)
    assert [event.step for event in told if isinstance(event, Advanced)] == list(range(1, 101))
    notable = [type(e).__name__ for e in told if not isinstance(e, Advanced | EpisodeEnded)]
    at_40 = ["Evaluated", "Logged", "Saved"]
    assert notable == ["Started", "Saved", *at_40, "Saved", *at_40, *at_40, "Finished"]
    ended = [event for event in told if isinstance(event, EpisodeEnded)]
    rows = told[-1].outcomes[0].rows
    first = [event.episode_return for event in ended if event.step <= 40]
    assert rows[0]["episode_return"] == pytest.approx(sum(first) / len(first))
    evaluated = [event.returns.mean() for event in told if isinstance(event, Evaluated)]
    assert evaluated == pytest.approx([row["eval_return"] for row in rows])


@pytest.mark.parametrize("stop", [1, 40, 77])
def test_breaking_off_saves_and_a_resume_is_exact(stop, tmp_path):
    *_, finished = events(tmp_path / "straight")
    assert finished.outcomes[0].resumable
    for event in events(tmp_path / "torn"):
        if isinstance(event, Evaluated if stop == 40 else Advanced) and event.step == stop:
            break
    *_, finished = resume([tmp_path / "torn"], source=Counter)
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")


def test_error_in_the_loop_of_the_user_loses_nothing(tmp_path):
    def loop():
        for event in events(tmp_path / "run"):
            if isinstance(event, Advanced) and event.step == 50:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    newest = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert newest.name == "step-000000000050"


class Another(Counter):
    """The same sizes under another name of the class."""


def named_counter():
    return Counter()


def test_another_function_at_a_resume_is_recorded(tmp_path):
    for event in events(tmp_path / "run"):
        if isinstance(event, Advanced) and event.step == 30:
            break
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["env_source"] == "probe_envs:Counter"
    assert "resumed_with" not in config
    for step, source in ((60, Counter), (100, named_counter)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bisac.resume(tmp_path / "run", env=source, steps=step, verbose=False)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["resumed_with"] == [{"step": 60, "env_source": f"{__name__}:named_counter"}]
    with pytest.raises(bisac.BisacError, match="not what it was"):
        bisac.resume(tmp_path / "run", env=Another, steps=120, verbose=False)


def newest(folder):
    return max((folder / "checkpoints").glob("step-*")).name


def test_break_of_a_run_that_has_a_name_saves_at_once(tmp_path):
    run = events(tmp_path / "run")
    for event in run:
        if isinstance(event, Advanced) and event.step == 30:
            break
    assert newest(tmp_path / "run") == "step-000000000030"
    *_, finished = resume([tmp_path / "run"], source=Counter)  # the folder is free again
    assert finished.outcomes[0].rows[-1]["step"] == 100
    assert list(run) == []


@pytest.mark.parametrize("where", ["consumer", "evaluation"])
def test_signal_at_any_moment_leaves_the_run_saved(where, tmp_path, monkeypatch):
    if where == "evaluation":
        evaluate = HostCollector.evaluate

        def interrupted(self, policy, run):
            signal.raise_signal(signal.SIGTERM)
            return evaluate(self, policy, run)

        monkeypatch.setattr(HostCollector, "evaluate", interrupted)
    saved = []
    for event in events(tmp_path / "run", checkpoint_every=1000):
        saved += [event.step] if isinstance(event, Saved) else []
        if where == "consumer" and isinstance(event, Advanced) and event.step == 33:
            signal.raise_signal(signal.SIGTERM)
        last = event
    stop = 33 if where == "consumer" else 40
    assert saved == [stop]
    assert (last.outcomes[0].stopped_by, last.outcomes[0].resumable) == (signal.SIGTERM, True)
    assert newest(tmp_path / "run") == f"step-{stop:012d}"


def test_step_whose_learning_failed_has_not_been_taken(tmp_path, monkeypatch):
    *_, _ = events(tmp_path / "straight")
    calls = []

    def fails(*arguments):
        calls.append(arguments)
        if len(calls) == 50:
            raise RuntimeError("out of memory")
        return learn(*arguments)

    learn = host.learn_and_act
    with monkeypatch.context() as patch:
        patch.setattr(host, "learn_and_act", fails)
        with pytest.raises(RuntimeError, match="out of memory"):
            list(events(tmp_path / "torn"))
    assert newest(tmp_path / "torn") == "step-000000000049"
    list(resume([tmp_path / "torn"], source=Counter))
    assert fingerprint(tmp_path / "torn") == fingerprint(tmp_path / "straight")


def test_failing_disk_does_not_hide_why_a_run_stopped(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def loop():
        for event in events(tmp_path / "run"):
            if isinstance(event, Advanced) and event.step == 50:
                monkeypatch.setattr("bisac.runs.run.write_atomic", full)
                raise ZeroDivisionError

    with pytest.warns(UserWarning, match="could not be saved as it stopped"), pytest.raises(ZeroDivisionError):
        loop()


def test_complete_run_keeps_its_policy_when_a_resume_is_not_wanted_after_all(tmp_path):
    list(events(tmp_path / "run"))
    before = (tmp_path / "run" / "policy.safetensors").read_bytes()
    for event in resume([tmp_path / "run"], steps=200, source=Counter):
        assert isinstance(event, Started)
        break
    assert (tmp_path / "run" / "policy.safetensors").read_bytes() == before


@pytest.mark.parametrize("without", ["checkpoints", "checkpoints and policy"])
def test_complete_run_that_never_needed_a_checkpoint_is_not_trained_over(without, tmp_path):
    folder = tmp_path / "run"
    list(events(folder, checkpoint_every=1000))
    shutil.rmtree(folder / "checkpoints")
    before = (folder / "progress.csv").read_text()
    if without == "checkpoints":
        *_, finished = resume([folder], source=Counter)
        assert finished.outcomes[0].rows[-1]["step"] == 100
    else:
        (folder / "policy.safetensors").unlink()
        with pytest.raises(bisac.BisacError, match="the log of a run of 100 steps, but no checkpoint"):
            list(resume([folder], source=Counter))
    assert (folder / "progress.csv").read_text() == before


def test_run_trained_on_a_function_is_not_guessed_to_be_another_task(tmp_path):
    list(events(tmp_path / "run"))
    with pytest.raises(bisac.BisacError, match=r"was trained on probe_envs:Counter, .* resume it in Python"):
        bisac.resume(tmp_path / "run", steps=200, verbose=False)


def test_sources_are_told_apart():
    one, other = (lambda: Counter()), partial(named_counter)
    assert source_name("Hopper-v5") == "Hopper-v5"
    assert source_name(Counter) == "probe_envs:Counter"
    assert source_name(other) == f"{__name__}:named_counter"
    assert "<lambda>, line " in source_name(one)


def test_several_seeds_of_one_environment_are_refused(tmp_path):
    settings = Settings(steps=100, num_envs=1, out=tmp_path / "run")
    with pytest.raises(bisac.BisacError, match="one run at a time"):
        list(start(Counter, SAC(**HYPERPARAMETERS), settings, seeds=[0, 1]))
    assert not (tmp_path / "run").exists()


def test_algorithm_without_a_name_is_refused_before_anything_is_written(tmp_path):
    class Mine(SAC):
        pass

    with pytest.raises(bisac.BisacError, match="Mine has no name: give it one"):
        bisac.train(Counter, Mine(**HYPERPARAMETERS), out=tmp_path / "run", verbose=False)
    assert not (tmp_path / "run").exists()


def test_config_that_lacks_a_part_is_taken_from_the_checkpoint(tmp_path):
    list(events(tmp_path / "run"))
    (tmp_path / "run" / "config.json").write_text('{"env": "Counter"}')
    with pytest.warns(UserWarning, match="Using the checkpoint's copy") as caught:
        bisac.resume(tmp_path / "run", steps=120, env=Counter, verbose=False)
    assert len(caught) == 1
    assert json.loads((tmp_path / "run" / "config.json").read_text())["env_source"] == "probe_envs:Counter"
