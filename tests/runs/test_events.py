"""What a run tells while it goes: events in the order in which things happen, told after they were written."""

import json
import warnings

import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, fingerprint

import bisac
from bisac.algos import SAC
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
