"""A sweep's record: what may be added to it, and what is refused."""

import dataclasses
import json

import pytest

from bisac.errors import BisacError
from bisac.runs.config import to_config
from bisac.runs.folder import RunFolder
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import parse_contestant
from bisac.sweeps.plan import Plan
from bisac.sweeps.record import enrol, read_record

COMMAND = ["bisac", "sweep", "plan"]
PLAN = Plan(("Pendulum-v1",), (parse_contestant("sac"), parse_contestant("bisac")), (0, 1), Settings(steps=100), {})


def measured(env):
    return {"Pendulum-v1": -1200.0}[env]


def test_sweep_grows_but_does_not_change(tmp_path):
    grown = dataclasses.replace(PLAN, seeds=(2,), contestants=(parse_contestant("bisac:hidden=8x8"),))
    enrol(PLAN, tmp_path, COMMAND, measured)
    record = enrol(grown, tmp_path, ["bisac", "sweep", "more"], {}.__getitem__)  # measured once
    assert record.commands == [COMMAND, ["bisac", "sweep", "more"]]
    assert record.random_returns == {"Pendulum-v1": -1200.0}
    assert record == read_record(tmp_path)
    assert [contestant.name for contestant in record.contestants] == ["sac", "bisac", "bisac-hidden=8x8"]
    assert ("Pendulum-v1", "bisac-hidden=8x8", 2) in record.runs
    assert len(record.runs) == 5  # what was asked for, not every combination
    with pytest.raises(BisacError, match="was begun with steps 100, now it is 200"):
        enrol(dataclasses.replace(PLAN, settings=Settings(steps=200)), tmp_path, COMMAND, measured)
    with pytest.raises(BisacError, match=r"was begun with gamma by default, now it is 0\.5"):
        enrol(dataclasses.replace(PLAN, hyperparameters={"gamma": 0.5}), tmp_path, COMMAND, measured)


@pytest.mark.parametrize(
    ("algo", "change", "problem"),
    [
        ("sac", {"critic_lr": 0.5}, "there critic_lr is 0.5, here it is 0.001"),
        ("sac", {"critic_norm": "none"}, "there critic_norm is 'none', here it is 'batch'"),
        ("bisac", {"epsilon": 0.5}, "there epsilon is 0.5, here it is 10.0"),
    ],
)
def test_foreign_run_in_the_folder_is_refused(algo, change, problem, tmp_path):
    run = next(run for run in PLAN.runs(tmp_path) if run.contestant.algo == algo)
    run.folder.mkdir(parents=True)
    other = dataclasses.replace(run.algorithm, **change)
    RunFolder(run.folder).write_config(to_config(run.env, other, run.settings))
    with pytest.raises(BisacError, match=f"/{algo}/seed0 holds another run than the planned one: {problem}"):
        enrol(PLAN, tmp_path, COMMAND, measured)


def test_a_contestant_has_one_name(tmp_path):
    plans = [dataclasses.replace(PLAN, contestants=(parse_contestant(f"bisac:epsilon={n}"),)) for n in ("1", "1.0")]
    enrol(plans[0], tmp_path, COMMAND, measured)
    with pytest.raises(BisacError, match=r"bisac-epsilon=1\.0 and bisac-epsilon=1 are the same contestant; call it "):
        enrol(plans[1], tmp_path, COMMAND, measured)
    assert [contestant.name for contestant in read_record(tmp_path).contestants] == ["bisac-epsilon=1"]
    with pytest.raises(BisacError, match="are the same contestant"):
        dataclasses.replace(PLAN, contestants=tuple(plan.contestants[0] for plan in plans))


@pytest.mark.parametrize(
    ("then", "now", "advice"),
    [
        ({}, {"settings": Settings(steps=100, env_arg=("x=1",))}, "Leave --env-arg out, or choose"),
        ({"settings": Settings(steps=100, env_arg=("x=1", "y=2"))}, {}, "Give --env-arg x=1 --env-arg y=2 again, or"),
        ({"hyperparameters": {"hidden": (64, 32)}}, {}, "Give --hidden 64 32 again, or choose"),
        ({"hyperparameters": {"her": True}}, {}, "Give --her again, or choose"),
        ({"hyperparameters": {"her": False}}, {"hyperparameters": {"her": True}}, "Give --no-her again, or choose"),
        ({}, {"hyperparameters": {"gamma": 0.5}}, "Leave --gamma out, or choose"),
    ],
)
def test_how_a_sweep_was_begun_is_told_as_it_is_typed(then, now, advice, tmp_path):
    enrol(dataclasses.replace(PLAN, **then), tmp_path, COMMAND, measured)
    with pytest.raises(BisacError, match=advice):
        enrol(dataclasses.replace(PLAN, **now), tmp_path, COMMAND, measured)


def test_a_run_that_was_ended_early_is_told_how_it_goes_on(tmp_path):
    run = next(PLAN.runs(tmp_path))
    run.folder.mkdir(parents=True)
    shorter = dataclasses.replace(run.settings, steps=40)
    RunFolder(run.folder).write_config(to_config(run.env, run.algorithm, shorter))
    with pytest.raises(BisacError, match=r"was ended at 40 steps, the sweep has 100: .*seed0 --steps 100' first"):
        enrol(PLAN, tmp_path, COMMAND, measured)
    longer = dataclasses.replace(run.settings, steps=400)  # has what was planned, and more
    RunFolder(run.folder).write_config(to_config(run.env, run.algorithm, longer))
    enrol(PLAN, tmp_path, COMMAND, measured)


def test_a_sweep_whose_folders_have_an_earlier_name_says_what_to_do(tmp_path):
    plan = dataclasses.replace(PLAN, contestants=(parse_contestant("bisac:margin=none"),))
    record, file = enrol(plan, tmp_path, COMMAND, measured), tmp_path / "sweep.json"
    now = file.read_text()
    file.write_text(now.replace('"bisac-margin=none"', '"bisac-none"'))
    with pytest.raises(BisacError, match="bisac-none is called bisac-margin=none now: rename the folders"):
        read_record(tmp_path)
    file.write_text(file.read_text().replace('"bisac-none"', '"bisac-margin=none"'))  # as it says
    assert read_record(tmp_path).runs == record.runs


def test_a_name_that_another_contestant_has_now_is_no_earlier_one(tmp_path):
    """sac:preset=none was called sac-none once, and sac:critic_norm=none is."""
    contestants = tuple(map(parse_contestant, ("sac:critic_norm=none", "sac:preset=none")))
    enrol(dataclasses.replace(PLAN, contestants=contestants), tmp_path, COMMAND, measured)
    assert [contestant.name for contestant in read_record(tmp_path).contestants] == ["sac-none", "sac-preset=none"]


def test_an_earlier_name_that_cannot_be_printed_is_not_shown(tmp_path):
    enrol(dataclasses.replace(PLAN, contestants=(parse_contestant("bisac:margin=none"),)), tmp_path, COMMAND, measured)
    known = json.loads((tmp_path / "sweep.json").read_text())
    known["contestants"][0]["settings"] = [["margin", "\x1b[2J"]]
    known["runs"] = [["Pendulum-v1", "bisac-\x1b[2J", 0]]
    (tmp_path / "sweep.json").write_text(json.dumps(known))
    with pytest.raises(BisacError, match="contradict") as told:
        read_record(tmp_path)
    assert "\x1b" not in str(told.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "contestants": [1], "runs": []}'])
def test_damaged_record_is_told(text, tmp_path):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(BisacError, match="is damaged"):
        read_record(tmp_path)


def test_record_whose_names_no_folder_can_have_is_told(tmp_path):
    enrol(PLAN, tmp_path, COMMAND, measured)
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"envs": ["P" * 256], "runs": []}))
    with pytest.raises(BisacError, match=r"sweep\.json is damaged.*contradict"):
        read_record(tmp_path)
